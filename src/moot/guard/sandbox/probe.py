"""Detection of the sandbox mechanisms that work on this machine, by trying them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moot.errors import Refused
from moot.guard.processes import output
from moot.guard.sandbox.mechanisms import program
from moot.types.sandbox import Confinement, Mechanism

_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Found:
    """The first mechanism that works, and the reasons why earlier ones don't."""

    mechanism: Mechanism | None
    missing: tuple[str, ...] = ()
    """The reason why each mechanism that was tried earlier can't be used."""

    @property
    def is_complete(self) -> bool:
        return self.mechanism in ("bubblewrap", "namespaces")


async def problem_of(mechanism: Mechanism) -> str:
    """Run a command that does nothing in a sandbox. Return why it failed, or an empty string."""
    if not program(mechanism):
        return "not installed" if mechanism == "bubblewrap" else "available on Linux only"
    with tempfile.TemporaryDirectory(prefix="moot-") as name:
        folder = Path(name)
        (folder / "work").mkdir()
        confinement = Confinement(mechanism, folder / "work", (folder / "work",), folder)
        try:
            done = await output(["/bin/sh", "-c", "exit 0"], cwd=folder, sandbox=confinement, timeout=_SECONDS)
        except Refused as error:
            return error.message
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.code == 0 else words[-1] if words else f"it failed with exit code {done.code}"


_problems: dict[Mechanism, str] = {}
"""Problems of the mechanisms tried in this process; empty for one that works."""


async def find(candidates: Sequence[Mechanism]) -> Found:
    """Return the first candidate that works on this machine. Each mechanism is tried once per process."""
    missing: list[str] = []
    for mechanism in candidates:
        if mechanism not in _problems:
            _problems[mechanism] = await problem_of(mechanism)
        if not _problems[mechanism]:
            return Found(mechanism, tuple(missing))
        missing.append(f"{mechanism}: {_problems[mechanism]}")
    return Found(None, tuple(missing))
