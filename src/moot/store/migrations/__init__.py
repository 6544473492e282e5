"""The numbered steps from an empty file to the newest schema.

Each is a file `NNNN_name.sql` of this folder; the newest schema's version is how many there are. A step that was released is never
changed: the next one is added beside it, with a golden file of the old shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Migration", "released"]


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: what to execute, in one transaction with all the others that are due."""

    name: str
    script: str


@cache
def released() -> Sequence[Migration]:
    """All steps, oldest first; read once, so that they can't change under a process."""
    return tuple(Migration(file.stem, file.read_text(encoding="utf-8")) for file in sorted(Path(__file__).parent.glob("[0-9]*.sql")))


@cache
def newest() -> int:
    """The version that `released` leads to, without reading the steps."""
    return sum(1 for _ in Path(__file__).parent.glob("[0-9]*.sql"))
