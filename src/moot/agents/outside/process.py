"""An outside agent's process: read and write lines, collect stderr, and end the process within a second."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import anyio
from anyio.abc import TaskGroup

from moot.errors import ConfigError, ProviderError
from moot.guard.processes import Child, child_environment, spawn
from moot.guard.terminal import clean

READ = 256 * 1024
"""Maximum number of bytes per read, and therefore per append to the log. A longer line is still read and appended as a whole."""
LONGEST = 32 * 1024 * 1024
"""Maximum length of a line in bytes. A longer line ends the run, because it could not be stored completely."""
COMPLAINT = 500
"""Maximum number of characters from the end of stderr to include in an error."""
BEAT = 0.03
"""Seconds between two reads, so that many small outputs are combined into fewer events. After a pause, output is read immediately."""
GRACE = 1.0
"""Number of seconds to wait for a program to exit before it is killed."""


class Program:
    """One running agent, as a context manager. After the `with` block, the agent and all its child processes have been killed.

    If the block ends without an error, the agent first has a second to exit by itself.
    """

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], hint: str = "", keeps: Sequence[str] = (), longest: int = LONGEST
    ) -> None:
        """`env` is added to the usual environment of child processes;
        `keeps` are the names of further variables of moot's own environment to pass on.

        `hint` says how to install the program if it is missing. `longest` is the maximum length of a line in bytes.
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
        self._buffer = bytearray()
        """The start of an incomplete line, stored here so that a read can continue after a cancellation."""

    async def __aenter__(self) -> Program:
        """Start the program. Raise ConfigError if it does not exist, Refused if it can't be started."""
        name = self.argv[0]
        if not self._cwd.is_dir():
            raise ConfigError(f"The working directory {str(self._cwd)!r} of {name!r} does not exist.")
        if shutil.which(name, path=self._env.get("PATH")) is None and not (self._cwd / name).is_file():
            raise ConfigError(f"The program {name!r} is not installed, or not on the PATH.", fix=self._hint)
        self._child = await spawn(self.argv, cwd=self._cwd, env=self._env, stdin="pipe")
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._listen)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        assert self._group is not None
        try:
            if kind is None:  # it may still have something to save
                self.close_stdin()
                await self.ended()
        finally:  # a cancel may arrive during the wait
            await self.child.kill(0)
            self._group.cancel_scope.cancel()
            passed = await self._group.__aexit__(kind, error, trace)
        return passed

    @property
    def child(self) -> Child:
        """Return the running process."""
        assert self._child is not None, "it was not started"
        return self._child

    async def reads(self) -> AsyncGenerator[tuple[bytes, ...], None]:
        """Yield the complete lines of each read, including line ends. A last line that has no line end is yielded separately.

        Stop when the agent closes its stdout. Raise ProviderError if a line exceeds the limit.
        """
        stdout = self.child.stdout
        assert stdout is not None
        buffer = self._buffer
        while data := await stdout.read(READ):
            due = anyio.current_time() + BEAT
            whole, newline, rest = data.rpartition(b"\n")
            if not newline:
                buffer += data
                if len(buffer) > self._longest:
                    yield (bytes(buffer),)
                    raise ProviderError(f"{self.argv[0]!r} sent a line of more than {self._longest:,} bytes.", kind="protocol")
                continue  # the rest of a long line is available at once
            buffer += whole
            lines = bytes(buffer).split(b"\n")
            buffer[:] = rest
            yield tuple([line + b"\n" for line in lines])
            await anyio.sleep(max(0.0, due - anyio.current_time()))
        if buffer:
            tail = bytes(buffer)
            buffer.clear()
            yield (tail,)

    async def write(self, line: bytes) -> None:
        """Write a line. Raise ProviderError if the agent has closed its stdin."""
        stdin = self.child.stdin
        assert stdin is not None
        try:
            async with self._writing:
                stdin.write(line)
                await stdin.drain()
        except (ConnectionError, RuntimeError) as error:  # uvloop raises RuntimeError for a closed transport
            raise self.died("stopped reading its input") from error

    def close_stdin(self) -> None:
        """Close stdin, which makes most agents exit."""
        if self.child.stdin is not None:
            self.child.stdin.close()

    async def ended(self, seconds: float = GRACE) -> int | None:
        """Return the exit code (negative for a signal), or None if the program is still running after `seconds`."""
        with anyio.move_on_after(seconds):
            return await self.child.wait()
        return None

    def died(self, how: str, code: int | None = None) -> ProviderError:
        """Return an error for a program that has exited, including the end of its stderr."""
        ending = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
        text = self.complaint()
        return ProviderError(f"{self.argv[0]!r} {how}{ending}{f': {text}' if text else '.'}", kind="transport")

    def complaint(self) -> str:
        """Return the end of the program's stderr, safe to print in a terminal."""
        text = clean(bytes(self._complaint).decode("utf-8", "replace")).strip()
        return text if len(text) <= COMPLAINT else f"…{text[-COMPLAINT + 1 :]}"

    async def _listen(self) -> None:
        """Read stderr while the program is running, so that its writes never block, and keep the end."""
        stderr = self.child.stderr
        assert stderr is not None
        while data := await stderr.read(1 << 16):
            self._complaint += data
            del self._complaint[: -8 * COMPLAINT]
