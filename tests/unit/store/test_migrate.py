"""Schema migrations: under a lock, with a backup, all or nothing."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.errors import StoreCorrupt, StoreError, StoreTooNew
from moot.store import open_store
from moot.store.database.connection import connect, sqlite
from moot.store.database.locks import FileLock
from moot.store.database.schema import prepare, version_of
from moot.store.migrations import Migration, released
from moot.types.conversation import Conversation

STEPS = [
    Migration("0001_one", "CREATE TABLE one (a INTEGER);\nINSERT INTO one VALUES (1);"),
    Migration(
        "0002_two",
        "ALTER TABLE one ADD COLUMN b TEXT;\nUPDATE one SET b = 'x;y';\nCREATE TRIGGER t AFTER INSERT ON one BEGIN\n"
        "  UPDATE one SET b = 'z';\nEND;\n-- done\n",
    ),
    Migration("0003_three", "CREATE TABLE three (c INTEGER);\nINSERT INTO three SELECT a + 10 FROM one;"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "moot.db"


@pytest.fixture
def lock(tmp_path: Path) -> FileLock:
    return FileLock(tmp_path / "state" / "migrate.lock")


def contents(path: Path) -> tuple[int, list[object]]:
    connection = connect(path)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables if table != "search_infix"]  # can't be scanned
    version = version_of(connection)
    connection.close()
    return version, [tables, rows]


def everything(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


NEWEST = (3, [["one", "three"], [[(1, "x;y")], [(11,)]]])


def test_a_new_database_gets_every_migration(path: Path, lock: FileLock) -> None:
    prepare(path, lock, STEPS)
    assert contents(path) == NEWEST
    assert not (path.parent / "backups").exists()


@pytest.mark.parametrize("old", [1, 2])
def test_an_old_database_is_backed_up_and_upgraded(path: Path, lock: FileLock, old: int) -> None:
    prepare(path, lock, STEPS[:old])
    before = contents(path)
    prepare(path, lock, STEPS)
    assert contents(path) == NEWEST
    (backup,) = (path.parent / "backups").glob("*.db")
    assert contents(backup) == before
    prepare(path, lock, STEPS)
    assert len(list((path.parent / "backups").glob("*.db"))) == 1


def test_a_failing_migration_changes_nothing(path: Path, lock: FileLock) -> None:
    prepare(path, lock, STEPS[:1])
    before = contents(path)
    broken = [*STEPS[:2], Migration("0003", "CREATE TABLE half (a);\nINSERT INTO nowhere VALUES (1);")]
    with pytest.raises(StoreError, match="nowhere"):
        prepare(path, lock, broken)
    assert contents(path) == before
    prepare(path, lock, STEPS)
    assert contents(path) == NEWEST


@pytest.mark.parametrize("old", [0, 1])
def test_a_kill_at_any_statement_leaves_the_old_or_new_schema(path: Path, lock: FileLock, old: int) -> None:
    if old:
        prepare(path, lock, STEPS[:old])
    before = contents(path) if old else None
    statement = 0
    while True:
        child = os.fork()
        if child == 0:
            _migrate_and_die_at(path, lock, statement)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != -signal.SIGKILL:
            assert status == 0
            break
        found = contents(path) if path.exists() else None
        assert found in (before, NEWEST), f"killed at statement {statement}"
        statement += 1
    assert statement > 8
    assert contents(path) == NEWEST


def _migrate_and_die_at(path: Path, lock: FileLock, statement: int) -> None:
    """In a child process that dies before the n-th call to SQLite or the file system."""
    seen = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal seen
        if event == "c_call" and getattr(argument, "__name__", "") in ("execute", "close", "backup", "rename", "fsync"):
            seen += 1
            if seen > statement:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(profile)
    prepare(path, lock, STEPS)
    os._exit(0)


@pytest.mark.anyio
async def test_a_newer_database_is_left_untouched(path: Path, lock: FileLock, tmp_path: Path) -> None:
    future = [*released(), Migration("9999_future", "CREATE TABLE future (a INTEGER);")]
    settings = Settings(home=tmp_path)
    prepare(settings.database, lock, future)
    before = everything(path.parent)
    with pytest.raises(StoreTooNew, match="newer version of moot") as caught:
        await open_store(settings)
    assert caught.value.exit_code == 2 and "Upgrade" in caught.value.fix
    assert {name: data for name, data in everything(path.parent).items() if not name.endswith(("-shm", "-wal"))} == before
    assert contents(settings.database)[0] == len(future)


@pytest.mark.anyio
async def test_writes_stop_when_a_newer_program_upgrades_the_database(path: Path, lock: FileLock, tmp_path: Path) -> None:
    store = await open_store(Settings(home=tmp_path))
    await store.conversations.create(Conversation("a"))
    prepare(path, lock, [*released(), Migration("9999_future", "CREATE TABLE future (a INTEGER);")])
    with pytest.raises(StoreTooNew):
        await store.conversations.create(Conversation("b"))
    await store.close()


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(10_000))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _null_bytes(path: Path) -> None:
    path.write_bytes(bytes(8192))


def _header_broken(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0:16] = b"SQLite format 4\0"
    path.write_bytes(data)


def _somebody_elses(path: Path) -> None:
    path.unlink()
    connection = sqlite.connect(str(path))
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()


def _gone_but_its_log(path: Path) -> None:
    path.rename(path.with_name("moot.db-wal"))


@pytest.mark.anyio
@pytest.mark.parametrize("damage", [_garbage, _empty, _null_bytes, _header_broken, _somebody_elses, _gone_but_its_log])
async def test_foreign_files_are_reported_and_not_changed(tmp_path: Path, damage: Any) -> None:
    settings = Settings(home=tmp_path)
    await (await open_store(settings)).close()
    damage(settings.database)
    before = everything(settings.database.parent)
    with pytest.raises(StoreCorrupt) as caught:
        await open_store(settings)
    assert str(settings.database) in caught.value.message and "backups" in caught.value.fix
    assert everything(settings.database.parent) == before


@pytest.mark.anyio
async def test_a_truncated_database_is_reported(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    await (await open_store(settings)).close()
    os.truncate(settings.database, settings.database.stat().st_size // 2)
    with pytest.raises(StoreCorrupt, match=r"moot\.db"):
        store = await open_store(settings)
        try:
            await store.conversations.list()
            await store.search.search("x")
            assert (await store.health())["integrity"] == "ok"
        finally:
            await store.close()


def test_files_of_a_killed_first_start_are_replaced(path: Path, lock: FileLock) -> None:
    path.parent.mkdir(parents=True)
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(f"moot.db.new{ending}").write_bytes(b"rubbish")
    prepare(path, lock, STEPS)
    assert contents(path) == NEWEST


def test_a_home_that_can_not_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        prepare(tmp_path / "file" / "data" / "moot.db", FileLock(tmp_path / "lock"), STEPS)
