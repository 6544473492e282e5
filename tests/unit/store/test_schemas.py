"""Databases of earlier schemas, created by the programs of their time: their data is kept."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TypeAlias

import pytest

from moot.config.settings import Settings
from moot.errors import NotFound, StoreError, StoreTooNew
from moot.store import open_store
from moot.store.database.connection import Connection, connect, sqlite
from moot.store.database.locks import FileLock
from moot.store.database.schema import prepare, version_of
from moot.store.migrations import Migration, released
from moot.types.approval import Grant
from moot.types.conversation import Conversation
from moot.types.ids import new_id

GOLDEN = Path(__file__).parents[2] / "recorded" / "schemas"
KEPT = {int(file.name.split(".")[0]): file for file in GOLDEN.glob("*.db.gz")}
NEWEST = len(released())
BROKEN = Migration("9999_broken", "DELETE FROM event;\nDROP TABLE approval;\nINSERT INTO nowhere VALUES (1);")

DANGLING = Migration("9999_dangling", "DELETE FROM project;")

DERIVED = ("search", "tally", "to_count")
"""Prefixes of tables that are rebuilt from the others."""
ABOUT_THEM = "is_indexed"

Rows: TypeAlias = dict[str, tuple[list[str], list[tuple[object, ...]]]]


def put(old: int, path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.decompress(KEPT[old].read_bytes()))
    return path


def rows_of(connection: Connection, columns: Rows | None = None) -> Rows:
    """Return each table's columns and rows, without derived ones; with `columns`, only those."""
    found: Rows = {}
    named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    tables = [str(row[0]) for row in named if not str(row[0]).startswith(DERIVED)]
    for table in tables if columns is None else columns:
        names = [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")') if row[1] != ABOUT_THEM]
        names = names if columns is None else columns[table][0]
        chosen = ", ".join(f'"{name}"' for name in names)
        found[table] = names, sorted(connection.execute(f'SELECT {chosen} FROM "{table}"').fetchall(), key=repr)
    return found


def read(path: Path, columns: Rows | None = None) -> tuple[int, Rows]:
    connection = connect(path)
    try:
        return version_of(connection), rows_of(connection, columns)
    finally:
        connection.close()


def test_each_earlier_schema_has_a_golden_database() -> None:
    # `recorded/schemas/N.db.gz` was created by the last moot with schema N: conversations, runs with tools, an approval, a deletion
    missing = set(range(1, NEWEST)) - set(KEPT)
    assert not missing, f"make a database with the program of schema {missing} and put it into {GOLDEN}"


@pytest.mark.parametrize("old", sorted(KEPT))
def test_golden_databases_have_the_schema_and_data_to_check(tmp_path: Path, old: int) -> None:
    version, rows = read(put(old, tmp_path / "data" / "moot.db"))
    assert version == old
    for table in ("conversation", "message", "run", "event", "exchange", "approval", "inbox", "blob"):
        assert rows[table][1], table


@pytest.mark.anyio
@pytest.mark.parametrize("old", sorted(KEPT))
async def test_upgrades_keep_every_row_and_back_up_first(tmp_path: Path, old: int) -> None:
    settings = Settings(home=tmp_path)
    version, before = read(put(old, settings.database))
    store = await open_store(settings)
    try:
        listed = await store.conversations.list()
        for conversation in listed.items:
            messages = await store.conversations.branch(conversation.id)
            assert [message.role for message in messages][:2] == ["user", "assistant"]
            assert await store.log.read(conversation.id)
    finally:
        await store.close()
    assert read(settings.database, before) == (NEWEST, before)
    if version < NEWEST:
        (backup,) = (settings.database.parent / "backups").glob(f"moot-schema{old}-*.db")
        assert read(backup) == (old, before)


@pytest.mark.anyio
@pytest.mark.parametrize("old", sorted(old for old in KEPT if old < 8))
async def test_upgraded_databases_are_indexed_again(tmp_path: Path, old: int) -> None:
    settings = Settings(home=tmp_path)
    put(old, settings.database)
    store = await open_store(settings)
    try:
        first = await store.search.search("done", wait=0)
        assert (first.hits, first.done, first.total > 0) == ((), 0, True)
        assert (await store.search.search("done role:assistant")).hits
        assert (await store.search.search("has:tool")).hits
        assert await store.search.index() == (first.total, first.total)
    finally:
        await store.close()


@pytest.mark.parametrize("old", sorted(KEPT))
def test_a_failing_migration_leaves_the_database_unchanged(tmp_path: Path, old: int) -> None:
    path, lock = put(old, tmp_path / "data" / "moot.db"), FileLock(tmp_path / "lock")
    before = read(path)
    with pytest.raises(StoreError, match="nowhere"):
        prepare(path, lock, [*released(), BROKEN])
    assert read(path) == before
    prepare(path, lock)
    assert read(path, before[1]) == (NEWEST, before[1])


@pytest.mark.parametrize("old", sorted(KEPT))
def test_a_migration_that_breaks_references_fails(tmp_path: Path, old: int) -> None:
    path, lock = put(old, tmp_path / "data" / "moot.db"), FileLock(tmp_path / "lock")
    before = read(path)
    with pytest.raises(StoreError, match="conversation refers to a missing row of project"):
        prepare(path, lock, [*released(), DANGLING])
    assert read(path) == before


@pytest.mark.anyio
@pytest.mark.parametrize("old", sorted(KEPT))
async def test_existing_data_belongs_to_the_local_user(tmp_path: Path, old: int) -> None:
    settings = Settings(home=tmp_path)
    _, before = read(put(old, settings.database))
    names, rows = before["blob"]
    store = await open_store(settings)
    try:
        local, nobody = store.of("local"), store.of("nobody")
        assert (await local.conversations.list(archived=None)).items == (await store.conversations.list(archived=None)).items
        assert not (await nobody.conversations.list(archived=None)).items
        for row in rows:
            blob = await local.blobs.about(str(row[names.index("sha256")]))
            assert blob.media_type == row[names.index("media_type")]
            with pytest.raises(NotFound):
                await nobody.blobs.about(blob.sha256)
        made = await store.conversations.create(Conversation(new_id()))
        numbers = [row[0] for row in before["conversation"][1]]
        assert made.no > max(int(str(number)) for number in numbers)
    finally:
        await store.close()


@pytest.mark.anyio
async def test_old_answers_are_readable(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    put(min(KEPT), settings.database)
    store = await open_store(settings)
    try:
        (asked,) = await store.records.approvals(open_only=False)
        assert (asked.tool, asked.arguments, asked.parts, asked.lasting) == ("shell", b'{"command":"touch no"}', (), ())
        assert asked.answer is not None and asked.answer.reason == "later"
    finally:
        await store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("old", sorted(KEPT))
async def test_a_future_schema_is_refused_and_not_changed(tmp_path: Path, old: int) -> None:
    settings = Settings(home=tmp_path)
    path = put(old, settings.database)
    connection = connect(path, writing=True)
    connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    connection.close()
    before = read(path)
    with pytest.raises(StoreTooNew, match=f"schema {NEWEST + 1}"):
        await open_store(settings)
    assert read(path) == before and not (path.parent / "backups").exists()


def test_the_owner_keeps_every_right_and_other_users_lose_the_folders_that_they_chose(tmp_path: Path) -> None:
    path, lock = put(14, tmp_path / "data" / "moot.db"), FileLock(tmp_path / "lock")
    connection = sqlite.connect(str(path))
    mara = connection.execute("SELECT id FROM user WHERE name = 'mara'").fetchone()[0]
    scopes = [("local", "admin"), ("local", "read admin"), ("local", "tools"), (mara, "admin")]
    for at, (owner, text) in enumerate(scopes):
        sql = "INSERT INTO token (id, owner_id, name, hash, scopes, kind, created_at) VALUES (?, ?, ?, ?, ?, 'token', 1)"
        connection.execute(sql, (f"t{at}", owner, f"t{at}", bytes([at]), text))
    roots = [("mine", "local", b"/srv"), ("hers", mara, b"/etc")]
    connection.executemany(
        "INSERT INTO project (id, owner_id, name, description, root_path, context, rules, created_at) VALUES (?, ?, 'p', '', ?, '', '', 1)",
        roots,
    )
    connection.commit()
    connection.close()
    prepare(path, lock)
    connection = connect(path)
    found = connection.execute("SELECT scopes FROM token WHERE id LIKE 't_' ORDER BY id").fetchall()
    assert [row[0] for row in found] == ["admin machine", "read admin machine", "tools", "admin"]
    assert connection.execute("SELECT id, root_path FROM project WHERE name = 'p' ORDER BY id").fetchall() == [
        ("hers", None),
        ("mine", b"/srv"),
    ]
    connection.close()


@pytest.mark.anyio
async def test_grants_leave_the_settings_and_stay_in_force(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    connection = sqlite.connect(str(put(14, settings.database)))
    stored = b"""{"mode": "edits", "grants": [{"tool": "shell", "match": "make 'a b'", "at": 7, "by": "ana"}, {"tool": 1}, "x"]}"""
    (no, id) = connection.execute("SELECT no, id FROM conversation ORDER BY no LIMIT 1").fetchone()
    connection.execute("UPDATE conversation SET settings = ? WHERE no = ?", (stored, no))
    connection.execute("UPDATE conversation SET settings = x'7b' WHERE no = (SELECT max(no) FROM conversation WHERE no != ?)", (no,))
    connection.commit()
    connection.close()
    store = await open_store(settings)
    try:
        found = await store.conversations.get(id)
        assert found.grants == (Grant("shell", "make 'a b'", 7, "ana"),)
        assert found.settings == {"mode": "edits"}
    finally:
        await store.close()


@pytest.mark.anyio
async def test_the_known_part_of_a_cost_is_added_to_earlier_sums(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    connection = sqlite.connect(str(put(20, settings.database)))
    sql = "SELECT m.no, c.id FROM run AS r JOIN message AS m ON m.id = r.message JOIN conversation AS c ON c.no = r.conversation"
    (first, id), (second, _) = connection.execute(f"{sql} WHERE r.cost IS NULL AND r.ended_at > 0 ORDER BY r.no LIMIT 2").fetchall()
    steps = b'{"steps":[{"usage":{"input":9},"cost":70},{"cost":null},{"cost":5},{"cost":-3},{"cost":"1"},7]}'
    connection.executemany("UPDATE message SET metadata = ? WHERE no = ?", [(steps, first), (b'{"steps":', second)])
    connection.execute("DELETE FROM to_count")
    unpriced = connection.execute("SELECT coalesce(sum(unpriced), 0) FROM answer_day").fetchone()[0]
    connection.commit()
    connection.close()
    store = await open_store(settings)
    try:
        assert (await store.conversations.get(id)).cost == 75
        total = (await store.stats.usage()).total
        assert (total.cost, total.unpriced_runs) == (75, unpriced)
    finally:
        await store.close()


@pytest.mark.anyio
async def test_projects_were_last_changed_when_they_were_created(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    put(16, settings.database)
    store = await open_store(settings)
    try:
        shop = await store.projects.get("shop")
        assert (shop.rules, shop.updated_at) == ("Be brief.", shop.created_at) and shop.created_at
    finally:
        await store.close()
