"""The REPL where nothing can be redrawn (TERM=dumb): lines in, lines out, and what was written stays as it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

from moot.cli.approving.deciding import decide
from moot.cli.approving.situations import Decided, situation
from moot.cli.output import Output
from moot.cli.repl.answering import Answering
from moot.cli.repl.doing import Doing
from moot.cli.repl.drafts import Draft, Drafts
from moot.cli.repl.paper import Paper
from moot.cli.repl.talk import Talk
from moot.cli.screen import look_of
from moot.commands import Situation
from moot.errors import MootError
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import Part
from moot.types.run import Run

__all__ = ["Plain"]

T = TypeVar("T")

_FRAME = 0.1
"""Seconds between two looks at what is finished."""


class Plain:
    """Implements `doing.Host`; the same way in as `desk.Desk`."""

    def __init__(self, situation: Situation, group: TaskGroup, output: Output) -> None:
        self._group, self.output = group, output
        look = replace(look_of(output), colour=False, motion=False)
        self._paper = Paper(look)
        self._answering = Answering(self._paper)
        self.talk = Talk(situation, group, _Lines(self, self._paper, self._answering, situation))
        self._doing = Doing(situation, self.talk, self._paper, self._answering, self, output)
        self._situation = situation
        self._drafts = Drafts(situation.engine.settings.home / "state" / "drafts", situation.directory)
        self._kept: tuple[str | None, Draft] = (None, Draft())
        """What is on the disk, and for which conversation; of it only what shell lines said is this terminal's."""
        self._reading = anyio.CancelScope()
        self._free = anyio.Lock()
        """Held by whoever reads the terminal."""
        self._left = False
        self._stopping = False

    async def run(self, conversation: str | None, prompt: Sequence[Part] = ()) -> None:
        """Until the person leaves; the prompt is sent first."""
        self._group.start_soon(self._print)
        await self.go(conversation)
        if prompt:
            await self._now(lambda: self._doing.prompt(prompt, ""))
        elif await self.talk.unanswered():
            await self._now(self.talk.answer)
        while not self._left:
            line = await self._line()
            if line is None:
                self.leave()
            elif line.strip():
                await self._now(lambda text=line: self._doing.line(text, echoed=True))
                await self.keep()
        self._flush()

    def leave(self) -> None:
        """As `Host.leave`."""
        self._left = True
        self._reading.cancel()

    def interrupted(self) -> None:
        """Ctrl+C: the first stops the answer, another one leaves."""
        if self._stopping or self.talk.live is None:
            self.leave()
        else:
            self._stopping = True
            self._group.start_soon(self._now, self._doing.stop)

    async def aside(self, work: Callable[[], Awaitable[T]]) -> T:
        """As `Host.aside`: nobody else reads the terminal meanwhile."""
        self._flush()
        self._reading.cancel()
        async with self._free:
            return await work()

    def compose(self, text: str) -> None:
        """As `Host.compose`: there is nothing to put it into, so it is shown."""
        self._paper.say(f"not sent: {text}")

    def touch(self) -> None:
        """As `Host.touch`: what is finished is printed soon anyway."""

    async def go(self, conversation: str | None) -> None:
        """As `Host.go`."""
        await self.keep()
        await self.talk.open(conversation)
        draft = await anyio.to_thread.run_sync(self._drafts.take_up, conversation)
        self._doing.take_up(draft.heard)
        self._kept = conversation, draft

    async def keep(self) -> None:
        """As `Host.keep`."""
        before, draft = self._kept
        self._kept = self._situation.conversation, replace(draft, heard=list(self._doing.heard))
        if before != self._kept[0]:
            await anyio.to_thread.run_sync(self._drafts.keep, before, Draft())
        await anyio.to_thread.run_sync(self._drafts.keep, *self._kept)

    def log(self, line: str) -> None:
        """A line that some room logged."""
        self._paper.say(line)

    def idle(self) -> None:
        """The answer is over."""
        self._stopping = False
        self._flush()
        self.output.data("> ")

    async def _now(self, deed: Callable[[], Awaitable[None]]) -> None:
        try:
            await deed()
        except MootError as error:
            self._paper.failed(error)

    async def _print(self) -> None:
        while True:
            await anyio.sleep(_FRAME)
            self._flush()

    def _flush(self) -> None:
        if text := self._answering.take():
            self.output.data(text)

    async def _line(self) -> str | None:
        """One line without its end; None when there is no more; empty when somebody else needed the terminal."""
        self._flush()
        if self.talk.live is None:
            self.output.data("> ")
        pieces = b""
        async with self._free:
            with anyio.CancelScope() as self._reading:
                while not pieces.endswith(b"\n"):
                    await anyio.wait_readable(sys.stdin.fileno())
                    piece = os.read(sys.stdin.fileno(), 4096)
                    if not piece:
                        return pieces.decode("utf-8", "replace") or None
                    pieces += piece
        await anyio.lowlevel.checkpoint()  # lets in who waits for the terminal
        return pieces.decode("utf-8", "replace").rstrip("\r\n")


class _Lines:
    """Implements `talk.Face`."""

    def __init__(self, plain: Plain, paper: Paper, answering: Answering, around: Situation) -> None:
        self._plain, self._paper, self._answering, self._engine = plain, paper, answering, around.engine

    def prompted(self, text: str) -> None:
        self._paper.prompted(text)

    def opened(self, conversation: Conversation) -> None:
        self._paper.opened(conversation)

    def message(self, message: Message) -> None:
        self._paper.message(message)

    def began(self, run: str) -> None:
        self._answering.began()

    def event(self, event: Event) -> None:
        self._answering.event(event)

    def ended(self, run: Run) -> None:
        self._answering.ended(run)
        self._plain.idle()

    def failed(self, error: MootError) -> None:
        self._paper.failed(error)

    def told(self, note: str) -> None:
        self._paper.say(f"moot: {note}", "dim")

    def changed(self) -> None:
        return

    async def decide(self, approval: Approval, conversation: Conversation) -> Decided:
        asked = situation(self._engine, approval, conversation)
        return await self._plain.aside(lambda: decide(approval, asked, self._plain.output))
