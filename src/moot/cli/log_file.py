"""The log of this home: JSON lines that every process appends to, without secrets and without what was said in conversations."""

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
"""Bytes at which a file is put aside; one that was put aside is kept."""
LONGEST = 4000
"""Characters of a message."""

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def file_of(home: Path) -> Path:
    return home / "state" / "logs" / "moot.jsonl"


def level_of(environ: Mapping[str, str]) -> int:
    """What MOOT_LOG asks for, else info."""
    return LEVELS.get(environ.get("MOOT_LOG", "").lower(), logging.INFO)


class ToFile(logging.Handler):
    """Appends records. A file that cannot be written is no failure of what a person does: then nothing is written."""

    def __init__(self, path: Path, level: int, redacted: Callable[[str], str]) -> None:
        super().__init__(level)
        self._path = path
        self._redacted = redacted
        self._descriptor: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        line = dumps(self._entry(record)) + b"\n"
        with contextlib.suppress(OSError, ValueError):  # a full disk, a folder that is not ours
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
        """The file to append to, put aside first when it is full; also where another process did so. Raises OSError."""
        if self._descriptor is not None:
            mine = os.fstat(self._descriptor)
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_ino == mine.st_ino and mine.st_size < LARGEST:
                    return self._descriptor
            os.close(self._descriptor)
            self._descriptor = None
        if not self._path.parent.parent.is_dir():
            raise FileNotFoundError(self._path)  # a home comes into being by being used, not by a complaint
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._put_aside()
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._descriptor

    def _put_aside(self) -> None:
        if not self._full():
            return
        lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._full():  # nobody did it meanwhile
                self._path.replace(self._path.with_suffix(".jsonl.1"))
        finally:
            os.close(lock)

    def _full(self) -> bool:
        try:
            return self._path.stat().st_size >= LARGEST
        except FileNotFoundError:
            return False
