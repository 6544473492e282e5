"""The interface between a conversation and what shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from moot.errors import MootError
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run

if TYPE_CHECKING:
    from moot.cli.approving.situations import Decision

__all__ = ["ConversationView"]


class ConversationView(Protocol):
    """The display of a conversation. Only `decide` waits for the user."""

    def prompted(self, text: str) -> None:
        """Show a prompt that is answered next."""
        ...

    def opened(self, conversation: Conversation) -> None:
        """Show an existing conversation; its messages follow."""
        ...

    def message(self, message: Message) -> None:
        """Show an existing message."""
        ...

    def started(self, run: str) -> None: ...

    def event(self, event: Event) -> None: ...

    def ended(self, run: Run) -> None:
        """Show the end of a run, after its last event."""
        ...

    def failed(self, error: MootError) -> None: ...

    def notice(self, text: str) -> None:
        """Show a one-line notice."""
        ...

    def changed(self) -> None:
        """Update the status line, because something in it may have changed."""
        ...

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        """Ask the user and return their decision without storing it."""
        ...
