"""Temporary conversations in the store: hidden from lists and searches, purged when they expire, kept on request."""

from __future__ import annotations

import time

import pytest

from conformance.stores import end, prompt
from moot.engine.maintenance import finish_interrupted
from moot.errors import NotFound
from moot.store import SqliteStore
from moot.store.stats.reports import AnswerStats
from moot.types.conversation import TEMPORARY_MS, Conversation
from moot.types.ids import new_id
from moot.types.limits import Retention
from moot.types.usage import Usage

pytestmark = pytest.mark.anyio
WORD = "axolotl"


async def expire_all(store: SqliteStore) -> None:
    sql = "UPDATE conversation SET expires_at = 1 WHERE expires_at IS NOT NULL"
    await store._writer.write(lambda transaction: transaction.execute(sql))  # pyright: ignore[reportPrivateUsage]


async def test_an_expired_conversation_is_purged_with_its_sub_agents(store: SqliteStore) -> None:
    kept = await store.records.submit(prompt(Conversation(new_id(), title="kept"), f"a kept {WORD}"))
    await end(store, kept)
    before = int(time.time() * 1000)
    accepted = await store.records.submit(prompt(Conversation(new_id(), title="secret", expires_at=0), f"a secret {WORD}"))
    await end(store, accepted, usage=Usage(input=5, output=7), model="m@p")
    id = accepted.conversation.id
    child = await store.conversations.create(Conversation(new_id(), parent=id))
    assert child.expires_at and accepted.conversation.expires_at and accepted.conversation.expires_at >= before + TEMPORARY_MS
    await store.search.index()
    assert [hit.conversation for hit in (await store.search.search(WORD)).hits] == [kept.conversation.id]
    for archived, deleted in ((False, False), (None, False), (None, True)):
        assert id not in [one.id for one in (await store.conversations.list(archived=archived, deleted=deleted)).items]
    assert await store.erasure.expire(Retention()) == ([], None)

    await expire_all(store)
    before_purge = (await store.stats.usage()).total
    over, receipt = await store.erasure.expire(Retention())
    assert [one.conversation.id for one in over] == [id]
    assert receipt is not None and set(receipt.conversations) == {id, child.id}
    assert [one.title for one in (await store.conversations.list()).items] == ["kept"]
    assert (await store.stats.usage()).total == before_purge, "the usage was paid for"


async def test_each_prompt_postpones_the_end_and_keeping_cancels_it(store: SqliteStore) -> None:
    accepted = await store.records.submit(prompt(Conversation(new_id(), expires_at=0), "one"))
    await end(store, accepted)
    id = accepted.conversation.id
    await expire_all(store)
    await end(store, await store.records.submit(prompt(accepted.conversation, "two")))
    again = (await store.conversations.get(id)).expires_at
    assert again and again > time.time() * 1000
    child = await store.conversations.create(Conversation(new_id(), parent=id))
    assert (await store.tree.fork(id)).expires_at, "a copy of a temporary conversation is temporary"
    assert (await store.conversations.update(id, keep=True)).expires_at is None
    assert (await store.conversations.get(child.id)).expires_at is None
    assert [one.id for one in (await store.conversations.list()).items] == [id]


async def test_a_conversation_that_is_kept_while_a_purge_starts_stays(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = await store.records.submit(prompt(Conversation(new_id(), expires_at=0), "one"))
    await end(store, accepted)
    id = accepted.conversation.id
    count = AnswerStats.count

    async def count_and_keep(self: AnswerStats) -> None:
        await store.conversations.update(id, keep=True)
        await count(self)

    monkeypatch.setattr(AnswerStats, "count", count_and_keep)
    assert (await store.erasure.purge([id], temporary=True)).conversations == []
    assert [one.id for one in (await store.conversations.list()).items] == [id]


async def test_keeping_a_sub_agent_keeps_the_conversation_that_started_it(store: SqliteStore) -> None:
    parent = await store.conversations.create(Conversation(new_id(), expires_at=0))
    child = await store.conversations.create(Conversation(new_id(), parent=parent.id))
    assert child.expires_at
    await store.conversations.update(child.id, keep=True)
    assert [(await store.conversations.get(one)).expires_at for one in (parent.id, child.id)] == [None, None]


async def test_a_busy_sub_agent_delays_only_its_own_conversation(store: SqliteStore) -> None:
    idle, busy = [await store.conversations.create(Conversation(new_id(), expires_at=0)) for _ in range(2)]
    await store.records.submit(prompt(Conversation(new_id(), parent=busy.id), "at work"))
    await expire_all(store)
    over, receipt = await store.erasure.expire(Retention())
    assert [one.conversation.id for one in over] == [idle.id] and receipt is not None and receipt.conversations == [idle.id]


async def test_a_kept_copy_of_a_temporary_conversation_is_found(store: SqliteStore) -> None:
    accepted = await store.records.submit(prompt(Conversation(new_id(), expires_at=0), f"a secret {WORD}"))
    await end(store, accepted)
    await store.conversations.update(accepted.conversation.id, tags=["private"])
    copy = await store.tree.fork(accepted.conversation.id)
    assert (await store.conversations.choices()).tags == ()
    await store.conversations.update(copy.id, keep=True)
    await store.search.index()
    assert [hit.conversation for hit in (await store.search.search(WORD)).hits] == [copy.id]


async def test_the_start_of_a_process_does_not_empty_the_trash(store: SqliteStore) -> None:
    deleted = await store.conversations.create(Conversation(new_id()))
    temporary = await store.conversations.create(Conversation(new_id(), expires_at=0))
    await store.conversations.delete(deleted.id)
    sql = "UPDATE conversation SET deleted_at = 1 WHERE deleted_at IS NOT NULL"
    await store._writer.write(lambda transaction: transaction.execute(sql))  # pyright: ignore[reportPrivateUsage]
    await expire_all(store)
    await finish_interrupted(store)
    assert (await store.conversations.get(deleted.id)).deleted_at == 1
    with pytest.raises(NotFound):
        await store.conversations.get(temporary.id)
