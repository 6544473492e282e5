"""The REPL for a terminal that cannot move its cursor (TERM=dumb): plain lines, nothing is redrawn."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

from moot.cli.approvals.requests import decide
from moot.cli.console.output import Output
from moot.cli.repl.background import Exit, check_detach, confirm_exit
from moot.cli.repl.conversation import InteractiveConversation
from moot.cli.repl.drafts import Draft, Drafts
from moot.cli.repl.inbox import watch_inbox
from moot.cli.repl.input import InputHandler
from moot.cli.repl.scrollback import RunDisplay, Scrollback, ScrollbackView
from moot.cli.terminal.look import look_of
from moot.commands import CommandContext
from moot.errors import MootError
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.message import Part
from moot.types.run import Run

if TYPE_CHECKING:
    from moot.cli.approvals.decide import Decision

T = TypeVar("T")

_FLUSH_SECONDS = 0.1
"""Time between two writes of finished text."""


class PlainRepl:
    """A REPL that prints plain lines and redraws nothing. Implements `ReplHost`."""

    def __init__(self, context: CommandContext, group: TaskGroup, output: Output) -> None:
        self._group, self.output = group, output
        look = replace(look_of(output), colour=False, motion=False)
        self._scrollback = Scrollback(look)
        self._display = RunDisplay(self._scrollback)
        self._conversation = InteractiveConversation(context, group, _PlainView(self, self._scrollback, self._display, context))
        self._input = InputHandler(context, self._conversation, self._scrollback, self._display, self, output)
        self._context = context
        self._drafts = Drafts(context.engine.settings.home / "state" / "drafts", context.directory)
        self._saved: tuple[str | None, Draft] = (None, Draft())
        """The saved draft and its conversation. Only its shell output is used here."""
        self._reading = anyio.CancelScope()
        self._terminal_lock = anyio.Lock()
        """Held while reading the terminal."""
        self._left = False
        self.detaches = False
        """True if the user has left while runs continue in the background."""
        self._stopping = False

    async def run(self, conversation: str | None, prompt: Sequence[Part] = ()) -> None:
        """Send the prompt, then run until the user leaves."""
        self._group.start_soon(self._print)
        self._group.start_soon(watch_inbox, self._context, self._conversation, self._show_inbox)
        await self.open(conversation)
        if prompt:
            await self._run_action(lambda: self._input.prompt(prompt, ""))
        elif await self._conversation.unanswered():
            await self._run_action(self._conversation.answer)
        line: str | None = ""
        while not self._left:
            before, line = line, await self._read_line()
            if line is None and before is None:  # the input has ended for good
                self._end()
            elif line is None:
                await self._run_action(self.leave)
            elif line.strip():
                await self._run_action(lambda text=line: self._input.line(text, echoed=True))
                await self.save()
        self._flush()

    def _show_inbox(self, notice: str) -> None:
        self._scrollback.say(notice, "dim")

    def _end(self) -> None:
        self._left = True
        self._reading.cancel()

    async def leave(self, *, detaches: bool = False) -> None:
        if detaches:
            await check_detach(self._context.engine)
        choice: Exit = "detach" if detaches else await confirm_exit(self._context.engine, self.output, self.suspend_for)
        if choice != "stay":
            self.detaches = choice == "detach"
            self._end()

    def handle_signal(self, number: int) -> None:
        """Stop the answer on the first Ctrl+C, and exit on the second or at another signal."""
        if number != signal.SIGINT or self._stopping or self._conversation.live is None:
            self._end()
        else:
            self._stopping = True
            self._group.start_soon(self._run_action, self._input.stop)

    async def suspend_for(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work that reads the terminal itself."""
        self._flush()
        self._reading.cancel()
        async with self._terminal_lock:
            return await work()

    def compose(self, *texts: str) -> None:
        """Show the texts, because there is no composer."""
        for text in texts:
            self._scrollback.say(f"Not sent: {text}")

    def touch(self) -> None:
        """Do nothing: finished text is printed regularly."""

    async def open(self, conversation: str | None) -> None:
        await self.save()
        await self._conversation.open(conversation)
        draft = await anyio.to_thread.run_sync(self._drafts.restore, conversation)
        self._input.restore(draft.shell_output)
        self._saved = conversation, draft

    async def save(self) -> None:
        before, draft = self._saved
        self._saved = self._context.conversation, replace(draft, shell_output=list(self._input.shell_output))
        if before != self._saved[0]:
            await anyio.to_thread.run_sync(self._drafts.save, before, Draft())
        await anyio.to_thread.run_sync(self._drafts.save, *self._saved)

    def log(self, line: str) -> None:
        """Show a log message."""
        self._scrollback.say(line)

    def idle(self) -> None:
        """Show the input prompt again after an answer."""
        self._stopping = False
        self._flush()
        self.output.data("> ")

    async def _run_action(self, action: Callable[[], Awaitable[None]]) -> None:
        try:
            await action()
        except MootError as error:
            self._scrollback.failed(error)

    async def _print(self) -> None:
        while True:
            await anyio.sleep(_FLUSH_SECONDS)
            self._flush()

    def _flush(self) -> None:
        if text := self._display.take():
            self.output.data(text)

    async def _read_line(self) -> str | None:
        """Read one line without its newline. Return None at the end of input, and "" if `suspend_for` took the terminal."""
        self._flush()
        if self._conversation.live is None:
            self.output.data("> ")
        pieces = b""
        async with self._terminal_lock:
            with anyio.CancelScope() as self._reading:
                while not pieces.endswith(b"\n"):
                    await anyio.wait_readable(sys.stdin.fileno())
                    piece = os.read(sys.stdin.fileno(), 4096)
                    if not piece:
                        return pieces.decode("utf-8", "replace") or None
                    pieces += piece
        await anyio.lowlevel.checkpoint()  # let a waiting `suspend_for` take the lock
        return pieces.decode("utf-8", "replace").rstrip("\r\n")


class _PlainView(ScrollbackView):
    """The display of a conversation as plain lines."""

    def __init__(self, repl: PlainRepl, scrollback: Scrollback, display: RunDisplay, context: CommandContext) -> None:
        super().__init__(scrollback, display)
        self._repl, self._engine = repl, context.engine

    def ended(self, run: Run) -> None:
        self._display.finish(run)
        self._repl.idle()

    def notice(self, text: str) -> None:
        self._scrollback.say(text, "dim")

    async def decide(self, approval: Approval, conversation: Conversation) -> Decision:
        return await self._repl.suspend_for(partial(decide, self._engine, approval, conversation, self._repl.output))
