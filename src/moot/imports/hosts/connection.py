"""A connection to another machine: one ssh process that runs a shell there, which lists files and sends parts of them.

Each answer ends with a line that starts with a random word, so that neither the content of files nor greetings of the machine can be
mistaken for it. All answers are limited in size, and the machine must keep sending.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import anyio
from anyio import to_thread

from moot.config.settings import HostSettings
from moot.errors import HostError, Refused
from moot.guard.processes import Child, child_environment, spawn
from moot.guard.terminal import clean
from moot.imports.hosts.places import Places

_CONNECT = 15
"""Maximum seconds to connect."""
_OPTIONS = (
    *("BatchMode=yes", f"ConnectTimeout={_CONNECT}", "ServerAliveInterval=15", "ServerAliveCountMax=4", "RequestTTY=no"),
    *("ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no", "RemoteCommand=none"),
)
_VARIABLES = ("SSH_AUTH_SOCK", "KRB5CCNAME", "XDG_RUNTIME_DIR")
_GREETING = 256 << 10
"""Maximum bytes that the machine may print before the shell answers."""
_LISTED = 128 << 20
"""Maximum size of a list of files, in bytes."""
_RECORD = 8 << 10
"""Maximum size of an entry of the list, in bytes."""
_NAME = 255
"""Maximum length of the name of a file or folder, in bytes."""
_FILES = 1_000_000
"""Maximum number of files in the list."""
_WANTED = 300_000
"""Maximum number of files to copy, which limits the memory."""
_SLOWEST = 1 << 10
"""Minimum number of bytes per second of an answer that takes longer than the timeout."""
_ERRORS = 16 << 10
_PATIENCE = 5
_READ = 256 << 10
_DEEP = 16
"""Maximum depth of folders below a place."""

_BEGIN = """LC_ALL=C; export LC_ALL; unset CDPATH; n={nonce}
cd {home} 2>/dev/null || {{ printf '\\n%s home\\n' "$n"; exit 3; }}
if find . -maxdepth 0 -printf '' >/dev/null 2>&1 </dev/null; then k=gnu
elif stat -f '%z' . >/dev/null 2>&1 </dev/null; then k=bsd
elif stat -c '%s' . >/dev/null 2>&1 </dev/null; then k=busybox
else printf '\\n%s tools\\n' "$n"; exit 4; fi
s() {{ printf '%s ' "$n"; for p; do
if [ -f "$p" ] && [ ! -L "$p" ]; then case $k in
gnu) r=$(find "$p" -maxdepth 0 -printf '%s %T@ %i') ;;
bsd) r=$(stat -f '%z %Fm %i' "$p") ;;
*) r=$(stat -c '%s %Y %i' "$p") ;;
esac || r=; else r=; fi; printf '%s ' "${{r:-- - -}}"; done </dev/null 2>/dev/null; printf '.\\n'; }}
f() {{ if [ -f "$1" ] && [ ! -L "$1" ]; then tail -c "+$2" "$1" </dev/null 2>/dev/null | head -c "$3"; fi; printf '\\n%s.\\n' "$n"; }}
printf '\\n%s ready %s\\n' "$n" "$(date +%s)"
"""
_PLACE = """if [ -L "$p" ] && [ -f "$p" ]; then printf 'link %s\\0' "$p"; elif [ -e "$p" ]; then set -- "$@" "$p"; fi"""
"""Commands for one place. The folder of a place can be a link; links to files are only listed, and links below a place are not followed."""
# the parentheses before the patterns of `case` are for the shell of macOS, bash 3.2, which otherwise ends `$(` at the first of them
_FIND = """e=0; l='*
*'; {{ if [ $# -gt 0 ]; then e=$({{ case $k in
(gnu) find -H "$@" -maxdepth {deep} -type f -printf '%s %T@ %i %p\\0' >&4; echo $? >&3 ;;
(bsd) {{ find -H "$@" -maxdepth {deep} -type f ! -path "$l" -exec stat -f '%z %Fm %i %N' {{}} +; echo $? >&3; }} | tr '\\n' '\\000' >&4 ;;
(*) {{ find -H "$@" -maxdepth {deep} -type f ! -path "$l" -exec stat -c '%s %Y %i %n' {{}} +; echo $? >&3; }} | tr '\\n' '\\000' >&4 ;;
esac; }} 3>&1 2>/dev/null </dev/null); fi; }} 4>&1; printf '\\n%s %s.\\n' "$n" "$e"
"""
_NUMBERS = re.compile(r"(\d{1,18}) (-?\d{1,20}(?:\.\d{1,10})?) (\d{1,20})")
LATEST = 1 << 33
"""The latest time that a machine or a file can have, in seconds since the epoch: the year 2242."""

Sink: TypeAlias = Callable[[bytes], Awaitable[None]]


class FileState(NamedTuple):
    """The state of a file on the other machine. A change in any field shows that the file has changed."""

    size: int
    modified: str
    """Time of the last change in seconds since the epoch, as the machine printed it."""
    inode: str


class Part(NamedTuple):
    """A part of a file, as a position and a number of bytes."""

    path: str
    start: int
    size: int


@dataclass(slots=True)
class Listing:
    """The files of another machine."""

    files: dict[str, FileState] = field(default_factory=dict[str, FileState])
    problems: list[str] = field(default_factory=list[str])
    is_complete: bool = True
    now: int = 0
    """Time of the machine in seconds since the epoch."""


@dataclass(slots=True)
class Connection:
    """A shell on another machine."""

    child: Child
    destination: str
    timeout: float
    """Maximum seconds without any data."""
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    now: int = 0
    _buffer: bytearray = field(default_factory=bytearray)

    async def list(self, places: Places) -> Listing:
        """Return all wanted files. Names that can't be those of agents' files are reported as problems."""
        lines = ["set --", *(_loop(place.path) for place in places.all), _FIND.format(deep=_DEEP)]
        self.send("\n".join(lines))
        found = Listing(now=self.now)
        reader = _ListReader(places, found)

        async def add(chunk: bytes) -> None:
            await to_thread.run_sync(reader.feed, chunk)

        with anyio.move_on_after(self.timeout * 10):
            await self.until(f"\n{self.nonce} ".encode(), _LISTED, add)
            end = (await self.line(64)).decode("ascii", "replace")
            reader.close()
            if end != "0.":
                found.is_complete = False
                found.problems.append("Some folders can't be read.")
            return found
        raise HostError("Listing the files took too long.", fix="List fewer agents for this host in the configuration.")

    async def part(self, part: Part, sink: Sink) -> None:
        """Receive a part that was requested with `send`. It is shorter if the file has become shorter."""
        await self.until(f"\n{self.nonce}.\n".encode(), part.size, sink)

    async def states(self, count: int) -> list[FileState | None]:
        """Receive the states that were requested with `send`. None means that there is no such file."""
        await self.until(f"{self.nonce} ".encode(), 0, _nothing)
        words = (await self.line(count * 64 + 64)).decode("ascii", "replace").removesuffix(".").split()
        if len(words) != count * 3:
            raise HostError("The machine did not send the state of a file.")
        return [_state(" ".join(words[at : at + 3])) for at in range(0, len(words), 3)]

    # ── bytes ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, script: str) -> None:
        """Send commands in the background, because the machine may wait until their answers are received."""
        assert self.child.stdin is not None
        if not self.child.stdin.is_closing():  # otherwise, the answers end
            self.child.stdin.write(os.fsencode(script) + b"\n")

    async def until(self, mark: bytes, limit: int, sink: Sink) -> None:
        """Pass the bytes before the mark to `sink`, and drop the mark.

        Raise HostError if there are more than `limit` bytes, or if they arrive too slowly.
        """
        passed, started = 0, anyio.current_time()
        while (at := self._buffer.find(mark)) < 0:
            keep = len(mark) - 1
            if len(self._buffer) > keep:
                chunk = bytes(self._buffer[:-keep])
                del self._buffer[:-keep]
                passed += len(chunk)
                if passed > limit:
                    raise HostError("The machine sent more data than expected.")
                await sink(chunk)
            await self._more()
            if anyio.current_time() - started > self.timeout + passed / _SLOWEST:
                raise HostError("The machine is sending too slowly.", fix="Check the connection, or raise its timeout.")
        if passed + at > limit:
            raise HostError("The machine sent more data than expected.")
        if at:
            await sink(bytes(self._buffer[:at]))
        del self._buffer[: at + len(mark)]

    async def line(self, limit: int) -> bytes:
        """Return the rest of a line."""
        line = bytearray()

        async def add(chunk: bytes) -> None:
            line.extend(chunk)

        await self.until(b"\n", limit, add)
        return bytes(line)

    async def _more(self) -> None:
        assert self.child.stdout is not None
        try:
            with anyio.fail_after(self.timeout):
                data = await self.child.stdout.read(_READ)
        except TimeoutError:
            raise HostError(
                f"The machine sent nothing for {self.timeout:g} seconds.", fix="Check the connection, or raise its timeout."
            ) from None
        if not data:
            raise await self._ended()
        self._buffer += data

    async def _ended(self) -> HostError:
        assert self.child.stderr is not None
        code, errors = None, b""
        with anyio.move_on_after(_PATIENCE):
            code = await self.child.wait()
            errors = await self.child.stderr.read(_ERRORS)
        words = [clean(line).strip() for line in errors.decode("utf-8", "replace").splitlines()]
        reason = next((line for line in reversed(words) if line), "")
        if code == 255:
            return HostError(
                f"ssh failed: {reason or 'the connection was closed'}", fix=f"Check that 'ssh {self.destination}' works without prompting."
            )
        return HostError(f"The connection ended early{f': {reason}' if reason else '.'}")


@asynccontextmanager
async def connect(host: HostSettings) -> AsyncGenerator[Connection, None]:
    """Provide a shell on another machine. Raise HostError if it can't be reached or has no suitable tools."""
    try:
        child = await spawn(ssh_command(host), env=child_environment(_VARIABLES), stdin="pipe")
    except Refused as error:
        raise HostError(f"ssh can't be started: {error.message}", fix="Install an ssh client.") from error
    connection = Connection(child, host.ssh, host.timeout)
    try:
        connection.send(_BEGIN.format(nonce=connection.nonce, home=shlex.quote(host.home) if host.home else '"$HOME"'))
        await connection.until(f"\n{connection.nonce} ".encode(), _GREETING, _nothing)
        words = (await connection.line(64)).split()
        if words[:1] == [b"home"]:
            raise HostError(
                f"The home folder {host.home or '$HOME'!r} can't be opened on the machine.", fix="Check 'home' in the configuration."
            )
        if words[:1] != [b"ready"] or not words[-1].isdigit():
            raise HostError("The machine has neither GNU find nor stat.")
        connection.now = int(words[-1])
        if connection.now > LATEST:
            raise HostError("The machine's clock is set to an invalid time.", fix="Correct its clock.")
        yield connection
    finally:
        await child.kill(0)


