"""What happens in a conversation, put on the screen."""

from __future__ import annotations

from collections.abc import Callable

from moot.cli.approving.deciding import decide
from moot.cli.approving.situations import Decided, situation
from moot.cli.output import Output
from moot.cli.repl.answering import Answering
from moot.cli.repl.notices import Occasion
from moot.cli.repl.paper import Paper
from moot.cli.repl.terminal import Terminal
from moot.engine import Engine
from moot.errors import MootError
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run

__all__ = ["Shown"]

Tell = Callable[[Occasion, float], None]
"""What has happened, and after how many seconds."""


class Shown:
    """Implements `talk.Face`."""

    def __init__(self, engine: Engine, tell: Tell, paper: Paper, answering: Answering, terminal: Terminal, output: Output) -> None:
        self._engine, self._tell = engine, tell
        self._paper, self._answering, self._terminal, self._output = paper, answering, terminal, output

    def prompted(self, text: str) -> None:
        self._paper.prompted(text)
        self._terminal.touch()

    def opened(self, conversation: Conversation) -> None:
        self._paper.opened(conversation)
        self._terminal.touch()

    def message(self, message: Message) -> None:
        self._paper.message(message)
        self._terminal.touch()

    def began(self, run: str) -> None:
        self._answering.began()
        self._terminal.touch()

    def event(self, event: Event) -> None:
        self._answering.event(event)
        self._terminal.touch()

    def ended(self, run: Run) -> None:
        seconds = self._answering.ended(run)
        self._tell("failed" if run.status == "failed" else "done", seconds)
        self._terminal.touch()

    def failed(self, error: MootError) -> None:
        self._paper.failed(error)
        self._terminal.touch()

    def told(self, note: str) -> None:
        self._paper.say(f"moot: {note}\n", "dim")
        self._terminal.touch()

    def changed(self) -> None:
        self._terminal.touch()

    async def decide(self, approval: Approval, conversation: Conversation) -> Decided:
        self._tell("waiting", self._answering.seconds)
        asked = situation(self._engine, approval, conversation)
        composer = self._terminal.composer
        decided = await self._terminal.aside(lambda: decide(approval, asked, self._output, draft=composer.text))
        if decided.draft != composer.text:
            composer.put(decided.draft)
        return decided
