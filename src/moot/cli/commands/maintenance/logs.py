"""moot's log file, and the command `moot logs`."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from moot.cli.arguments.signatures import Parameter, Plain
from moot.cli.console.lines import Lines
from moot.config.home import home_of
from moot.errors import UsageError
from moot.types.canonical import JsonObject, dumps, loads_object
from moot.types.ids import SHORTEST_PREFIX

LARGEST = 4 * 1024 * 1024
"""Size in bytes at which the log file is rotated. One rotated file is kept."""
LONGEST = 4000
"""Maximum length of a log message in characters."""

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def file_of(home: Path) -> Path:
    return home / "state" / "logs" / "moot.jsonl"


def level_of(environ: Mapping[str, str]) -> int:
    """Return the log level set by MOOT_LOG; the default is info."""
    return LEVELS.get(environ.get("MOOT_LOG", "").lower(), logging.INFO)


class FileHandler(logging.Handler):
    """Log handler for the log file. Write errors are ignored so that logging never fails a command."""

    def __init__(self, path: Path, level: int, redacted: Callable[[str], str]) -> None:
        super().__init__(level)
        self._path = path
        self._redacted = redacted
        self._descriptor: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        entry: JsonObject = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redacted(record.getMessage())[:LONGEST],
            "process": os.getpid(),
        }
        for name in ("run", "conversation", "request"):
            if isinstance(value := getattr(record, name, None), str):
                entry[name] = value
        if record.exc_info and record.exc_info[0] is not None:
            entry["error"] = self._redacted(f"{record.exc_info[0].__name__}: {record.exc_info[1]}")[:LONGEST]
        line = dumps(entry) + b"\n"
        with contextlib.suppress(OSError, ValueError):  # a full disk, a directory without write permission
            os.write(self._opened(), line)  # a single call, so that lines of several processes never mix

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        super().close()

    def _opened(self) -> int:
        """Return the log file's descriptor.
        Rotate the file if it is full, and reopen it if another process has rotated it. Raise OSError on failure.
        """
        if self._descriptor is not None:
            mine = os.fstat(self._descriptor)
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_ino == mine.st_ino and mine.st_size < LARGEST:
                    return self._descriptor
            os.close(self._descriptor)
            self._descriptor = None
        if not self._path.parent.parent.is_dir():
            raise FileNotFoundError(self._path)  # logging must not create a home
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._rotate()
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._descriptor

    def _rotate(self) -> None:
        if not self._full():
            return
        lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._full():  # no other process has rotated it in the meantime
                self._path.replace(self._path.with_suffix(".jsonl.1"))
        finally:
            os.close(lock)

    def _full(self) -> bool:
        try:
            return self._path.stat().st_size >= LARGEST
        except FileNotFoundError:
            return False


READ = 8 * 1024 * 1024
"""Maximum number of bytes to read from the end of a log file."""
PAUSE = 0.2
_AGO = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_STYLES = {"error": "red", "critical": "red", "warning": "yellow", "debug": "dim"}

Entry = tuple[JsonObject, bytes]
"""A parsed line and its bytes."""


def logs(
    *,
    number: Annotated[int, Parameter(name=("--number", "-n"), minimum=0, help="Number of most recent entries to print.")] = 50,
    follow: Annotated[bool, Parameter(name=("--follow", "-f"), help="Keep printing new entries until Ctrl+C.")] = False,
    level: Annotated[Literal["debug", "info", "warning", "error"], Parameter(metavar="LEVEL", help="Minimum level.")] = "debug",
    run: Annotated[str, Parameter(metavar="RUN", help="Only entries of the run with this id or id prefix.")] = "",
    since: Annotated[
        str, Parameter(metavar="TIME", help="Only entries since a time such as 2026-01-31T18:00, or within a period such as 10m, 2h or 1d.")
    ] = "",
    json: Annotated[bool, Parameter(help="Print each entry as a line of JSON. This is the default in a pipe.")] = False,
    output: Annotated[Lines, Plain],
) -> None:
    """Print log entries, oldest first: formatted in a terminal, JSON lines in a pipe."""
    path = file_of(home_of(os.environ))
    begin = _begin(since)
    if 0 < len(run) < SHORTEST_PREFIX:
        raise UsageError(f"The run id {run!r} is too short.", fix=f"Use at least {SHORTEST_PREFIX} characters of the id.")

    def wanted(entry: JsonObject) -> bool:
        severity = LEVELS.get(str(entry.get("level")), LEVELS["error"])
        return severity >= LEVELS[level] and str(entry.get("time")) >= begin and str(entry.get("run", "")).startswith(run)

    as_json = json or not output.stdout_terminal
    state = _size_and_inode(path)
    last: deque[Entry] = deque(maxlen=number)
    for data in (_end(path.with_suffix(".jsonl.1")), _end(path, state[0])):
        last += [entry for entry in entries(data) if wanted(entry[0])]
    for entry in last:
        _print(entry, output, as_json=as_json)
    if not last and not follow:
        output.say("moot: no log entries" + (f" in {path}" if not path.exists() else " match"))
    if follow:
        for entry in _follow(path, *state):
            if wanted(entry[0]):
                _print(entry, output, as_json=as_json)


def entries(data: bytes) -> Iterator[Entry]:
    """Yield the log entries in these bytes. Skip invalid lines."""
    for line in data.splitlines():
        try:
            yield loads_object(line), line
        except ValueError:
            continue


def _end(path: Path, size: int | None = None) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END) if size is None else size
            start = file.seek(max(0, size - READ))
            return file.read(size - start)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}.", fix=f"Check the owner and permissions of {path}.") from error


def _follow(path: Path, position: int, inode: int) -> Iterator[Entry]:
    while True:
        time.sleep(PAUSE)
        size, now = _size_and_inode(path)
        if now != inode or size < position:
            position, inode = 0, now
        if size > position:
            with path.open("rb") as file:
                file.seek(position)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            position += len(whole)
            yield from entries(whole)


def _size_and_inode(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_ino


def _print(entry: Entry, output: Lines, *, as_json: bool) -> None:
    value, line = entry
    if as_json:
        output.data(line.decode("utf-8", "replace") + "\n")
        return
    at = str(value.get("time", ""))
    with contextlib.suppress(ValueError):
        at = datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    error = f" ({value['error']})" if "error" in value else ""
    text = output.fit(f"{at}  {value.get('level', ''):<7}  {value.get('logger', '')}  {value.get('message', '')}{error}")
    style = _STYLES.get(str(value.get("level")), "")
    output.data((output.styled(text, style) if style else text) + "\n")


def _begin(since: str) -> str:
    """Return the earliest timestamp to print, in the format of the log."""
    if not since:
        return ""
    if match := _AGO.fullmatch(since):
        seconds = int(match[1]) * _SECONDS[match[2]]
        return datetime.fromtimestamp(max(0.0, time.time() - seconds), UTC).isoformat(timespec="milliseconds")
    try:
        return datetime.fromisoformat(since).astimezone(UTC).isoformat(timespec="milliseconds")
    except ValueError as error:
        raise UsageError(
            f"Invalid value {since!r} for '--since': expected a period such as 10m, 2h or 1d, or a time such as 2026-01-31T18:00.",
            fix="moot logs --since 1h",
        ) from error
