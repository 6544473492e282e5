"""Readers wake up for commits to their own conversation, by any process, and for nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from moot.config.settings import Settings
from moot.runtime.hub import Hub
from moot.store import SqliteStore, open_store
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[SqliteStore, SqliteStore]]:
    """Two views of one file: each sees the other's commits as those of another process."""
    settings = Settings(home=tmp_path / "home")
    own, other = await open_store(settings), await open_store(settings)
    yield own, other
    await own.close()
    await other.close()


async def conversation(store: SqliteStore) -> str:
    return (await store.conversations.create(replace(Conversation(new_id()), directory="/work"))).id


async def test_commits_of_other_processes_wake_only_watchers_of_that_conversation(stores: tuple[SqliteStore, SqliteStore]) -> None:
    own, other = stores
    watched, still = await conversation(other), await conversation(other)
    hub, rung = Hub(own), list[str]()
    readers = [hub.reader(id, lambda id=id: rung.append(id)) for id in (watched, still)]
    assert [await reader.take() for reader in readers] == [[], []]
    async with anyio.create_task_group() as group:
        group.start_soon(hub.poll)
        for number in range(5):
            await other.log.append(watched, (Event("meta", body=number),))
            found: list[Event] = []
            with anyio.fail_after(60):
                while not found:
                    await anyio.sleep(0.005)
                    found = await readers[0].take() if watched in rung else []
            assert [event.body for event in found] == [number]
            rung.remove(watched)
        assert still not in rung
        group.cancel_scope.cancel()
    for reader in readers:
        reader.close()


async def test_an_up_to_date_reader_reads_the_store_only_after_commits_of_other_processes(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    own, other = stores
    id = await conversation(own)
    hub = Hub(own)
    hub.touch(id, (await own.log.append(id, (Event("meta", body="said"),)))[-1])
    assert not hub.reader(id, lambda: None, after=1).lags
    assert hub.reader(id, lambda: None, after=0).lags
    async with anyio.create_task_group() as group:
        group.start_soon(hub.poll)
        await other.log.append(id, (Event("meta", body="theirs"),))
        with anyio.fail_after(60):
            while not (late := hub.reader(id, lambda: None, after=1)).lags:
                await anyio.sleep(0.005)
        assert [event.body for event in await late.take()] == ["theirs"]
        group.cancel_scope.cancel()


async def test_a_reader_that_was_notified_while_it_read_is_notified_again_later(stores: tuple[SqliteStore, SqliteStore]) -> None:
    own, _ = stores
    id = await conversation(own)
    hub, rung = Hub(own), list[str]()
    reader = hub.reader(id, lambda: rung.append(id))
    taken: list[list[Event]] = []

    async def take() -> None:
        taken.append(await reader.take())

    async with anyio.create_task_group() as group:
        group.start_soon(take)
        await anyio.sleep(0)  # it is reading the store now
        hub.touch(id)
    assert taken == [[]] and rung == [id]
    event = Event("meta", body="later")
    hub.publish(id, await own.log.append(id, (event,)), (event,))
    assert rung == [id, id]
    assert [event.body for event in await reader.take()] == ["later"]
    reader.close()
