"""The schema's migrations, numbered from an empty file to the newest version.

Each is a file `NNNN_name.sql` in this folder. The schema version is the number of applied migrations. A released migration is never
changed: add the next one, with a golden file of the old shape.

`newest.sql` creates the newest schema at once, which is four times faster than all migrations. A new database gets it, and a test checks
that it gives the same tables and rows. After adding a migration, write it again: `RECORD=1 pytest tests/unit/store/test_newest_schema.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Migration", "newest", "newest_schema", "released"]


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration. All migrations missing from a database run in one transaction."""

    name: str
    script: str


@cache
def released() -> Sequence[Migration]:
    """Return all migrations in order. They are cached, so they can't change while the process is running."""
    return tuple(Migration(file.stem, file.read_text(encoding="utf-8")) for file in sorted(Path(__file__).parent.glob("[0-9]*.sql")))


def newest_schema() -> Migration:
    """Return one step that has the effect of all migrations on an empty database."""
    return Migration("newest", (Path(__file__).parent / "newest.sql").read_text(encoding="utf-8"))


@cache
def newest() -> int:
    """Return the newest schema version without reading the files."""
    return sum(1 for _ in Path(__file__).parent.glob("[0-9]*.sql"))
