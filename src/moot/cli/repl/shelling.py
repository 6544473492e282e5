"""`!cmd`: a shell line of the person's own. Nobody is asked, for they typed it; what it says is cleaned and bounded."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from moot.guard.processes import Child, spawn
from moot.guard.secrets import redact
from moot.guard.terminal import Cleaner
from moot.types.part import Part, text_part

__all__ = ["Ran", "ShellLine"]

SHOWN = 100_000
"""Characters that are put on the screen."""
KEPT = 10_000
"""Characters that a model is told of the beginning, and of the end."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a line came to."""

    command: str
    code: int
    output: str

    def part(self) -> Part:
        """For the model, with the next prompt."""
        ended = f"exit code {self.code}" if self.code >= 0 else f"ended by signal {-self.code}"
        return text_part(f"I ran this command myself ({ended}):\n\n$ {self.command}\n{redact(self.output, ())}")


class ShellLine:
    """One line while it runs."""

    def __init__(self, command: str, directory: str, say: Callable[[str], None]) -> None:
        self._command, self._directory, self._say = command, directory, say
        self._child: Child | None = None
        self._head = self._tail = self._rest = ""
        self._shown = 0

    async def run(self) -> Ran:
        """To its end, saying its lines as they come. Raises Refused when it can't be started."""
        # the person's own environment, as in the shell next to this one
        argv = [os.environ.get("SHELL") or "/bin/sh", "-c", self._command]
        child = self._child = await spawn(argv, cwd=Path(self._directory), env=dict(os.environ), stderr="stdout")
        assert child.stdout is not None
        cleaner, decoder = Cleaner(), codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while piece := await child.stdout.read(1 << 16):
                self._hear(cleaner.feed(decoder.decode(piece)))
            code = await child.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await child.kill(0)
        self._hear(cleaner.end())
        if self._rest and self._shown < SHOWN:
            self._say(self._rest)
        return Ran(self._command, code, self._head + (f"\n[… left out …]\n{self._tail}" if self._tail else ""))

    def _hear(self, text: str) -> None:
        kept = KEPT - len(self._head)
        self._head += text[:kept]
        self._tail = (self._tail + text[kept:])[-KEPT:]
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        self._rest = self._rest[-SHOWN:]
        if newline and self._shown < SHOWN:
            self._say(whole[: SHOWN - self._shown])
            self._shown += len(whole)
            if self._shown >= SHOWN:
                self._say("… the rest is not shown")

    async def stop(self) -> None:
        """Ends it and all that it started."""
        if self._child is not None:
            await self._child.kill()
