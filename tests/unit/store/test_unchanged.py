"""Reading a database on a disk on which SQLite can't create the files next to it."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import pytest

from moot.config.settings import Settings
from moot.errors import StoreFull
from moot.store import open_store
from moot.store.database.connection import Connection, connect, sqlite
from moot.store.database.unchanged import read_unchanged
from moot.types.conversation import Project

pytestmark = pytest.mark.anyio


def refusal(code: int = 14) -> sqlite.OperationalError:
    error = sqlite.OperationalError("refused")
    error.sqlite_errorcode = code  # type: ignore[attr-defined, misc]
    return error


def count(connection: Connection) -> int:
    return connection.execute("SELECT count(*) FROM numbers").fetchone()[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.db"
    path.touch()
    with closing(connect(path, writing=True)) as connection:
        connection.execute("CREATE TABLE numbers (number)")
    return path


def add(path: Path) -> None:
    with closing(connect(path, writing=True)) as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")


def test_a_file_without_a_log_is_read_alone(path: Path) -> None:
    add(path)
    assert read_unchanged(path, count, refusal()) == 1
    assert list(path.parent.iterdir()) == [path]


def test_other_errors_and_missing_files_are_raised(path: Path) -> None:
    for error, where in ((refusal(5), path), (refusal(), path.with_name("missing.db"))):
        with pytest.raises(sqlite.OperationalError) as caught:
            read_unchanged(where, count, error)
        assert caught.value is error


def test_a_file_with_a_log_or_a_connection_is_not_read_alone(path: Path) -> None:
    with closing(connect(path, writing=True)) as connection:
        for statement in ("INSERT INTO numbers VALUES (1)", "PRAGMA wal_checkpoint(TRUNCATE)"):
            connection.execute(statement)
            with pytest.raises(sqlite.OperationalError, match="refused"):
                read_unchanged(path, count, refusal())


def test_a_file_that_changes_meanwhile_is_read_again(path: Path) -> None:
    seen: list[int] = []

    def work(connection: Connection) -> int:
        seen.append(count(connection))
        if len(seen) == 1:
            add(path)
            raise ValueError("read while it changed")
        if len(seen) == 2:
            add(path)
        return seen[-1]

    assert read_unchanged(path, work, refusal()) == 2
    assert seen == [0, 1, 2]


def test_a_file_that_keeps_changing_is_refused(path: Path) -> None:
    def work(connection: Connection) -> int:
        add(path)
        return 0

    with pytest.raises(sqlite.OperationalError, match="refused"):
        read_unchanged(path, work, refusal())


async def test_a_store_is_read_while_no_file_can_grow(tmp_path: Path) -> None:
    async with await open_store(Settings(tmp_path)) as store:
        await store.projects.create(Project("kept", name="kept"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        async with await open_store(Settings(tmp_path)) as store:
            assert (await store.projects.get("kept")).name == "kept"
            with pytest.raises(StoreFull):
                await store.projects.create(Project("refused", name="refused"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
