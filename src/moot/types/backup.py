"""The seam of backups: a whole home as one file, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from moot.types.canonical import JsonObject

__all__ = ["BackingUp", "Backup", "Tell"]

Tell: TypeAlias = Callable[[str], None]
"""Takes words on how far the work has come, as often as one likes."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says of itself, once all of it was read."""

    path: str
    made_at: int
    """ms"""
    program: str
    """moot's version that wrote it."""
    schema: int
    files: int
    size: int
    """Bytes of all files in it."""
    packed: int
    """Bytes of the backup itself."""
    has_secrets: bool
    """Whether the configuration is in it as it was, keys and all."""

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
    """Making backups of a store in use; reading them needs no store (`moot.store.backing`)."""

    async def back_up(self, to: Path, *, secrets: bool = False, tell: Tell | None = None) -> Backup:
        """The whole home as it stands in one snapshot, as a new file (or in a folder), read again and compared before it has its name.

        The store keeps its name in mind, so that a purge reaches it. Raises UsageError, StoreFull; Busy while another process purges.
        """
        ...
