"""Backups: a whole home directory as one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from moot.types.canonical import JsonObject

__all__ = ["BackingUp", "Backup", "Tell"]

Tell: TypeAlias = Callable[[str], None]
"""Callback for progress messages; may be called any number of times."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The description of a backup that was read completely."""

    path: str
    made_at: int
    """ms"""
    program: str
    """The moot version that wrote it."""
    schema: int
    files: int
    size: int
    """Total size of the files in it, in bytes."""
    packed: int
    """Size of the backup file, in bytes."""
    has_secrets: bool
    """True if the configuration is included unchanged, with its API keys."""

    def to_json(self) -> JsonObject:
        return {
            "path": self.path,
            "made_at": self.made_at,
            "program": self.program,
            "schema": self.schema,
            "files": self.files,
            "bytes": self.size,
            "packed_bytes": self.packed,
            "has_secrets": self.has_secrets,
        }


class BackingUp(Protocol):
    """The creation of backups while the store is in use. Reading a backup needs no store, see `moot.store.backing`."""

    async def back_up(self, to: Path, *, secrets: bool = False, tell: Tell | None = None) -> Backup:
        """Back up the whole home from one snapshot to a new file, or to a new file in a folder.

        The file is read again and compared before it gets its final name. The store remembers the path so that purges reach the backup.
        Raise UsageError or StoreFull, or Busy while another process purges.
        """
        ...
