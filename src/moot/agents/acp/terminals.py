"""Commands run for an agent: in process groups of their own, with limited output, all killed when the run ends."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from moot.guard.environment import child_environment, forbidden
from moot.guard.processes import Child, spawn
from moot.types.canonical import JsonObject

KEPT, MOST_KEPT = 1_000_000, 8_000_000
"""Bytes of output kept by default, and at most. The last bytes are kept."""
_READ = 1 << 16


class _Terminal:
    """One command."""

    def __init__(self, child: Child, keep: int) -> None:
        self.child = child
        self.ended = anyio.Event()
        self.code: int | None = None
        self._keep = keep
        self._output = bytearray()
        self._dropped = False

    async def read(self) -> None:
        """Read until it has ended and its pipe is closed, or reading is cancelled."""
        stdout = self.child.stdout
        assert stdout is not None
        while data := await stdout.read(_READ):
            self._output += data
            if len(self._output) > self._keep:
                self._dropped = True
                del self._output[: len(self._output) - self._keep]
        self.code = await self.child.wait()
        self.ended.set()

    def told(self) -> JsonObject:
        """Return its output so far, without incomplete characters."""
        data = bytes(self._output)
        while self._dropped and data and data[0] & 0xC0 == 0x80:
            data = data[1:]
        result: JsonObject = {"output": data.decode("utf-8", "replace"), "truncated": self._dropped}
        return {**result, "exitStatus": self.status()} if self.ended.is_set() else result

    def status(self) -> JsonObject:
        if self.code is None or self.code >= 0:
            return {"exitCode": self.code, "signal": None}
        return {"exitCode": None, "signal": str(-self.code)}


class Terminals:
    """The terminals of one process."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._terminals: dict[str, _Terminal] = {}
        self._made = 0

    async def create(self, command: str, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], keep: int | None) -> str:
        """Run a command and return its terminal's id. Raise Refused if it can't be started."""
        argv = [command, *words]
        variables = {**child_environment(), **{name: value for name, value in env.items() if not forbidden(name)}}
        if not words and shutil.which(command, path=variables["PATH"]) is None:
            argv = ["/bin/sh", "-c", command]  # some agents send a whole command line
        child = await spawn(argv, cwd=cwd, env=variables, stderr="stdout")
        terminal = _Terminal(child, min(KEPT if keep is None else keep, MOST_KEPT))
        self._made += 1
        id = f"terminal-{self._made}"
        self._terminals[id] = terminal
        self._group.start_soon(terminal.read)
        return id

    def __contains__(self, id: str) -> bool:
        return id in self._terminals

    def output(self, id: str) -> JsonObject:
        return self._terminals[id].told()

    async def wait(self, id: str) -> JsonObject:
        """Wait for the end and return how it ended."""
        terminal = self._terminals[id]
        await terminal.ended.wait()
        return terminal.status()

    async def kill(self, id: str) -> None:
        """Kill it; its output stays available."""
        terminal = self._terminals[id]
        await terminal.child.kill(0)
        terminal.code = terminal.child.process.returncode
        terminal.ended.set()

    async def release(self, id: str) -> None:
        """Kill it and forget it."""
        await self.kill(id)
        del self._terminals[id]

    async def close(self) -> None:
        """Kill all of them. Shielded from cancellation."""
        with anyio.CancelScope(shield=True):
            for id in tuple(self._terminals):
                await self.release(id)
