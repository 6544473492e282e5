"""A run or stored messages on a real terminal: finished text goes into the scrollback, and a few live lines below it are redrawn."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import anyio
import anyio.to_thread

from moot.cli.console.output import Output
from moot.cli.console.results import summary
from moot.cli.terminal.look import look_of, size_now
from moot.cli.transcript.run import Transcript
from moot.cli.transcript.sections import preload
from moot.cli.transcript.tool_calls import call_of
from moot.types.event import Event
from moot.types.message import Message, Part
from moot.types.run import Run


class Region:
    """A few lines that are redrawn in place. They are removed before other output is written, and drawn again with the next frame.

    Finished text is written above them once, into the terminal's scrollback. The cursor moves up within these lines only.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._drawn: list[str] = []
        self._lock = threading.RLock()  # frames are drawn in a thread, other output comes from the event loop
        output.before = self.lift

    def draw(self, finished: str, live: Sequence[str]) -> None:
        """Draw a frame in one write: the finished text, which ends in a newline, and the live lines below it."""
        with self._lock:
            if not finished and list(live) == self._drawn:
                return
            drawn = self._drawn
            if not finished and drawn and live and [*live[:-1], live[-1][: len(drawn[-1])]] == drawn:
                shown = live[-1][len(drawn[-1]) :]
            else:
                shown = finished + "\n".join(live)
                if self._drawn:  # overwrite first, then erase what is left, so that nothing flickers
                    shown = self._up() + shown.replace("\n", "\x1b[K\n") + "\x1b[J"
            self._output.put(shown, ends_line=not live)
            self._drawn = list(live)

    def lift(self) -> None:
        """Remove the live lines and leave the cursor where they began."""
        with self._lock:
            if self._drawn:
                erase = self._up() + "\x1b[J"
                self._drawn = []
                self._output.put(erase, ends_line=True)

    def forget(self) -> None:
        """Leave the live lines on the screen, because another program has taken over the terminal."""
        with self._lock:
            self._drawn = []

    def _up(self) -> str:
        """Return the sequence that moves the cursor to the first live line.

        If the terminal was made narrower, it may have wrapped the live lines into more rows. Moving up too far would overwrite finished
        text, so the smallest possible number of rows is used. At worst, a broken line remains.
        """
        rows = len(self._drawn)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") if rows else ""


FRAME = 1 / 30
"""Minimum number of seconds between two frames."""
_TICK = 0.1
"""Number of seconds between two frames when only durations change."""
_HEIGHT = 10
"""Maximum number of live lines."""
_REPORTED = frozenset({"error", "abort"})
"""Types of chunks that are not drawn, because the command reports them on stderr."""


class ShowScreen:
    """A run shown without an input line. Without animations (TERM=dumb or `ui.animations: false`), only finished text is written."""

    def __init__(self, output: Output, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns the time to show, in seconds since the epoch."""
        self._output = output
        self._clock = clock
        self._region = Region(output)
        self._drawing = anyio.Lock()
        self._fresh = anyio.Event()
        """Set when there is something to draw."""
        self._paused = False
        self._drawn_at = 0.0
        self._finished = ""
        """Finished text that has not been printed yet. If the drawing of a frame is cancelled, the next frame prints this text."""
        self.begin("", 0)

    def begin(self, conversation: str, calls_before: int) -> None:
        """Prepare for a run of a conversation that already has `calls_before` tool calls."""
        look = look_of(self._output)
        self._animated = look.motion
        self._transcript = Transcript(
            look,
            reveal=lambda number: f"moot chat show {conversation[:13]} --call {number}" if number and conversation else "",
            calls_before=calls_before,
            announces=not look.motion,
        )

    async def event(self, event: Event) -> None:
        chunks = tuple(chunk for chunk in event.chunks if chunk.get("type") not in _REPORTED)
        self._transcript.feed(event._replace(chunks=chunks) if len(chunks) < len(event.chunks) else event)
        self._paused = False
        self._fresh.set()
        if time.monotonic() - self._drawn_at >= FRAME:
            await self._frame()

    async def keep(self) -> None:
        """Draw pending events and the durations of running calls until cancelled, and handle Ctrl+Z."""
        async with anyio.create_task_group() as group:
            group.start_soon(partial(anyio.to_thread.run_sync, preload, abandon_on_cancel=True))  # while the model is thinking
            group.start_soon(self._handle_stop)
            while True:
                with anyio.move_on_after(_TICK if self._animated and self._transcript.busy else None):
                    await self._fresh.wait()
                await anyio.sleep(max(0.0, self._drawn_at + FRAME - time.monotonic()))
                await self._frame()

    async def pause(self) -> None:
        """Release the terminal for a question to the user, until the next event."""
        await self._frame()
        self._paused = True
        self._region.lift()

    async def end(self, run: Run, message: Message | None) -> None:
        self._paused = False
        self._transcript.end()
        await self._frame()
        if self._output.stderr_terminal and (line := summary(run, message)):
            self._output.say(line, "dim")

    def leave(self) -> None:
        """Print everything received so far, when the user detaches before the run has ended."""
        self._transcript.end()
        self._draw(self._transcript.take(), [])

    async def _frame(self) -> None:
        async with self._drawing:
            if self._paused:
                return
            self._fresh = anyio.Event()
            self._drawn_at = time.monotonic()
            width, height = size_now()
            if width != self._transcript.look.width:
                self._transcript.resize(width)
            self._finished += self._transcript.take()
            live = self._transcript.live(min(_HEIGHT, height - 1), self._clock()) if self._animated else []
            if self._finished or self._animated:
                await anyio.to_thread.run_sync(self._draw, "", live, abandon_on_cancel=True)

    def _draw(self, finished: str, live: list[str]) -> None:
        taken, self._finished = self._finished + finished, ""
        self._region.draw(taken, live)

    async def _handle_stop(self) -> None:
        """On Ctrl+Z, remove the live lines before the shell shows its prompt, and redraw them when moot is resumed."""
        if signal.getsignal(signal.SIGTSTP) == signal.SIG_IGN:
            return
        stopped = False
        with anyio.open_signal_receiver(signal.SIGTSTP, signal.SIGCONT) as signals:
            async for number in signals:
                if number == signal.SIGTSTP:
                    async with self._drawing:  # a frame drawn now would remain above the shell's prompt
                        self._region.lift()
                        stopped = True
                        os.kill(os.getpid(), signal.SIGSTOP)
                elif stopped:  # the live lines were removed; those drawn since then are below the shell's prompt
                    stopped = False
                else:
                    self._region.forget()
                self._fresh.set()


def draw_messages(messages: Sequence[Message], output: Output, calls_before: int) -> None:
    """Print the messages. `calls_before` is the number of tool calls before them in the conversation."""
    where = messages[0].conversation[:13] if messages else ""
    reveal = f"moot chat show {where} --call "
    transcript = Transcript(look_of(output), reveal=lambda number: f"{reveal}{number}" if number else "", calls_before=calls_before)
    for message in messages:
        transcript.message(message)
        output.data(transcript.take())
    output.data("\n")


def draw_call(part: Part, number: int, output: Output) -> None:
    """Print a tool call in full."""
    output.data(call_of(part, number).whole(look_of(output)))
