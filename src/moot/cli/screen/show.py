"""A run on a real terminal: finished text goes into the scrollback as it comes, a few lines below it move."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import anyio
import anyio.to_thread

from moot.cli.output import Output
from moot.cli.screen.region import Region
from moot.cli.screen.terminal import look_of, size_now
from moot.cli.screen.transcript import Transcript
from moot.cli.showing import summary
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run

__all__ = ["ShowScreen"]

FRAME = 1 / 30
"""Seconds between two frames, at least."""
_TICK = 0.1
"""Between frames in which nothing but time goes on."""
_HEIGHT = 10
"""Lines that are redrawn, at most."""
_ELSEWHERE = frozenset({"error", "abort"})
"""Chunks whose words the command itself says on stderr."""


class ShowScreen:
    """Draws a run without a composer; in a terminal without motion (TERM=dumb, `ui.animations: false`) only what is finished is written."""

    def __init__(self, output: Output, *, clock: Callable[[], float] = time.time) -> None:
        """`clock`: what time it is for what is drawn, seconds since the epoch."""
        self._output = output
        self._clock = clock
        self._conversation = ""
        self._region = Region(output)
        self._drawing = anyio.Lock()
        self._fresh = anyio.Event()
        """Set when something came that was not drawn yet."""
        self._paused = False
        self._drawn_at = 0.0
        self._finished = ""
        """What was taken to be printed and is not yet: whoever is cancelled on the way to the terminal leaves it to the next."""
        self.begin("", 0)

    def begin(self, conversation: str, calls_before: int) -> None:
        """Says whose run comes, and how many tool calls that conversation has already."""
        look = look_of(self._output)
        self._conversation = conversation
        self._moves = look.motion
        self._transcript = Transcript(look, reveal=self._reveal, calls_before=calls_before, announces=not look.motion)

    async def event(self, event: Event) -> None:
        chunks = tuple(chunk for chunk in event.chunks if chunk.get("type") not in _ELSEWHERE)
        self._transcript.feed(event._replace(chunks=chunks) if len(chunks) < len(event.chunks) else event)
        self._paused = False
        self._fresh.set()
        if time.monotonic() - self._drawn_at >= FRAME:
            await self._frame()

    async def keep(self) -> None:
        """Draws what was not drawn at once, and the time of what runs, until it is cancelled; heeds Ctrl+Z."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._heed_stop)
            while True:
                with anyio.move_on_after(_TICK if self._moves and self._transcript.busy else None):
                    await self._fresh.wait()
                await anyio.sleep(max(0.0, self._drawn_at + FRAME - time.monotonic()))
                await self._frame()

    async def pause(self) -> None:
        """Leaves the terminal to somebody who asks the person something; the next event takes it back."""
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
        """Keeps what was said so far when the watching ends before the run does."""
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
            live = self._transcript.live(min(_HEIGHT, height - 1), self._clock()) if self._moves else []
            if self._finished or self._moves:
                await anyio.to_thread.run_sync(self._draw, "", live, abandon_on_cancel=True)

    def _draw(self, finished: str, live: list[str]) -> None:
        taken, self._finished = self._finished + finished, ""
        self._region.draw(taken, live)

    async def _heed_stop(self) -> None:
        """Ctrl+Z: the moving lines are taken away before the shell shows its prompt, and drawn anew when the run is in front again."""
        if signal.getsignal(signal.SIGTSTP) == signal.SIG_IGN:
            return
        with anyio.open_signal_receiver(signal.SIGTSTP, signal.SIGCONT) as signals:
            async for number in signals:
                if number == signal.SIGTSTP:
                    self._region.lift()
                    os.kill(os.getpid(), signal.SIGSTOP)
                else:
                    self._region.forget()
                self._fresh.set()

    def _reveal(self, number: int) -> str:
        return f"moot chat show {self._conversation[:13]} --call {number}" if number and self._conversation else ""
