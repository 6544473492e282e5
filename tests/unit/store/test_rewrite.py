"""Rewriting the whole database file."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from moot.config.settings import Settings
from moot.errors import StoreError
from moot.store import open_store
from moot.store.database.connection import connect
from moot.store.maintenance.vacuum import empty_log, rewrite_database
from moot.types.conversation import Conversation
from moot.types.event import Event

pytestmark = pytest.mark.anyio


async def test_a_rewrite_reports_the_wait_and_keeps_concurrent_writes(tmp_path: Path) -> None:
    path, said, sizes = tmp_path / "data" / "moot.db", list[str](), list[tuple[int, int]]()
    store, other = await open_store(Settings(tmp_path)), await open_store(Settings(tmp_path))
    await store.conversations.create(Conversation("c"))
    await store.log.append("c", [Event("meta", (), b"x" * 1_000_000)] * 8)
    async with anyio.create_task_group() as group:

        async def more() -> None:
            for _ in range(20):
                await other.log.append("c", [Event("meta", (), b"y")])
                await anyio.sleep(0.005)

        group.start_soon(more)
        sizes.append(await rewrite_database(store._writer, store._reader, path, said.append))
        assert await empty_log(store._writer, path, said.append, 20.0)
    assert min(sizes[0]) > 8_000_000
    assert "MB); other writers wait for about 1 second" in said[0] and said[-1] == "Emptying the write-ahead log"
    assert len(await store.log.read("c", limit=100)) == 28
    await other.close()
    await store.close()


async def test_a_rewrite_waits_for_readers_and_then_gives_up(tmp_path: Path) -> None:
    path = tmp_path / "data" / "moot.db"
    store = await open_store(Settings(tmp_path))
    await store.conversations.create(Conversation("c"))
    reader = connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM event").fetchone()
    await store.log.append("c", [Event("meta", (), b"y")])
    assert not await empty_log(store._writer, path, lambda _: None, 0.2)
    reader.close()
    assert await empty_log(store._writer, path, lambda _: None, 20.0)
    await store.close()


async def test_errors_during_a_rewrite_are_not_wrapped(tmp_path: Path) -> None:
    store = await open_store(Settings(tmp_path))
    await store._writer.close()
    with pytest.raises(StoreError, match="is closed"):
        await rewrite_database(store._writer, store._reader, tmp_path / "data" / "moot.db", lambda _: None)
    await store.close()
