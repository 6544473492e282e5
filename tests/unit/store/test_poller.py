"""Detecting commits of other processes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id

pytestmark = pytest.mark.anyio


async def settle() -> None:
    """Long enough for one poll."""
    await asyncio.sleep(0.1)


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not true():
            await asyncio.sleep(0.01)


async def compared(store: SqliteStore) -> None:
    """Commit and wait until the poller has compared versions: until then our next commit may report another process's commit again."""
    await store.log.append("a", [Event("meta")])
    version = await store._writer.data_version()
    await until(lambda: store._poller._own == version)
    await settle()


async def test_commits_of_other_processes_are_noticed_but_not_our_own(store: SqliteStore, settings: Settings) -> None:
    other = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    seen = 0

    async def watch() -> None:
        nonlocal seen
        async with aclosing(store.foreign_commits(interval=0.01)) as others:  # type: ignore[type-var]
            async for _ in others:
                seen += 1

    task = asyncio.create_task(watch())
    await until(lambda: seen > 0)
    await store.log.append("a", [Event("meta")])
    await until(lambda: store._poller._own != -1)
    await settle()
    seen = 0  # the first of our own commits can't be distinguished
    for _ in range(5):
        await store.log.append("a", [Event("meta")])
        await asyncio.sleep(0.03)
    await settle()
    assert seen == 0
    await other.log.append("a", [Event("meta")])
    await until(lambda: seen > 0)
    await settle()
    assert seen in (1, 2)  # one commit may look like two changes, because the log's header also changes when the log restarts
    await compared(store)
    before = seen
    await asyncio.gather(other.log.append("a", [Event("meta")]), *(store.log.append("a", [Event("meta")]) for _ in range(5)))
    await until(lambda: seen > before)
    await compared(store)
    assert seen - before in (1, 2)  # if our own commit was in progress at the first poll, our next one reports it again
    rung = seen
    for _ in range(5):
        await store.log.append("a", [Event("meta")])
        await asyncio.sleep(0.03)
    await settle()
    assert seen == rung
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await other.close()


@pytest.mark.slow
async def test_nothing_is_polled_without_a_watcher(store: SqliteStore) -> None:
    assert store._poller._thread is None
    async with aclosing(store.foreign_commits()) as others:  # type: ignore[type-var]
        first = asyncio.ensure_future(anext(others))
        await until(lambda: store._poller._thread is not None)
        looking: Any = store._poller._thread
        assert looking.is_alive()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    await until(lambda: not looking.is_alive())
    assert store._poller._thread is None


async def test_a_watcher_soon_after_another_reuses_its_thread(store: SqliteStore, settings: Settings) -> None:
    other = await open_store(settings)
    threads: list[Any] = []
    for _ in range(20):
        async with aclosing(store.foreign_commits(interval=60)) as others:  # type: ignore[type-var]
            with anyio.fail_after(60):
                await anext(others)
            threads.append(store._poller._thread)
        await other.conversations.create(Conversation(f"{len(threads)}"))
    assert len(set(threads)) == 1
    assert threads[0].is_alive()
    await store.close()
    await until(lambda: not threads[0].is_alive())
    await other.close()


async def test_two_watchers_share_one_poller(store: SqliteStore, settings: Settings) -> None:
    other = await open_store(settings)
    both = [store.foreign_commits(), store.foreign_commits(interval=0.01)]
    waiting = [asyncio.ensure_future(anext(each)) for each in both]
    await until(lambda: store._poller._thread is not None)
    await settle()
    assert len([thread for thread in threading.enumerate() if thread.name == "moot-store-poller"]) == 1
    await other.conversations.create(Conversation("a"))
    await asyncio.wait_for(asyncio.gather(*waiting), 60)
    for each in both:
        await each.aclose()  # type: ignore[attr-defined]
    await other.close()


async def test_a_store_with_watchers_leaves_no_log_behind(settings: Settings) -> None:
    for _ in range(5):
        store = await open_store(settings)
        async with aclosing(store.foreign_commits(interval=0.01)) as others:  # type: ignore[type-var]
            await anext(others)
            await store.conversations.create(Conversation(new_id()))
            await store.close()
        log = settings.database.with_name(f"{settings.database.name}-wal")
        assert not log.exists()
