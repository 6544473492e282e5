"""The text of a configuration file, a file written whole or not at all, and one writer at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from moot.errors import ConfigError

MAX_BYTES = 1024 * 1024


def text_of(path: Path) -> str:
    """The file's text; empty when it does not exist. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path), fix=f"Make {path} a readable file.") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024} KiB; that is no configuration", file=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise ConfigError("not UTF-8", file=str(path), line=line, column=column, fix="Save the file as UTF-8.") from error


@contextmanager
def locked(path: Path) -> Generator[None, None, None]:
    """Keeps other processes from changing the file between reading and writing it; waits for them. Raises ConfigError.

    The lock is a file beside it, for the file itself is replaced by each writing; the system drops it when its holder dies.
    """
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"cannot be locked: {error.strerror}", file=str(path), fix=f"Make {path.parent} a writable folder.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def write_atomically(path: Path, data: bytes) -> None:
    """The file has either its old or its new content, whatever happens. It is readable by its owner alone: it may hold keys."""
    path = path.resolve()  # a linked configuration stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(path)) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(path)) from error