def ssh_command(host: HostSettings) -> list[str]:
    """Return the command that starts a shell on the other machine. It never asks for a password."""
    options = [word for option in _OPTIONS for word in ("-o", option)]
    port = ["-p", str(host.port)] if host.port else []
    identity = ["-i", host.identity, "-o", "IdentitiesOnly=yes"] if host.identity else []
    return ["ssh", "-T", *options, *port, *identity, "--", host.ssh, "exec sh -s"]


def commands(parts: Sequence[Part], watched: Iterable[str]) -> str:
    """Return the commands that send parts of files, then the states of the watched files."""
    lines = [f"f {_quoted(part.path)} {part.start + 1} {part.size}" for part in parts]
    return "\n".join([*lines, f"s {' '.join(map(_quoted, watched))}"])


def _quoted(path: str) -> str:
    return shlex.quote(f"./{path}")


def _loop(path: str) -> str:
    words = "/".join(part if part == "*" else "*".join(map(shlex.quote, part.split("*"))) for part in path.split("/")).replace("''", "")
    return f"for p in ./{words}; do {_PLACE}; done"


async def _nothing(data: bytes) -> None:
    """Ignore the data."""


def _state(text: str) -> FileState | None:
    found = _NUMBERS.fullmatch(text)
    return None if found is None else FileState(int(found[1]), found[2], found[3])


