"""Check whether this machine can run the embedded model."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import sys
from pathlib import Path

from moot.errors import ProviderError

INSTEAD = "or use Ollama (https://ollama.com), an API key, or the demo provider (-m demo), which is scripted"
_CPU_FLAGS = frozenset({"avx2", "fma", "f16c", "bmi2"})
_MEMORY_OVERHEAD = 300 << 20
"""Memory that llama.cpp needs in addition to the weights, for a context of 8k (805 MB in total were measured for 491 MB of weights)."""


def cannot(reason: str, fix: str = "") -> ProviderError:
    """Return the error for a machine that can't run it, with alternatives."""
    return ProviderError(f"the embedded model can't run here: {reason}", fix=f"{fix}; {INSTEAD}" if fix else INSTEAD.removeprefix("or "))


def check_machine(weights_size: int, proc: Path = Path("/proc")) -> None:
    """Raise ProviderError for the first missing requirement. `proc` is the path of Linux's `/proc`."""
    if importlib.util.find_spec("xllamacpp") is None:
        if _musl():
            raise cannot("xllamacpp has no wheel for musl (Alpine)")
        if sys.platform == "win32" and platform.machine().lower() == "arm64":
            raise cannot("xllamacpp has no wheel for Windows on arm64")
        raise cannot("the package xllamacpp is not installed", "pip install 'moot[local]'")
    if sys.platform == "linux" and not _loads("libgomp.so.1"):
        raise import_failed("libgomp")
    if missing := sorted(_CPU_FLAGS - _processor_flags(proc / "cpuinfo")):
        raise cannot(f"this processor lacks {', '.join(missing)}")
    available = _available_memory(proc / "meminfo")
    if available is not None and available < weights_size + _MEMORY_OVERHEAD:
        needed = (weights_size + _MEMORY_OVERHEAD) >> 20
        raise cannot(f"it needs about {needed} MB of memory, but only {available >> 20} MB are free", "close other programs")


def import_failed(message: str) -> ProviderError:
    """Return the error for an ImportError in the child process."""
    if "libgomp" in message:
        return cannot("the system library libgomp.so.1 is missing", "apt-get install libgomp1")
    return cannot(f"xllamacpp failed to load ({message})", "pip install --force-reinstall 'moot[local]'")


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _musl() -> bool:
    return sys.platform == "linux" and platform.libc_ver()[0] != "glibc"


def _processor_flags(path: Path) -> frozenset[str]:
    """Return the flags of an x86 processor on Linux. On other systems, assume that all are available."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not path.exists():
        return _CPU_FLAGS
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return _CPU_FLAGS


def _available_memory(path: Path) -> int | None:
    if not path.exists():
        return None
    for line in path.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None
