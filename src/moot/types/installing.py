"""The seam of formats whose program can resume what we write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from moot.types.format import ExportedConversation, Fidelity

__all__ = ["Installable", "Session"]


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation as a session file in a program's own folder."""

    path: Path
    data: bytes
    command: tuple[str, ...]
    """The command that resumes it, run in `directory`."""
    directory: Path
    fidelity: Fidelity


@runtime_checkable
class Installable(Protocol):
    """Optional capability of a format: write a conversation as a session that its program finds by `id`."""

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Session:
        """Return the file for the first of the `places` (from the format's own list), for a program started in `directory`.

        Nothing is written.
        """
        ...
