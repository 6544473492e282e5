"""Checks that this machine can run the embedded model."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import sys
from pathlib import Path

from moot.errors import ProviderError

INSTEAD = "You can also use Ollama (https://ollama.com), an API key, or the demo provider (-m demo), which is scripted."
_CPU_FLAGS = frozenset({"avx2", "fma", "f16c", "bmi2"})


def cannot(reason: str, fix: str = "") -> ProviderError:
    """Return the error for a machine that can't run the embedded model, with alternatives."""
    return ProviderError(f"The embedded model can't run here: {reason}.", fix=f"{fix} {INSTEAD}".strip())


def check_machine(memory: int, proc: Path = Path("/proc")) -> None:
    """Raise ProviderError for the first missing requirement.

    `memory` is the number of bytes that the model needs, and `proc` the path of Linux's `/proc`.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
            raise cannot("xllamacpp has no wheel for musl (Alpine)")
        if sys.platform == "win32" and platform.machine().lower() == "arm64":
            raise cannot("xllamacpp has no wheel for Windows on arm64")
        raise cannot("the package xllamacpp is not installed", "Run `pip install 'moot[local]'`.")
    if sys.platform == "linux" and not _loads("libgomp.so.1"):
        raise import_failed("libgomp")
    flags = _value(proc / "cpuinfo", "flags").split() if platform.machine().lower() in ("x86_64", "amd64") else []
    if flags and (missing := sorted(_CPU_FLAGS.difference(flags))):
        raise cannot(f"this processor lacks {', '.join(missing)}")
    available = _value(proc / "meminfo", "MemAvailable").split()
    if available and int(available[0]) << 10 < memory:
        raise cannot(f"it needs about {memory >> 20} MB of memory, but only {int(available[0]) >> 10} MB are free", "Close other programs.")


def import_failed(message: str) -> ProviderError:
    """Return the error for an ImportError in the child process."""
    if "libgomp" in message:
        return cannot("the system library libgomp.so.1 is missing", "Run `apt-get install libgomp1`.")
    return cannot(f"xllamacpp failed to load ({message})", "Run `pip install --force-reinstall 'moot[local]'`.")


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _value(path: Path, name: str) -> str:
    """Return the first value with this name in a file of `/proc`; empty if there is none."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return next((line.partition(":")[2] for line in lines if line.startswith(name)), "")
