"""moot's home folder, the environment variables of moot and of model vendors, and access to configuration files."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from moot.errors import ConfigError
from moot.plugins.registry import attribute

WORKER = "MOOT_WORKER"
"""Variable of a server's worker: the file descriptor of its channel to the supervisor."""

NO_SETTINGS = frozenset(
    {"MOOT_HOME", "MOOT_URL", "MOOT_TOKEN", "MOOT_TOKEN_FILE", "MOOT_CRASH_AT", "MOOT_TESTING", "MOOT_DEBUG", "MOOT_LOG", WORKER}
)
"""Variables starting with `MOOT_` that are not settings."""

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "minimax": ("MINIMAX_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "vercel": ("AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    "xai": ("XAI_API_KEY",),
    "zhipu": ("ZAI_API_KEY", "ZHIPU_API_KEY", "ZHIPUAI_API_KEY"),
}
"""For each built-in provider, the environment variables that its vendor's tools use for the API key.
The first variable that is set is used.
"""


def home_of(environ: Mapping[str, str]) -> Path:
    """Return moot's home folder as an absolute path: `MOOT_HOME`, or `moot` in the platform's data folder."""
    named = environ.get("MOOT_HOME", "")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "linux":  # the result of platformdirs, whose import takes three times as long as starting Python
        shared = Path(environ.get("XDG_DATA_HOME", ""))
        return (shared if shared.is_absolute() else Path.home() / ".local" / "share") / "moot"
    return Path(attribute("platformdirs:user_data_path")("moot", appauthor=False)).absolute()


Stamp: TypeAlias = tuple[int, int, int]


def stamp_of(path: Path | str) -> Stamp:
    """Return a value that changes when the file is changed, replaced or removed."""
    try:
        status = os.stat(path)  # noqa: PTH116  asked at each step, and pathlib is slow
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


MAX_BYTES = 1024 * 1024


def read_text(path: Path, *, mark: bool = False) -> str:
    """Return the file's text, or an empty string if it does not exist. Raise ConfigError if it can't be read.

    A byte order mark is removed, unless `mark` is set.
    """
    try:
        # O_NONBLOCK, because a project may contain a named pipe instead of the file
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(MAX_BYTES + 1) or b""
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"Cannot read the file: {error.strerror}.", file=str(path), fix=f"Make {path} a readable file.") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"The file is larger than {MAX_BYTES // 1024} KiB, the maximum for a configuration file.", file=str(path))
    try:
        return data.decode("utf-8" if mark else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise ConfigError(
            "The file is not valid UTF-8.", file=str(path), line=line, column=column, fix="Save the file as UTF-8."
        ) from error


@contextmanager
def lock_file(path: Path) -> Generator[None, None, None]:
    """Lock the file against changes by other processes for the duration of the block, waiting if needed.
    Raise ConfigError if that is not possible.

    The lock is a separate file, because each write replaces the file itself. The system releases the lock when the process dies.
    """
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"Cannot lock the file: {error.strerror}.", file=str(path), fix=f"Make {path.parent} a writable folder."
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file atomically. Only its owner can read it, because it may contain keys. Raise ConfigError on failure."""
    path = path.resolve()  # keep a symbolic link to the configuration
    unfinished: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        unfinished = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
        raise ConfigError(f"Cannot write the file: {error.strerror}.", file=str(path)) from error
