"""The seam of formats whose program can go on with what we write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from moot.types.format import ExportedConversation, Fidelity

__all__ = ["Installable", "Session"]


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation as a file in a program's own folder."""

    path: Path
    data: bytes
    command: tuple[str, ...]
    """What resumes it, started in `directory`."""
    directory: Path
    fidelity: Fidelity


@runtime_checkable
class Installable(Protocol):
    """An optional power of a format: the conversation as a session of its program, which finds it by `id`."""

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Session:
        """The file in the first of the `places` (as the format itself names them), for a program that is started in `directory`.

        Nothing is written.
        """
        ...
