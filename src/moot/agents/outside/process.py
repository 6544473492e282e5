"""An outside agent's process: lines out of it, lines into it, what it complains of, and its end within a second."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import anyio
from anyio.abc import TaskGroup

from moot.errors import ConfigError, ProviderError
from moot.guard.environment import child_environment
from moot.guard.processes import Child, spawn
from moot.guard.terminal import clean

__all__ = ["Program"]

READ = 256 * 1024
"""Bytes that are read at once, and so what one append of the log holds at most, a longer line aside."""
LONGEST = 32 * 1024 * 1024
"""Bytes of one line; a longer one ends the run, for nobody could keep it whole."""
COMPLAINT = 500
"""Characters of what it says on stderr that are told: the last."""
BEAT = 0.03
"""Seconds between two reads: what comes in many small pieces is stored and shown in fewer. What comes after a silence is read at once."""
GRACE = 1.0
"""Seconds from the wish that it ends to its end."""


class Program:
    """One running agent. Entered, it runs; left, it and all that it started are dead, whatever happened inside.

    Left without an error it has a second to end by itself.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        hint: str = "",
        keeps: Sequence[str] = (),
        longest: int = LONGEST,
    ) -> None:
        """`env` is laid over what children of ours get, `keeps` are further names of our own environment that this program needs.

        `hint` is how a missing program is installed, `longest` the bytes that a line may have.
        """
        self.argv = tuple(argv)
        self._cwd = cwd
        kept = {name: value for name in keeps if (value := os.environ.get(name)) is not None}
        self._env = {**child_environment(), **kept, **env}
        self._hint = hint
        self._longest = longest
        self._complaint = bytearray()
        self._group: TaskGroup | None = None
        self._child: Child | None = None
        self._writing = anyio.Lock()
        self._held = bytearray()
        """The beginning of a line whose end has not come; kept, so that a reading that was cancelled can be taken up."""

    async def __aenter__(self) -> Program:
        """Raises ConfigError when there is no such program, Refused when it can't be started."""
        name = self.argv[0]
        if not self._cwd.is_dir():
            raise ConfigError(f"the directory {str(self._cwd)!r} is not there, so {name!r} can't work in it")
        if shutil.which(name, path=self._env.get("PATH")) is None and not (self._cwd / name).is_file():
            raise ConfigError(f"the program {name!r} is not installed, or not on the PATH", fix=self._hint)
        self._child = await spawn(self.argv, cwd=self._cwd, env=self._env, stdin="pipe")
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._listen)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        assert self._group is not None
        try:
            if kind is None:  # it may still have something to put down
                self.close_stdin()
                await self.ended()
        finally:  # a cancel may come while it is waited for
            await self.child.kill(0)
            self._group.cancel_scope.cancel()
            passed = await self._group.__aexit__(kind, error, trace)
        return passed

    @property
    def child(self) -> Child:
        """Its process group, for the journal."""
        assert self._child is not None, "it was not started"
        return self._child

    async def reads(self) -> AsyncGenerator[tuple[bytes, ...], None]:
        """Each read's whole lines, with their ends; joined they are what it wrote. A last line without an end comes alone.

        Ends when it closes its stdout. Raises ProviderError for a line that has no end for too long, which comes first.
        """
        stdout = self.child.stdout
        assert stdout is not None
        held = self._held
        while data := await stdout.read(READ):
            due = anyio.current_time() + BEAT
            whole, newline, rest = data.rpartition(b"\n")
            if not newline:
                held += data
                if len(held) > self._longest:
                    yield (bytes(held),)
                    raise ProviderError(f"{self.argv[0]!r} sent a line of more than {self._longest} bytes", kind="protocol")
                continue  # the rest of a long line is not waited for
            held += whole
            lines = bytes(held).split(b"\n")
            held[:] = rest
            yield tuple([line + b"\n" for line in lines])
            await anyio.sleep(max(0.0, due - anyio.current_time()))
        if held:
            tail = bytes(held)
            held.clear()
            yield (tail,)

    async def write(self, line: bytes) -> None:
        """Sends a line with its end. Raises ProviderError when it does not listen any more."""
        stdin = self.child.stdin
        assert stdin is not None
        try:
            async with self._writing:
                stdin.write(line)
                await stdin.drain()
        except (ConnectionError, RuntimeError) as error:  # uvloop raises RuntimeError for a transport that is closed
            raise self.died("stopped listening") from error

    def close_stdin(self) -> None:
        """Says that nothing more comes; most agents end then."""
        if self.child.stdin is not None:
            self.child.stdin.close()

    async def ended(self, seconds: float = GRACE) -> int | None:
        """Its exit code, negative for a signal; None when it still runs after that time."""
        with anyio.move_on_after(seconds):
            return await self.child.wait()
        return None

    def died(self, how: str, code: int | None = None) -> ProviderError:
        """The failure of a program that is gone, in words, with what it complained of last."""
        ending = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
        said = self.complaint()
        return ProviderError(f"{self.argv[0]!r} {how}{ending}{f': {said}' if said else ''}", kind="transport")

    def complaint(self) -> str:
        """The last of what it said on stderr, fit for a terminal and on few lines."""
        text = clean(bytes(self._complaint).decode("utf-8", "replace")).strip()
        return text if len(text) <= COMPLAINT else f"…{text[-COMPLAINT + 1 :]}"

    async def _listen(self) -> None:
        """Reads stderr for as long as it runs, so that it never waits for us; keeps the tail."""
        stderr = self.child.stderr
        assert stderr is not None
        while data := await stderr.read(1 << 16):
            self._complaint += data
            del self._complaint[: -8 * COMPLAINT]
