"""The single writing thread: grouping, failures, and that every caller gets an outcome."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from moot.config.settings import Settings, Storage
from moot.errors import FenceLost, NotFound, StoreError
from moot.store import SqliteStore, open_store
from moot.store.database.connection import connect
from moot.store.database.locks import Presence
from moot.store.database.transaction import Transaction
from moot.store.database.writer import PAUSE, Writer
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import SystemClock

pytestmark = pytest.mark.anyio


def meta(number: int) -> Event:
    return Event("meta", body=number)


def statements(writer: Writer) -> list[str]:
    """Return everything that the writing connection executes from now on."""
    said: list[str] = []
    writer._connection.set_trace_callback(said.append)  # type: ignore[union-attr]
    return said


async def test_waiting_work_is_committed_together(store: SqliteStore) -> None:
    for name in "abc":
        await store.conversations.create(Conversation(name))
    commits = store._writer.commits
    async with anyio.create_task_group() as group:
        for number in range(60):
            group.start_soon(store.log.append, "abc"[number % 3], [meta(number)])
    assert store._writer.commits - commits <= 5
    for index, name in enumerate("abc"):
        assert [event.body for event in await store.log.read(name)] == list(range(index, 60, 3))


async def test_a_failure_affects_only_its_caller(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    bad = [Event("journal", run=None, phase="start", key="k"), Event("chunks", run="nobody")]
    outcomes = await asyncio.gather(
        store.log.append("a", [meta(1)]),
        store.log.append("a", bad),
        store.log.append("nowhere", [meta(2)]),
        store.log.append("a", [meta(3), meta(4)]),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["range", "FenceLost", "NotFound", "range"]
    assert [(event.seq, event.body) for event in await store.log.read("a")] == [(1, 1), (2, 3), (3, 4)]


async def test_concurrent_appends_of_many_runs_need_few_statements(store: SqliteStore, make: Any) -> None:
    accepted = [await store.records.submit(make.submission()) for _ in range(20)]
    said = statements(store._writer)  # pyright: ignore[reportPrivateUsage]
    added = await asyncio.gather(
        *(
            store.log.append(one.conversation.id, [make.frame(one, str(n)), make.frame(one)], fence=one.fence)
            for n, one in enumerate(accepted)
        )
    )
    assert [list(seqs) for seqs in added] == [[one.seq + 1, one.seq + 2] for one in accepted]
    assert sum(statement.startswith(("SELECT", "UPDATE")) for statement in said) == 1 + len(accepted)  # one UPDATE per conversation
    for number, one in enumerate(accepted):
        stored = await store.log.read(one.conversation.id, after=one.seq)
        assert [event.chunks[0]["delta"] for event in stored] == [str(number), "hi"]


async def test_a_run_with_a_lost_fence_does_not_block_others(store: SqliteStore, make: Any) -> None:
    accepted = [await store.records.submit(make.submission()) for _ in range(3)]
    await store.records.interrupt(accepted[1].run.id, owner="me", fence=1)
    outcomes = await asyncio.gather(
        *(store.log.append(one.conversation.id, [make.frame(one)], fence=one.fence) for one in accepted), return_exceptions=True
    )
    assert isinstance(outcomes[1], FenceLost)
    assert [outcomes[0], outcomes[2]] == [range(one.seq + 1, one.seq + 2) for one in (accepted[0], accepted[2])]
    assert [await store.log.last_seq(one.conversation.id) - one.seq for one in accepted] == [1, 0, 1]


async def test_a_conversation_of_a_failed_unit_is_not_cached(store: SqliteStore) -> None:
    def half(transaction: Transaction) -> None:
        transaction._numbers["ghost"] = 99
        raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        await store._writer.write(half)
    with pytest.raises(NotFound, match="ghost"):
        await store.log.append("ghost", [meta(1)])


@pytest.mark.parametrize(("durability", "sync", "expected"), [("normal", False, []), ("normal", True, ["FULL"]), ("full", False, [])])
async def test_a_commit_is_fsynced_when_it_must_be(
    tmp_path: Path, durability: Literal["normal", "full"], sync: bool, expected: list[str]
) -> None:
    store = await open_store(Settings(home=tmp_path, storage=Storage(durability=durability)))
    await store.conversations.create(Conversation("a"))
    await store.log.append("a", [meta(0)])
    said = statements(store._writer)
    await store.log.append("a", [meta(1)], sync=sync)
    switched = [text.rpartition(" ")[2] for text in said if text.startswith("PRAGMA synchronous")]
    assert switched == expected
    level = await store._writer.write(lambda transaction: transaction.row("PRAGMA synchronous")[0])
    assert level == (2 if durability == "full" else 1)
    await store.close()


async def test_a_cancelled_scope_gets_the_outcome_of_its_append(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    seqs: list[range] = []
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def append() -> None:
                await store._writer.write(lambda _: time.sleep(0.05), "a")
                await anyio.lowlevel.checkpoint()

            async def logged() -> None:
                seqs.append(await store.log.append("a", [meta(1)]))
                await anyio.sleep_forever()

            group.start_soon(append)
            group.start_soon(logged)
            await anyio.sleep(0.01)
            scope.cancel()
    assert seqs == [range(1, 2)]
    assert await store.log.last_seq("a") == 1


async def test_a_cancelled_task_ends_only_when_its_append_is_settled(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    asleep = asyncio.create_task(store._writer.write(lambda _: time.sleep(0.05), "a"))
    task = asyncio.create_task(store.log.append("a", [meta(1)]))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.log.last_seq("a") == 1
    await asleep


async def test_a_cancelled_scope_queues_nothing_new(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.log.append("a", [meta(1)])
    assert await store.log.last_seq("a") == 0
    with anyio.CancelScope() as scope:
        scope.cancel()
        with anyio.CancelScope(shield=True):
            await store.log.append("a", [meta(1)])
    assert await store.log.last_seq("a") == 1


async def test_closing_drains_what_was_queued(settings: Settings) -> None:
    store = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    appends = [asyncio.create_task(store.log.append("a", [meta(number)])) for number in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert [seqs[0] for seqs in await asyncio.gather(*appends)] == list(range(1, 51))
    store = await open_store(settings)
    assert await store.log.last_seq("a") == 50
    await store.close()


async def test_long_work_is_spread_over_short_transactions(store: SqliteStore) -> None:
    commits = store._writer.commits
    slow = partial(lambda transaction: time.sleep(0.01))
    await asyncio.gather(*(store._writer.write(slow) for _ in range(8)))
    assert store._writer.commits - commits >= 3


async def test_other_processes_can_write_between_commits(store: SqliteStore, settings: Settings) -> None:
    async def seconds(count: int) -> float:
        began = time.perf_counter()
        for number in range(count):
            await store.log.append("a", [meta(number)])
        return time.perf_counter() - began

    await store.conversations.create(Conversation("a"))
    assert not store._writer.others()
    other = Presence(settings.home / "state" / "writers.lock")
    assert store._writer.others()
    assert await seconds(20) >= 19 * PAUSE
    other.leave()
    assert not store._writer.others()


async def test_the_writer_waits_for_transactions_of_other_processes(store: SqliteStore, settings: Settings) -> None:
    second = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    entered, leave = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        entered.set()
        leave.wait()

    held = asyncio.create_task(second._writer.write(hold))
    await asyncio.to_thread(entered.wait)
    append = asyncio.create_task(store.log.append("a", [meta(1)]))
    done, _ = await asyncio.wait({append}, timeout=0.1)
    assert not done
    leave.set()
    assert await append == range(1, 2)
    await held
    await second.close()


async def test_the_writer_waits_for_an_exclusively_locked_file(store: SqliteStore, settings: Settings) -> None:
    alone = connect(settings.database, writing=True)  # like one that recovers the log of a killed process
    alone.execute("PRAGMA locking_mode = EXCLUSIVE")
    alone.execute("INSERT INTO setting VALUES ('a', x'00')")
    asyncio.get_running_loop().call_later(0.2, alone.close)
    await store.conversations.create(Conversation("a"))


async def test_a_read_only_process_does_not_count_as_a_writer(settings: Settings, store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    reading = await open_store(settings)
    await reading.conversations.list()
    assert not store._writer.others()
    await reading.close()


async def test_an_unclosed_store_does_not_block_the_exit(settings: Settings, spawn: Any) -> None:
    process = spawn("forgetful", settings.home)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"1\n"), err.decode()


async def test_timestamps_come_from_the_given_clock(settings: Settings) -> None:
    class Stopped(SystemClock):
        def now(self) -> int:
            return 1_234_567

    store = await open_store(settings, clock=Stopped())
    made = await store.conversations.create(Conversation("a"))
    await store.log.append("a", [meta(1), Event("meta", at=5)])
    assert made.created_at == 1234
    assert [event.at for event in await store.log.read("a")] == [1_234_567, 5]
    await store.close()
