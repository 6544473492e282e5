"""Who shows a conversation, as `talk` knows them."""

from __future__ import annotations

from typing import Protocol

from moot.cli.approving.situations import Decided
from moot.errors import MootError
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run

__all__ = ["Face"]


class Face(Protocol):
    """Who shows it. Nothing here waits for a person but `decide`."""

    def prompted(self, text: str) -> None:
        """A prompt that is answered next."""
        ...

    def opened(self, conversation: Conversation) -> None:
        """One that was there before; its messages come next."""
        ...

    def message(self, message: Message) -> None:
        """A message from before."""
        ...

    def began(self, run: str) -> None: ...

    def event(self, event: Event) -> None: ...

    def ended(self, run: Run) -> None:
        """After the last event of it."""
        ...

    def failed(self, error: MootError) -> None: ...

    def told(self, note: str) -> None:
        """Something that the person should know, in a line."""
        ...

    def changed(self) -> None:
        """Something that a status line shows may have changed."""
        ...

    async def decide(self, approval: Approval, conversation: Conversation) -> Decided:
        """What the person says; it is not stored yet."""
        ...
