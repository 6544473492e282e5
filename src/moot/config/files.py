"""Reading, locking and atomic writing of configuration files."""

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
    """Return the file's text, or an empty string if it does not exist. Raise ConfigError if it can't be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path), fix=f"Make {path} a readable file.") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024} KiB, too large for a configuration file", file=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise ConfigError("not valid UTF-8", file=str(path), line=line, column=column, fix="Save the file as UTF-8.") from error


@contextmanager
def locked(path: Path) -> Generator[None, None, None]:
    """Lock the file against changes by other processes while it is read and written, waiting if needed. Raise ConfigError.

    The lock is a separate file, because each write replaces the file itself. The system releases it when the process dies.
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
    """Write the file atomically, readable only by its owner because it may hold keys. Raise ConfigError."""
    path = path.resolve()  # keep a symbolic link to the configuration
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
