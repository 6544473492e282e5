"""Sealing and indexing in the background."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from moot.config.settings import Settings
from moot.engine.maintenance import index_periodically, seal_briefly, seal_periodically
from moot.store import SqliteStore, open_store
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message, text_part

pytestmark = pytest.mark.anyio

LONG_AGO = 1_500_000_000_000_000


async def filled(home: Path) -> SqliteStore:
    """One conversation that has been quiet for long, and one with a new message."""
    store = await open_store(Settings(home))
    for id, at in (("quiet", LONG_AGO), ("busy", 0)):
        await store.conversations.create(Conversation(id))
        await store.log.append(id, [Event("meta", body=number, at=at) for number in range(30)])
    return store


async def test_idle_conversations_are_sealed_periodically(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: seal_periodically(store, 600.0, first=0.0, again=0.01))
            while (await store.upkeep.sizes()).sealed.events < 30:
                await anyio.sleep(0.01)
            await store.log.append("quiet", [Event("meta", body="more", at=LONG_AGO)])
            while (await store.upkeep.sizes()).sealed.events < 31:
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    sizes = await store.upkeep.sizes()
    assert (sizes.rows.events, sizes.segments) == (30, 1)
    assert [event.body for event in await store.log.read("quiet")] == [*range(30), "more"]
    await store.close()


async def test_an_ending_process_seals_briefly_or_not_at_all(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    await seal_briefly(store, 0.0)
    await seal_periodically(store, 0.0, first=0.0)
    assert (await store.upkeep.sizes()).sealed.events == 0
    await seal_briefly(store, 600.0)
    assert (await store.upkeep.sizes()).sealed.events == 30
    await store.close()


async def test_new_messages_are_indexed_periodically(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: index_periodically(store, first=0.0, again=0.01))
            for word in ("soup", "bread"):
                await store.conversations.add_message(Message(word, "user", (text_part(word),), conversation="busy"))
                while not (await store.search.search(word, wait=0)).hits:
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    await store.close()
