"""The display of a conversation on the screen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from moot.cli.output import Output
from moot.cli.repl.answering import RunDisplay
from moot.cli.repl.deciding import decide
from moot.cli.repl.notices import NotificationKind
from moot.cli.repl.paper import Scrollback
from moot.cli.repl.terminal import Terminal
from moot.engine import Engine
from moot.errors import MootError
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run

if TYPE_CHECKING:
    from moot.cli.approving.situations import Decision

__all__ = ["ScreenView"]

Notify = Callable[[NotificationKind, float], None]
"""Notify the user of an event after this many seconds."""


class ScreenView:
    """The display of a conversation on the screen."""

    def __init__(
        self, engine: Engine, notify: Notify, scrollback: Scrollback, display: RunDisplay, terminal: Terminal, output: Output
    ) -> None:
        self._engine, self._notify = engine, notify
        self._scrollback, self._display, self._terminal, self._output = scrollback, display, terminal, output

    def prompted(self, text: str) -> None:
        self._scrollback.prompted(text)
        self._terminal.touch()

    def opened(self, conversation: Conversation) -> None:
        self._scrollback.opened(conversation)
        self._terminal.touch()

    def message(self, message: Message) -> None:
        self._scrollback.message(message)
        self._terminal.touch()

    def started(self, run: str) -> None:
        self._display.start()
        self._terminal.touch()

    def event(self, event: Event) -> None:
        self._display.feed(event)
        self._terminal.touch()

    def ended(self, run: Run) -> None:
        seconds = self._display.finish(run)
        self._notify("failed" if run.status == "failed" else "done", seconds)
        self._terminal.touch()

    def failed(self, error: MootError) -> None:
        self._scrollback.failed(error)
        self._terminal.touch()

    def notice(self, text: str) -> None:
        self._scrollback.say(f"{text}\n", "dim")
        self._terminal.touch()

    def changed(self) -> None:
        self._terminal.touch()

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        self._notify("waiting", self._display.elapsed)
        composer = self._terminal.composer
        decision = await self._terminal.suspend_for(
            partial(decide, self._engine, approval, conversation, self._output, draft=composer.text)
        )
        if decision.draft != composer.text:
            composer.replace(decision.draft)
        return decision
