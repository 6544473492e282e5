"""Memory: independent of the length of a log or list, otherwise proportional to what is read."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from moot.config.settings import Settings
from moot.engine import Engine, open_engine
from moot.runtime.hub import Hub
from moot.testing.script import Reply
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def peak(work: Callable[[], Awaitable[object]]) -> int:
    """Peak memory that Python allocated during the work, in bytes above the start."""
    gc.collect()
    tracemalloc.start()
    try:
        await work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def watch(engine: Engine, conversation: str, last: int) -> None:
    seen = 0
    async with aclosing(engine.tail.watch(conversation)) as batches:
        async for events in batches:
            assert events[0].seq == seen + 1
            seen = events[-1].seq
            if seen >= last:
                return


async def test_watchers_and_lists_hold_one_page_in_memory(tmp_path: Path) -> None:
    event = Event("meta", body="x" * 200)
    async with open_engine(Settings(tmp_path)) as engine:
        for name, count in (("short", 1_000), ("long", 4_000)):
            await engine.store.conversations.create(Conversation(name))
            await engine.store.log.append(name, [event] * count)
        await watch(engine, "short", 1_000)
        short = await peak(lambda: watch(engine, "short", 1_000))
        assert await peak(lambda: watch(engine, "long", 4_000)) < 1.5 * short
        few = await peak(lambda: engine.store.conversations.list(limit=50))
        for number in range(100):
            await engine.store.conversations.create(Conversation(f"c{number}", title="t"))
        few = max(few, await peak(lambda: engine.store.conversations.list(limit=50)))
        for number in range(100, 300):
            await engine.store.conversations.create(Conversation(f"c{number}", title="t"))
        assert await peak(lambda: engine.store.conversations.list(limit=50)) < 1.5 * few


async def test_a_slow_watcher_costs_little_memory_and_misses_nothing(tmp_path: Path) -> None:
    async with open_engine(Settings(tmp_path)) as engine:
        await engine.store.conversations.create(Conversation("a"))
        hub = Hub(engine.store)  # without polling for other processes, whose commits would also empty the mailboxes

        async def append(number: int) -> None:
            events = (Event("meta", body=f"{number} " + "x" * 2000),)
            hub.publish("a", await engine.store.log.append("a", events), events)

        await append(0)
        watches = [hub.watch("a") for _ in range(20)]
        for one in watches:
            await anext(one)
        gc.collect()
        tracemalloc.start()
        try:
            for number in range(1, 3_000):
                await append(number)
            gc.collect()
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert held < 2_500_000
        for one in watches:
            seqs = [1]
            with anyio.fail_after(60):
                while seqs[-1] < 3_000:
                    seqs += [event.seq for event in await anext(one)]
            assert seqs == list(range(1, 3_001))
            await one.aclose()


async def test_an_answer_costs_memory_in_step_with_its_length(stage: Any) -> None:
    async def grown(megabytes: int) -> int:
        async with stage([Reply(text="x" * (megabytes << 20), chunk_size=1 << 16, times=0)]) as on:
            run: Any = None

            async def ask() -> None:
                nonlocal run
                run, message = await on.ask("go")
                assert len(text_of(message.parts)) == megabytes << 20

            size = await peak(ask)
            assert run.status == "finished"
            return size

    await grown(1)
    small = await grown(2)
    assert await grown(8) < 6 * small
