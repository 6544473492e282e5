"""What happens in a conversation, put on the screen."""

from __future__ import annotations

from moot.cli.asking import answer_to
from moot.cli.output import Output
from moot.cli.repl.paper import Paper
from moot.cli.repl.terminal import Terminal
from moot.errors import MootError
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run

__all__ = ["Shown"]


class Shown:
    """Implements `talk.Face`."""

    def __init__(self, paper: Paper, terminal: Terminal, output: Output) -> None:
        self._paper, self._terminal, self._output = paper, terminal, output

    def prompted(self, text: str) -> None:
        self._paper.prompted(text)
        self._terminal.touch()

    def message(self, message: Message) -> None:
        self._paper.message(message)
        self._terminal.touch()

    def began(self, run: str) -> None:
        self._paper.began()
        self._terminal.touch()

    def event(self, event: Event) -> None:
        self._paper.event(event)
        self._terminal.touch()

    def ended(self, run: Run) -> None:
        self._paper.ended(run)
        self._terminal.touch()

    def failed(self, error: MootError) -> None:
        self._paper.failed(error)
        self._terminal.touch()

    def changed(self) -> None:
        self._terminal.touch()

    async def decide(self, approval: Approval, conversation: Conversation) -> Answer | None:
        return await self._terminal.aside(lambda: answer_to(approval, conversation.directory, self._output))
