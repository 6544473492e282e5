"""Child processes and their environment. Only this module starts them, each in its own process group that can be killed as a whole.

Programs that the user works with in moot's terminal are an exception and share moot's process group. `cli.terminal.foreground` copies
moot's own process.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Literal, TextIO

import anyio
import anyio.abc
from anyio import to_thread

from moot.errors import Refused, UsageError
from moot.plugins.registry import attribute
from moot.types.sandbox import Confinement

ALLOWED = frozenset({"COLORTERM", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"})
_ALLOWED_PATTERN = re.compile(r"LC_[A-Z]+")

# secrets, and variables that make other programs load or run arbitrary code
_FORBIDDEN = re.compile(
    r"MOOT_.*|.*_API_?KEY|.*_TOKEN|.*_SECRET(_KEY|_ACCESS_KEY)?|.*PASSW(OR)?D|.*_CREDENTIALS?"
    r"|LD_.*|DYLD_.*|PYTHON(PATH|STARTUP|HOME|INSPECT|BREAKPOINT)|BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|IFS|GIT_.*"
    r"|NODE_OPTIONS|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|JAVA_TOOL_OPTIONS|BASH_FUNC_.*",
    re.IGNORECASE,
)
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


def child_environment(names: Iterable[str] = (), source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of `source` (by default, moot's environment) to pass to a child: the usual harmless ones and `names`.

    Raise UsageError for a name that is never passed on.
    """
    requested = frozenset(names)
    for name in sorted(requested):
        if forbidden(name):
            fix = "Remove it from the tool's `environment` list."
            raise UsageError(f"The environment variable {name!r} is never passed to commands.", fix=fix)
    variables = os.environ if source is None else source
    child = {name: value for name, value in variables.items() if name in ALLOWED or name in requested or _ALLOWED_PATTERN.fullmatch(name)}
    # empty and relative entries refer to the working folder, which may contain untrusted files
    child["PATH"] = ":".join(folder for folder in child.get("PATH", "").split(":") if folder.startswith("/")) or _FALLBACK_PATH
    return child


def forbidden(name: str) -> bool:
    """Return True if a variable is never passed to children."""
    return _FORBIDDEN.fullmatch(name) is not None


MARK = "CHILD_OF_MOOT"
"""Environment variable with a unique value in each child. It identifies descendants that left the process group, such as daemons."""
GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_POLL = 0.02
_ROUNDS = 20
_PROC = Path("/proc")

# waits for a line on stdin before executing the command; exits if moot dies first, which closes its input
_GATE = ("/bin/sh", "-c", 'IFS= read -r _ || exit 125; exec "$@" </dev/null', "sh")

_SANDBOX = "moot.guard.sandbox.mechanisms"  # loaded for the first command that a model runs

Pipe = Literal["pipe", "null"]
_NO_PIPE = {"null": DEVNULL, "stdout": STDOUT}


