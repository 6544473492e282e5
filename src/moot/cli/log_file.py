"""The log file of the home: JSON lines appended by every process, without secrets and message texts."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from moot.types.canonical import JsonObject, dumps

LARGEST = 4 * 1024 * 1024
"""Bytes at which the file is rotated. One rotated file is kept."""
LONGEST = 4000
"""Maximum characters of a message."""

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def file_of(home: Path) -> Path:
    return home / "state" / "logs" / "moot.jsonl"


def level_of(environ: Mapping[str, str]) -> int:
    """Return the level that MOOT_LOG sets, or info."""
    return LEVELS.get(environ.get("MOOT_LOG", "").lower(), logging.INFO)


class FileHandler(logging.Handler):
    """Log handler for the log file. Write errors are ignored so that logging never fails a command."""

    def __init__(self, path: Path, level: int, redacted: Callable[[str], str]) -> None:
        super().__init__(level)
        self._path = path
        self._redacted = redacted
        self._descriptor: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        line = dumps(self._entry(record)) + b"\n"
        with contextlib.suppress(OSError, ValueError):  # a full disk, a directory without write permission
            os.write(self._opened(), line)  # one call: lines of several processes never mix

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        super().close()

    def _entry(self, record: logging.LogRecord) -> JsonObject:
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
        return entry

    def _opened(self) -> int:
        """Return the log file's descriptor. Rotate a full file, and reopen one that another process rotated. Raise OSError on failure."""
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
            if self._full():  # no other process has done it meanwhile
                self._path.replace(self._path.with_suffix(".jsonl.1"))
        finally:
            os.close(lock)

    def _full(self) -> bool:
        try:
            return self._path.stat().st_size >= LARGEST
        except FileNotFoundError:
            return False
