"""`!command`: a shell command typed by the user. It needs no approval; its output is cleaned and limited."""

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

__all__ = ["ShellCommand", "ShellResult"]

MAX_SHOWN = 100_000
"""Characters shown on the screen."""
MAX_SENT = 10_000
"""Characters sent to the model, from the start and from the end each."""


@dataclass(frozen=True, slots=True)
class ShellResult:
    """The result of a shell command."""

    command: str
    code: int
    output: str

    def part(self) -> Part:
        """Return the result as a part of the next prompt."""
        ended = f"exit code {self.code}" if self.code >= 0 else f"killed by signal {-self.code}"
        return text_part(f"I ran this command myself ({ended}):\n\n$ {self.command}\n{redact(self.output, ())}")


class ShellCommand:
    """One shell command while it runs."""

    def __init__(self, command: str, directory: str, say: Callable[[str], None]) -> None:
        self._command, self._directory, self._say = command, directory, say
        self._child: Child | None = None
        self._head = self._tail = self._rest = ""
        self._shown = 0

    async def run(self) -> ShellResult:
        """Run the command to its end and print its output as it arrives. Raise Refused if it cannot be started."""
        # the user's own environment, like in a normal shell
        argv = [os.environ.get("SHELL") or "/bin/sh", "-c", self._command]
        child = self._child = await spawn(argv, cwd=Path(self._directory), env=dict(os.environ), stderr="stdout")
        assert child.stdout is not None
        cleaner, decoder = Cleaner(), codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while piece := await child.stdout.read(1 << 16):
                self._add(cleaner.feed(decoder.decode(piece)))
            code = await child.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await child.kill(0)
        self._add(cleaner.end())
        if self._rest and self._shown < MAX_SHOWN:
            self._say(self._rest)
        return ShellResult(self._command, code, self._head + (f"\n[… omitted …]\n{self._tail}" if self._tail else ""))

    def _add(self, text: str) -> None:
        room = MAX_SENT - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-MAX_SENT:]
        lines, newline, self._rest = (self._rest + text).rpartition("\n")
        self._rest = self._rest[-MAX_SHOWN:]
        if newline and self._shown < MAX_SHOWN:
            self._say(lines[: MAX_SHOWN - self._shown])
            self._shown += len(lines)
            if self._shown >= MAX_SHOWN:
                self._say("… output truncated")

    async def stop(self) -> None:
        """Kill the command and everything it started."""
        if self._child is not None:
            await self._child.kill()