@dataclass(frozen=True, slots=True)
class Child:
    """A running child process and its descendants."""

    process: Process
    stdout: asyncio.StreamReader | None
    stderr: asyncio.StreamReader | None
    started: str
    """Start time of the process, for `kill_leftover`; empty if the system does not provide it."""
    _mark: str
    _pipes: tuple[asyncio.ReadTransport, ...]

    @property
    def group(self) -> int:
        """The id of the process group, which is also the process id and session id."""
        return self.process.pid

    @property
    def stdin(self) -> asyncio.StreamWriter | None:
        return self.process.stdin

    async def release(self) -> None:
        """Let a gated child (see `spawn`) run its command."""
        assert self.stdin is not None
        with suppress(ConnectionError):  # it is already dead, as `wait` will report
            self.stdin.write(b"\n")
            await self.stdin.drain()
        self.stdin.close()

    async def wait(self) -> int:
        """Wait for the child and return its exit code, or minus the signal that killed it. Descendants may still be running."""
        return await self.process.wait()

    async def kill(self, grace: float = GRACE) -> None:
        """Kill the child and all its descendants, including those outside of its group, and close its pipes.

        Not cancellable: a cancelled caller waits for it.
        """
        with anyio.CancelScope(shield=True):
            await kill_group(self.group, grace)
            for _ in range(_ROUNDS):
                if not _kill_marked(self._mark):
                    break
            self.close()
            with anyio.move_on_after(GRACE):  # a process stuck in the kernel can't be waited for
                await self.process.wait()

    def close(self) -> None:
        """Stop reading from the child."""
        if self.stdin is not None:
            self.stdin.close()
        for pipe in self._pipes:
            pipe.close()


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a finished command."""

    code: int | None
    """Exit code; None if the command was killed because of the time limit or too much output."""
    stdout: bytes
    stderr: bytes


async def spawn(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Pipe = "null",
    stdout: Pipe = "pipe",
    stderr: Literal["pipe", "null", "stdout"] = "pipe",
    gated: bool = False,
    fds: tuple[int, ...] = (),
    sandbox: Confinement | None = None,
) -> Child:
    """Start a child in its own session and process group. Without `env`, it gets the variables of `child_environment`.

    If `gated`, the child does nothing until `release` is called; then its stdin is closed. It inherits the descriptors `fds`, except in a
    sandbox. No shell interprets the arguments. Pass a `sandbox` for everything that a model causes to run. Starting is not cancellable:
    even a cancelled caller gets the child and must kill it. Raise Refused if the child can't be started.
    """
    mark = token_hex(16)
    variables = {**(child_environment() if env is None else env), MARK: mark}
    if sandbox is not None:
        try:
            argv, variables = await to_thread.run_sync(attribute(f"{_SANDBOX}:wrap"), argv, sandbox, variables)
        except OSError as error:
            raise Refused(f"The sandbox for {argv[0]!r} could not be prepared: {error}") from error
    held = sandbox is not None and stdin == "null"  # gate it too, so that the resource limits are set before the command starts
    outputs: list[_Pipe | None] = []
    process: asyncio.subprocess.Process | None = None
    with anyio.CancelScope(shield=True):  # asyncio kills only the child, not its descendants, if it is cancelled while starting it
        outputs = [await _pipe() if wanted == "pipe" else None for wanted in (stdout, stderr)]
        try:
            process = await asyncio.create_subprocess_exec(
                *(_GATE if gated or held else ()),
                *argv,
                cwd=cwd,
                env=variables,
                stdin=PIPE if gated or held or stdin == "pipe" else DEVNULL,
                stdout=outputs[0].ours if outputs[0] else DEVNULL,
                stderr=outputs[1].ours if outputs[1] else _NO_PIPE[stderr],
                start_new_session=True,
                pass_fds=fds,
            )
        except (OSError, ValueError) as error:
            for pipe in outputs:
                if pipe is not None:
                    pipe.transport.close()
            raise Refused(f"{argv[0]!r} could not be started in {str(cwd or Path.cwd())!r}: {error}") from error
        finally:
            for pipe in outputs:
                if pipe is not None:
                    os.close(pipe.ours)
    assert process is not None
    readers = [pipe.reader if pipe else None for pipe in outputs]
    transports = tuple(pipe.transport for pipe in outputs if pipe)
    child = Child(process, readers[0], readers[1], process_started(process.pid), mark, transports)
    if sandbox is not None:
        attribute(f"{_SANDBOX}:limit")(process.pid)
        if held and not gated:
            await child.release()
    return child


async def foreground(
    argv: Sequence[str], *, stdout: TextIO | None = None, env: Mapping[str, str] | None = None, fds: tuple[int, ...] = ()
) -> anyio.abc.Process:
    """Start a program chosen by the user in moot's terminal, such as an editor. Leaving its `async with` block waits for it.

    It shares moot's process group, so that Ctrl+Z stops both, and by default moot's environment, because no model chose it. It inherits
    the descriptors `fds`. Raise OSError, or ValueError for a NUL in the name, if it can't be started, so that the caller can report which
    setting named the program.
    """
    return await anyio.open_process(argv, stdin=None, stdout=stdout, stderr=None, env=env, pass_fds=fds)


@dataclass(frozen=True, slots=True)
class _Pipe:
    # moot creates the pipes, because asyncio's can't be closed while a daemon started by the child holds them open
    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport
    ours: int


async def _pipe() -> _Pipe:
    read, write = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", buffering=0)
    )
    return _Pipe(reader, transport, write)


async def output(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    limit: int = 10_000_000,
    sandbox: Confinement | None = None,
) -> Output:
    """Run a command and return its output, at most `limit` bytes of each stream. Raise Refused if it can't be started."""
    child = await spawn(argv, cwd=cwd, env=env, sandbox=sandbox)
    stdout, stderr = bytearray(), bytearray()
    code: int | None = None
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        async with asyncio.timeout(timeout):
            async with asyncio.TaskGroup() as group:
                group.create_task(_fill(child.stdout, stdout, limit))
                group.create_task(_fill(child.stderr, stderr, limit))
            code = await child.wait()
    except* (TimeoutError, _Full):
        code = None
    finally:
        if code is None or sandbox is not None:  # a command started for a model must leave no processes behind
            await child.kill(0)
        child.close()
    return Output(code, bytes(stdout), bytes(stderr))


class _Full(Exception):
    pass


async def _fill(stream: asyncio.StreamReader, into: bytearray, limit: int) -> None:
    while piece := await stream.read(1 << 16):
        into += piece[: limit - len(into)]
        if len(into) >= limit:
            raise _Full


async def kill_group(group: int, grace: float = GRACE) -> None:
    """Send SIGTERM to a process group, then SIGKILL. Return when it is gone, or one second after SIGKILL."""
    if grace > 0 and _signal(group, signal.SIGTERM) and await _gone(group, grace):
        return
    if _signal(group, signal.SIGKILL):
        await _gone(group, 1.0)


async def kill_leftover(group: int, started: float | str) -> bool:
    """Kill a process group that outlived the moot process that started it. Return False if it is gone or its id was reused."""
    if group <= 1 or not started or process_started(group) not in ("", str(started)) or not _alive(group):
        return False
    await kill_group(group)
    return True


def process_started(pid: int) -> str:
    """Return a start time that distinguishes the process from later ones with the same id; empty if it is unknown."""
    try:
        fields = _stat(pid)
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return f"{boot}/{fields[19]}"


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on (proc(5)). The second, a name, may contain anything."""
    return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _signal(group: int, number: signal.Signals) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # it now runs as another user
        return False
    return True


async def _gone(group: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while _alive(group):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_POLL)
    return True


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    states: list[str] = []
    for pid in _pids():
        with suppress(OSError, IndexError):
            if (fields := _stat(pid))[2] == str(group):
                states.append(fields[0])
    # a zombie is dead, even if its parent has not waited for it
    return not states or any(state not in "ZX" for state in states)


def _pids() -> list[int]:
    try:
        return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _kill_marked(mark: str) -> bool:
    """Kill all processes with this value of `MARK`. Return True if there were any."""
    wanted = f"{MARK}={mark}".encode()
    found = False
    for pid in _pids():
        with suppress(OSError):  # gone, or owned by another user
            if wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
                found = True
    return found
