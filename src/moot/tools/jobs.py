"""Commands that run in the foreground or the background, and their bounded output. No process is left running."""

from __future__ import annotations

import asyncio
import codecs
import re
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from moot.guard.processes import Child, spawn
from moot.guard.sandbox.protected import Watch
from moot.guard.terminal import Cleaner
from moot.types.blob import Blobs
from moot.types.canonical import JsonObject
from moot.types.limits import TAIL_BYTES as SHOWN_TAIL_BYTES
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.sandbox import Confinement
from moot.types.tool import FullOutput

KEPT_BYTES = 64 << 20
"""Default of `tools.shell.kept_bytes`: output up to this many bytes is kept completely."""
MEMORY_BYTES = 1 << 20
"""Maximum number of bytes of output that stay in memory. More output is written to an unnamed temporary file."""
TAIL_BYTES = 200_000
_PIECE = 1 << 18
_HEAD_SHARE = 8 / 30
_NOTE_CHARACTERS = 1_000
"""Maximum number of characters reserved for the note about the omitted part."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The extent of a spool's content at one moment."""

    head: int
    """Number of bytes kept from the start."""
    missing: int
    tail: bytes


class Spool:
    """A buffer for output of any size, which keeps only the start and the end. A full disk does not affect the command."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self.total = 0
        self._kept = kept
        self._head = 0
        self._tail = bytearray()
        self._file = tempfile.SpooledTemporaryFile(MEMORY_BYTES, prefix="moot-output-")  # noqa: SIM115 - `close` closes it
        # a cancelled call does not wait for its thread, which may still be writing while others read
        self._lock = threading.Lock()

    async def add(self, piece: bytes) -> None:
        if self.total + len(piece) <= MEMORY_BYTES:
            self._add(piece)
        else:
            await to_thread.run_sync(self._add, piece)

    def snapshot(self) -> Snapshot:
        """Return the current extent of the content, for `pieces`."""
        with self._lock:
            tail = bytes(self._tail[-TAIL_BYTES:])
            return Snapshot(self._head, self.total - self._head - len(tail), tail)

    def pieces(self, snapshot: Snapshot) -> Iterator[bytes]:
        """Yield the content at the time of the snapshot, with a note about missing bytes. Blocks, so call it in a thread."""
        for at in range(0, snapshot.head, _PIECE):
            with self._lock:
                self._file.seek(at)
                piece = self._file.read(min(_PIECE, snapshot.head - at))
            yield piece
        if snapshot.missing:
            yield b"\n[%d bytes omitted]\n" % snapshot.missing
        if snapshot.tail:
            yield snapshot.tail

    def end(self, size: int) -> bytes:
        """Return the last bytes, at most `size`."""
        with self._lock:
            if len(self._tail) >= size:
                return bytes(self._tail[-size:])
            self._file.seek(max(0, self._head + len(self._tail) - size))
            return (self._file.read() + bytes(self._tail))[-size:]

    def close(self) -> None:
        """Delete the temporary file. Nothing can be read afterwards."""
        with self._lock:
            self._file.close()

    def _add(self, piece: bytes) -> None:
        with self._lock:
            if self._file.closed:
                return
            self.total += len(piece)
            room = max(self._kept - self._head, 0)
            written = self._write(piece[:room]) if room and not self._tail else 0
            self._tail += piece[written:]
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]

    def _write(self, piece: bytes) -> int:
        """Append to the file and return the number of bytes written."""
        try:
            self._file.seek(self._head)
            self._file.write(piece)
            self._file.flush()
        except OSError:
            return 0  # partially written data is overwritten, or never read
        self._head += len(piece)
        return len(piece)


class _Excerpt:
    """The start and end of a spool's text, cleaned for models and users, and its length."""

    def __init__(self, limit: int) -> None:
        self.characters = 0
        self.rows = 1
        self.head = ""
        self.tail = ""
        self.head_length = int(limit * _HEAD_SHARE)
        self.kept = limit - min(_NOTE_CHARACTERS, limit // 4)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cleaner = Cleaner()

    def read(self, pieces: Iterator[bytes]) -> _Excerpt:
        for piece in pieces:
            self.rows += piece.count(b"\n")
            self._take(self._cleaner.feed(self._decoder.decode(piece)))
        self._take(self._cleaner.feed(self._decoder.decode(b"", final=True)) + self._cleaner.end())
        return self

    def _take(self, text: str) -> None:
        self.characters += len(text)
        if (room := self.kept - len(self.head)) > 0:
            self.head += text[:room]
        self.tail = (self.tail + text)[-(self.kept - self.head_length) :]


async def shown_output(spool: Spool, blobs: Blobs, limit: int = TOOL_OUTPUT_CHARACTERS) -> tuple[str, FullOutput | None]:
    """Return the output for a model, without control sequences and invalid UTF-8. If it is too long, omit its middle and store all of it in
    a blob."""
    snapshot = spool.snapshot()
    read = await to_thread.run_sync(_Excerpt(limit).read, spool.pieces(snapshot))
    omitted = read.characters - read.kept
    if omitted <= 0:
        return read.head, None
    blob = await blobs.put_from(_threaded(spool.pieces(snapshot)), "text/plain")
    middle = f"\n[… {omitted:,} characters omitted; read_file shows everything with path blob:{blob.sha256} …]\n"
    tail = read.tail[-SHOWN_TAIL_BYTES:].encode()[-SHOWN_TAIL_BYTES:].decode("utf-8", "ignore")
    return read.head[: read.head_length] + middle + read.tail, FullOutput(blob.sha256, blob.size, read.rows, tail)


async def _threaded(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (piece := await to_thread.run_sync(next, pieces, None)) is not None:
        yield piece


OUTPUT_BYTES = 200_000_000
"""Maximum number of bytes of output. A command that writes more is killed."""
LINGER = 0.3
"""Seconds to wait for output after the command has exited, if a process it started keeps the pipe open."""


@dataclass(slots=True)
class Job:
    """A running or finished command."""

    command: str
    child: Child
    spool: Spool
    code: int | None = None
    """Exit code; None if the command is still running or was killed by moot."""
    stop_reason: str = ""
    """Reason why moot killed the command; empty if it did not."""
    task: asyncio.Task[None] | None = None
    sandbox: Confinement | None = None
    watch: Watch | None = None
    findings: tuple[str, ...] = ()
    """Sentences about protected files that the command changed."""

    @property
    def state(self) -> str:
        """The state as shown to the model."""
        if self.stop_reason:
            return self.stop_reason
        return "running" if self.code is None else f"exit code {self.code}"


class Jobs:
    """The background commands of a conversation, by id."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    async def add(self, job: Job) -> str:
        """Start reading the job's output and return its id."""
        id = str(len(self.jobs) + 1)
        self.jobs[id] = job
        # meant to outlive the call; `end`, `aclose` or the end of the event loop cancels it, which kills the command
        job.task = asyncio.create_task(drain(job), name=f"shell {id}")
        await asyncio.sleep(0)  # a task cancelled before its first step does not clean up
        return id

    async def end(self, job: Job) -> None:
        """Kill a job and all processes it started."""
        if job.task is not None and not job.task.done():
            job.stop_reason = "killed"
            job.task.cancel()
            with suppress(asyncio.CancelledError):
                await job.task

    async def aclose(self) -> None:
        """Kill all jobs and discard their output."""
        for job in self.jobs.values():
            await self.end(job)
            job.spool.close()


def shell_words(command: str) -> list[str]:
    """Return the program and arguments that run a shell line."""
    return [shutil.which("bash", path="/bin:/usr/bin") or "/bin/sh", "-c", command]


async def start(
    command: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    note: Callable[[JsonObject], Awaitable[None]],
    kept_bytes: int = KEPT_BYTES,
    sandbox: Confinement | None = None,
) -> Job:
    """Start a command. Its process group is recorded in the journal before it runs. `kept_bytes` of its output are kept completely."""
    argv = shell_words(command)
    watch = None if sandbox is None else await to_thread.run_sync(Watch.start, sandbox)
    child = await spawn(argv, cwd=cwd, env=env, stderr="stdout", gated=True, sandbox=sandbox)
    try:
        await note({"pgid": child.group, "started": child.started})
        await child.release()
    except BaseException:
        await child.kill(0)
        raise
    return Job(command, child, Spool(kept_bytes), sandbox=sandbox, watch=watch)


_BLOCKED = (
    *("Permission denied", "Read-only file system", "Operation not permitted", "Network is unreachable", "Name or service not known"),
    *(
        "Temporary failure in name resolution",
        "Could not resolve",
        "EAI_AGAIN",
        "ENETUNREACH",
        "EROFS",
        "EACCES",
        "No such file or directory",
    ),
    *("No such file or directory", "Connection refused", "Device or resource busy", "not a git repository"),
)
_GIT_SETTINGS = re.compile(r"could not lock config file|\.git/(config|hooks)\b|could not write config file")
_GIT_REPOSITORY = re.compile(
    r"/\.git/\S*: (Read-only file system|Permission denied|Device or resource busy)"
    r"|^fatal: .*: unable to create directory for \S*/\.git/|^Cannot save the current status$",  # the last one is of `git stash`
    re.MULTILINE,
)


def hint_of(text: str, sandbox: Confinement, advice: str) -> str:
    """Return a hint with the advice if a command's output suggests that its sandbox made it fail; otherwise an empty string."""
    if _GIT_SETTINGS.search(text):
        return f"[sandbox: .git/config and .git/hooks are read-only. To change them, {advice}.]"
    if _GIT_REPOSITORY.search(text):
        return f"[sandbox: in a worktree, commands can't change the rest of the repository, such as other branches. To do it, {advice}.]"
    if not any(words in text for words in _BLOCKED):
        return ""
    folders = ", ".join(str(folder) for folder in sandbox.writable)
    network = "can use the network" if sandbox.network else "has no network"
    reach = f"sees the system and {folders}" if folders else "can change nothing"
    return f"[sandbox: the command {reach}, and {network}. If that is why it failed, {advice}.]"


async def drain(job: Job) -> None:
    """Read the command's output to its end, then kill any remaining processes. If cancelled, kill all of them."""
    reading = asyncio.create_task(_read(job))
    waiting = asyncio.create_task(job.child.wait())
    try:
        await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not job.stop_reason and waiting.done():
            await asyncio.wait({reading}, timeout=LINGER)
        if not job.stop_reason:
            job.code = await waiting
    finally:
        reading.cancel()
        await job.child.kill(2.0 if job.code is None else 0)
        await asyncio.gather(reading, waiting, return_exceptions=True)
        if job.watch is not None:
            with anyio.CancelScope(shield=True):  # also after a cancelled command
                job.findings = tuple(await to_thread.run_sync(job.watch.finish))


async def _read(job: Job) -> None:
    assert job.child.stdout is not None
    while piece := await job.child.stdout.read(1 << 18):
        await job.spool.add(piece)
        if job.spool.total > OUTPUT_BYTES:
            job.stop_reason = f"killed: it wrote more than {OUTPUT_BYTES // 1_000_000} MB"
            return
