"""Purge and redaction cover every column of the schema: a new column fails here until its content is declared."""

from __future__ import annotations

import pytest

from moot.config.settings import Settings
from moot.store import SqliteStore
from moot.store.database.connection import Connection
from moot.store.database.reader import Reader
from moot.store.maintenance.purge.tables import INDEXES, PLACES

pytestmark = pytest.mark.anyio

_SHADOW = ("_data", "_idx", "_docsize", "_config", "_content")


def tables(connection: Connection) -> dict[str, dict[str, str]]:
    """Table → column → type, without internal tables of full-text indexes."""
    names = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    own = [name for name in names if not any(name == f"{index}{ending}" for index in INDEXES for ending in _SHADOW)]
    return {name: {row[1]: row[2] for row in connection.execute(f'PRAGMA table_info("{name}")')} for name in own}


async def test_every_table_and_text_column_is_listed(store: SqliteStore, settings: Settings) -> None:
    reader = Reader(settings.database)
    found = await reader.read(tables)
    await reader.close()
    assert set(found) - set(INDEXES) == set(PLACES), "say in store/maintenance/purge/tables.py what lies in a new table"
    for table, place in PLACES.items():
        wordy = {name for name, kind in found[table].items() if kind in ("TEXT", "BLOB")}
        listed = {*place.words, *place.facts}
        assert wordy <= listed, f"{table}: say in store/maintenance/purge/tables.py what lies in {sorted(wordy - listed)}"
        assert listed <= set(found[table]), f"{table} has no {sorted(listed - set(found[table]))}"


async def test_tables_of_conversations_are_listed_as_such(store: SqliteStore, settings: Settings) -> None:
    reader = Reader(settings.database)
    found = await reader.read(tables)
    await reader.close()
    for table, columns in found.items():
        if table != "written_file" and {"conversation", "run"} & set(columns):
            assert PLACES[table].of, f"{table} hangs on conversations: which of its rows go with one?"
