"""Edits of a conversation's tree: the log alone gives the same tree again, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from moot.config.settings import Settings
from moot.convert.fold import Folder
from moot.store import SqliteStore, open_store
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, Part
from unit.store.processes.gardener import DEEDS, Gardener


@dataclass
class Refolded:
    """A conversation's tree according to its log."""

    head: str | None = None
    parents: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict[str, "tuple[Part, ...]"])
    deleted: set[str] = field(default_factory=set[str])


def refolded(events: list[Event]) -> Refolded:
    found = Refolded()
    runs: dict[str, str] = {}
    folders: dict[str, Folder] = {}
    for event in events:
        body: Any = event.body
        if event.kind == "message":
            found.parents[body["id"]] = body["parent"]
            found.parts[body["id"]] = tuple(body["parts"])
            found.head = body["id"] if body.get("head") is not False else found.head
        elif event.kind == "tree" and body["op"] == "answer":
            found.parents[body["message"]] = body["parent"]
            runs[body["run"]] = found.head = body["message"]
            folders[body["message"]] = Folder()
        elif event.kind == "tree" and body["op"] == "head":
            found.head = body["message"]
        elif event.kind == "tree" and body["op"] == "delete":
            found.deleted |= set(body["messages"])
        elif event.kind == "tree" and body["op"] == "restore":
            found.deleted -= set(body["messages"])
        elif event.run is not None:
            folders[runs[event.run]].feed_all(event.chunks)
    found.parts |= {id: folder.parts() for id, folder in folders.items()}
    return found


async def everything(store: SqliteStore, conversation: str) -> list[Event]:
    found: list[Event] = []
    while page := await store.log.read(conversation, after=len(found)):
        found += page
    return found


async def check(store: SqliteStore, conversation: str) -> None:
    """Check that the rows match the log, and that the current branch is a path from a root."""
    nodes = await store.tree.nodes(conversation)
    branch = await store.conversations.branch(conversation)
    stored = await store.conversations.get(conversation)
    told = refolded(await everything(store, conversation))
    assert stored.head == told.head
    assert told.head is None or told.head in told.parents
    assert {node.id: node.parent for node in nodes} == told.parents
    assert {node.id for node in nodes if node.deleted} == told.deleted
    for node in nodes:
        assert (await store.conversations.message(node.id)).parts == told.parts[node.id]
    path: list[str] = []
    at = told.head
    while at is not None:
        path.append(at)
        at = told.parents[at]
    assert [message.id for message in branch] == [id for id in reversed(path) if id not in told.deleted]
    assert {node.id for node in nodes if node.shown} == set(path)
    assert stored.message_count == len(nodes) - len(told.deleted)
    for limit in (1, 2, 5):
        assert await store.conversations.branch(conversation, limit=limit) == branch[-limit:]


async def garden(deeds: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        store = await open_store(Settings(home=Path(home)))
        made = await store.conversations.create(Conversation(new_id(), title="t"))
        gardener = Gardener(store, made)
        kept: list[Event] = []
        said: dict[str, Message] = {}
        for deed, number in deeds:
            await gardener.do(deed, number)
            await check(store, made.id)
            events = await everything(store, made.id)
            assert events[: len(kept)] == kept, "the log was only added to"
            kept = events
            for id, message in said.items():
                assert await store.conversations.message(id) == message
            said |= {node.id: await store.conversations.message(node.id) for node in await store.tree.nodes(made.id)}
        for fork in gardener.forks:
            await check(store, fork.id)
        await store.close()


@examples(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 10_000)), max_size=20).map(lambda deeds: [("say", 0), ("say", 1), *deeds]))
@pytest.mark.slow
def test_the_tree_can_be_rebuilt_from_the_log(deeds: list[tuple[str, int]]) -> None:
    asyncio.run(garden(deeds))


@pytest.mark.anyio
async def test_two_processes_can_change_one_tree(store: SqliteStore, settings: Settings, spawn: Any) -> None:
    made = await store.conversations.create(Conversation(new_id(), title="t"))
    gardeners = [spawn("gardener", settings.home, made.id, seed, 60) for seed in (1, 2)]
    for gardener in gardeners:
        assert gardener.stdout.readline() == b"ready\n"
    for gardener in gardeners:
        out = await asyncio.to_thread(gardener.stdout.read)  # communicate() would lose what readline() has buffered
        assert await asyncio.to_thread(gardener.wait, 50) == 0
        assert out.split()[-1].isdigit()
    await check(store, made.id)
    forks = [item for item in (await store.conversations.list(limit=200)).items if item.forked_from == made.id]
    assert forks
    for fork in forks:
        await check(store, fork.id)


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["store.before-commit:23", "store.after-commit:31"])
async def test_a_kill_during_a_commit_leaves_changes_atomic(store: SqliteStore, settings: Settings, spawn: Any, where: str) -> None:
    made = await store.conversations.create(Conversation(new_id(), title="t"))
    gardener = spawn("gardener", settings.home, made.id, where, 200, env={**os.environ, "MOOT_TESTING": "1", "MOOT_CRASH_AT": where})
    await asyncio.to_thread(gardener.communicate, timeout=60)
    assert gardener.returncode == -signal.SIGKILL
    # only the answer in progress may be incomplete: its run is found as interrupted
    for run in await store.records.runs(statuses=frozenset({"running"})):
        assert await store.records.interrupt(run.id, owner="me", fence=run.fence)
    for item in (await store.conversations.list(limit=200)).items:
        await check(store, item.id)
