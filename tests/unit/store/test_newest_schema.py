"""The script that creates a new database, compared with the migrations. `RECORD=1 pytest` of this file writes it again."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from moot.store import migrations
from moot.store.database.connection import FORGETS_WORDS, Connection, connect
from moot.store.database.locks import FileLock
from moot.store.database.schema import prepare, version_of
from moot.store.migrations import released

SCRIPT = Path(migrations.__file__).with_name("newest.sql")
Entry: TypeAlias = tuple[str, str, str, str | None]


def entries_of(connection: Connection) -> list[Entry]:
    """Return the type, name, table and statement of everything in the schema."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall()
    return [(str(row[0]), str(row[1]), str(row[2]), row[3]) for row in rows]


def statements_of(connection: Connection) -> list[str]:
    """Return the statements that create the schema: tables, the rows in them, then indexes and triggers, which would see the rows."""
    entries = entries_of(connection)
    virtual = tuple(name for _, name, _, sql in entries if sql is not None and sql.startswith("CREATE VIRTUAL"))
    shadows = tuple(f"{name}_" for name in virtual)
    tables = [(name, sql) for kind, name, _, sql in entries if kind == "table" and sql is not None and not name.startswith(shadows)]
    made = [sql for name, sql in tables if not name.startswith("sqlite_")]  # SQLite creates its own tables itself
    rows: list[str] = []
    for name, _ in tables:
        if name not in virtual:
            columns = [f'quote("{row[1]}")' for row in connection.execute(f'PRAGMA table_info("{name}")')]
            for row in connection.execute(f'SELECT {", ".join(columns)} FROM "{name}"'):
                rows.append(f"INSERT INTO {name} VALUES ({', '.join(row)})")
    return [*made, *rows, *(sql for kind, _, _, sql in entries if kind != "table" and sql is not None)]


def test_a_new_database_has_the_tables_and_rows_that_all_migrations_give(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    prepare(tmp_path / "migrated" / "moot.db", lock, released())
    with closing(connect(tmp_path / "migrated" / "moot.db")) as migrated:
        expected, version, entries = statements_of(migrated), version_of(migrated), entries_of(migrated)
    if os.environ.get("RECORD"):
        assert FORGETS_WORDS, "record with the SQLite of the package pysqlite3"
        SCRIPT.write_text("".join(f"{statement};\n" for statement in expected))
    prepare(tmp_path / "new" / "moot.db", lock)
    with closing(connect(tmp_path / "new" / "moot.db")) as created:
        assert sorted(statements_of(created)) == sorted(expected)
        assert sorted(entries_of(created), key=repr) == sorted(entries, key=repr)
        assert version_of(created) == version == len(released())
