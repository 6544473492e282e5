"""The write-ahead log is checkpointed next to the writer and stays short."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.store.database import connection as library
from moot.store.database.checkpoint import LIMIT, run_checkpoint
from moot.store.database.connection import connect
from moot.types.conversation import Conversation
from moot.types.event import Event

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        library.has_wal_reset_bug(library.VERSION), reason="with this library the writer folds the log itself, under its lock"
    ),
]

LARGE = Event("meta", (), b"x" * 250_000)
SMALL = Event("meta", (), b"x")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(Settings(tmp_path))
    await opened.conversations.create(Conversation("c"))
    yield opened
    await opened.close()
    assert not folders()


def folders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "moot-store-folding"]


def length(home: Path) -> int:
    return (home / "data" / "moot.db-wal").stat().st_size


async def written(store: SqliteStore, size: int) -> None:
    for _ in range(size // 1_000_000):
        await store.log.append("c", [LARGE] * 4)


async def shrunk(store: SqliteStore, home: Path, limit: int) -> None:
    """Commit until the log is no longer than that."""
    with anyio.fail_after(60):
        while length(home) > limit:
            await store.log.append("c", [SMALL])
            await anyio.sleep(0.01)


async def test_a_short_log_is_not_checkpointed(store: SqliteStore, tmp_path: Path) -> None:
    await written(store, 4_000_000)
    assert 4_000_000 < length(tmp_path) < LIMIT and not folders()


async def test_a_long_log_is_checkpointed_in_the_background_and_reset(store: SqliteStore, tmp_path: Path) -> None:
    await written(store, 12_000_000)
    assert folders()
    await shrunk(store, tmp_path, LIMIT)
    assert (tmp_path / "data" / "moot.db").stat().st_size > 12_000_000


async def test_a_reader_of_an_old_state_blocks_only_the_reset_of_the_log(store: SqliteStore, tmp_path: Path) -> None:
    reader = connect(tmp_path / "data" / "moot.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM event").fetchone()
    await written(store, 44_000_000)
    assert length(tmp_path) > 44_000_000
    assert reader.execute("SELECT count(*) FROM event").fetchone() == (0,)
    reader.close()
    await written(store, 5_000_000)
    await shrunk(store, tmp_path, LIMIT)


async def test_exclusive_work_is_not_disturbed_by_checkpoints(store: SqliteStore, tmp_path: Path) -> None:
    for _ in range(3):
        await written(store, 12_000_000)
        busy, *_ = await store._writer.run_outside_transaction(
            lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        )
        assert (busy, length(tmp_path), folders()) == (0, 0, [])
    await store.log.append("c", [SMALL])
    assert 0 < await store._writer.run_outside_transaction(run_checkpoint) <= length(tmp_path)


async def test_the_log_stays_short_under_continuous_writes(store: SqliteStore, tmp_path: Path) -> None:
    longest = 0

    async def looked(size: int) -> None:
        nonlocal longest
        await written(store, size)
        longest = max(longest, length(tmp_path))

    for _ in range(8):
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(looked, 8_000_000)
    assert longest < 200_000_000  # of 256; about 50 if the disk is fast enough