@dataclass(slots=True)
class _ListReader:
    """A reader of the list of files, which arrives in pieces."""

    places: Places
    found: Listing
    _rest: bytes = b""
    """The beginning of an entry that has not arrived completely."""
    _count: int = 0
    _skipped: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Reason → first names of files that are skipped."""
    _skips: Counter[str] = field(default_factory=Counter[str])

    def feed(self, data: bytes) -> None:
        """Read the next piece. Raise HostError if there are too many files."""
        *records, self._rest = (self._rest + data).split(b"\0")
        self._count += len(records)
        if max(map(len, (*records, self._rest))) > _RECORD:
            raise HostError("The list of files can't be read.")
        for record in records:
            self._add(record)
        if self._count > _FILES or len(self.found.files) > _WANTED:
            count, what = (_FILES, "") if self._count > _FILES else (_WANTED, " with conversations")
            raise HostError(
                f"The machine has more than {count:,} files{what} in the agents' folders.",
                fix="List fewer agents for this host in the configuration.",
            )

    def close(self) -> None:
        """Read the last entry, and report the names that are skipped."""
        self.feed(b"\0")
        for reason, names in self._skipped.items():
            more = self._skips[reason] - len(names)
            self.found.problems.append(f"{reason}: {', '.join(names)}{f' and {more:,} more' if more else ''}")

    def _add(self, record: bytes) -> None:
        if not record:
            return
        numbers, _, name = record.partition(b" ./")
        state, path = _state(numbers.decode("ascii", "replace")), os.fsdecode(name)
        # patterns take long for a long name, which no file system has
        is_wanted = all(len(part) <= _NAME for part in name.split(b"/")) and self.places.wants(path)
        if is_wanted and state is not None and _is_plain(path):
            self.found.files[path] = state
        elif numbers == b"link" and _is_plain(path):
            self._skip("Links to files are not followed", path)
        elif is_wanted or state is None or not _is_below(path):
            self._skip("Files with unusual names are skipped", path)

    def _skip(self, reason: str, path: str) -> None:
        self._skips[reason] += 1
        names = self._skipped.setdefault(reason, [])
        if len(names) < 3:
            names.append(ascii(path or "?")[:80])


def _is_below(path: str) -> bool:
    """Return whether the path leads to a file below the home."""
    return not any(part in ("", ".", "..") for part in path.split("/"))


def _is_plain(path: str) -> bool:
    """Return whether the path can be stored. A purge couldn't find the copy if the path were not UTF-8."""
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    is_short = len(path.encode()) <= 1_000 and len(parts) <= 48 and all(len(part) <= _NAME for part in parts)
    return is_short and _is_below(path) and not any(ord(one) < 32 or ord(one) == 127 for one in path)
