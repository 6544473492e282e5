"""Sealing in processes that are killed, and in two at once: every event exists once."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.store.database.connection import Connection
from moot.types.conversation import Conversation
from moot.types.event import Event

pytestmark = pytest.mark.anyio

Logs = dict[str, list[Event]]


async def filled(store: SqliteStore, conversations: int, events: int) -> Logs:
    chance = random.Random(7)
    logs: Logs = {}
    for number in range(conversations):
        id = (await store.conversations.create(Conversation(f"c{number}"))).id
        said = [Event("meta", (), b'data: {"text": "%x"}\n\n' % chance.getrandbits(80), body={"n": place}) for place in range(events)]
        await store.log.append(id, said)
        logs[id] = await store.log.read(id, limit=events)
    return logs


async def read(store: SqliteStore, logs: Logs) -> Logs:
    return {id: await store.log.read(id, limit=len(events) + 9) for id, events in logs.items()}


def left(connection: Connection) -> tuple[int, int]:
    """Rows of the log, and events in segments."""
    rows = connection.execute("SELECT count(*) FROM event").fetchone()[0]
    return rows, connection.execute("SELECT coalesce(sum(last_seq - first_seq + 1), 0) FROM segment").fetchone()[0]


@pytest.mark.parametrize("point", ["seal.inserted", "seal.replaced", "store.before-commit:2", "store.after-commit:2"])
async def test_a_crash_leaves_rows_or_the_segment(settings: Settings, spawn: Any, point: str) -> None:
    store = await open_store(settings)
    logs = await filled(store, 3, 300)
    await store.close()
    process = spawn("sealer", settings.home, env={**os.environ, "MOOT_TESTING": "1", "MOOT_CRASH_AT": point})
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    store = await open_store(settings)
    assert await read(store, logs) == logs
    rows, sealed = await store._reader.read(left)
    assert rows + sealed == 900
    assert sealed == {"store.before-commit:2": 300, "store.after-commit:2": 600}.get(point, 0)
    assert [done.events async for done in store.upkeep.seal()][-1] == rows
    assert await read(store, logs) == logs
    await store.close()


async def test_two_processes_seal_while_one_appends(settings: Settings, spawn: Any) -> None:
    store = await open_store(settings)
    logs = await filled(store, 12, 700)
    sealers = [spawn("sealer", settings.home) for _ in range(2)]
    for sealer in sealers:
        assert sealer.stdout.readline() == b"ready\n"
    for id in logs:
        await store.log.append(id, [Event("meta", body="more")])
    for sealer in sealers:
        _, complaints = sealer.communicate()
        assert (sealer.returncode, complaints) == (0, b"")
    for id, events in logs.items():
        now = await store.log.read(id, limit=9999)
        assert [event.seq for event in now] == list(range(1, 702))
        assert now[:700] == events
    await store.close()
