"""The cost of a process and its descendants: CPU by thread, and memory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return the ids of a process and its live descendants."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for thread in (PROC / str(one) / "task").iterdir():
                found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def one(pid: int) -> float:
    """Return the CPU seconds of a process. The scheduler counts nanoseconds per live thread; the process's ticks include ended threads."""
    folder = PROC / str(pid)
    exact = sum(int((thread / "schedstat").read_text().split()[0]) for thread in (folder / "task").iterdir()) / 1e9
    user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    coarse = (int(user) + int(system)) / TICKS
    return max(exact, coarse) if abs(exact - coarse) > 5 / TICKS else exact


def cpu(pid: int) -> float:
    """Return the CPU seconds of the process and its descendants so far."""
    total = 0.0
    for each in tree(pid):
        with suppress(OSError):
            total += one(each)
    return total


def memory(pid: int, what: str = "VmHWM") -> float:
    """Return the resident MiB of the process and its descendants: the peak since `forget`, or the current size with `VmRSS`."""
    total = 0
    for one in tree(pid):
        with suppress(OSError):
            found = re.search(rf"{what}:\s+(\d+)", (PROC / str(one) / "status").read_text())
            total += int(found[1]) if found else 0
    return total / 1024


def forget(pid: int) -> None:
    """Reset the peak of the resident memory."""
    for one in tree(pid):
        with suppress(OSError):
            (PROC / str(one) / "clear_refs").write_text("5")
