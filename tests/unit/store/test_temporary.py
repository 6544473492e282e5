"""Temporary conversations in the store: hidden from lists and searches, purged when they expire, kept on request."""

from __future__ import annotations

import time

import pytest

from conformance.stores import end, prompt
from moot.store import SqliteStore
from moot.types.conversation import TEMPORARY_MS, Conversation
from moot.types.ids import new_id
from moot.types.limits import Retention
from moot.types.usage import Usage

pytestmark = pytest.mark.anyio
WORD = "axolotl"


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

    sql = "UPDATE conversation SET expires_at = 1 WHERE expires_at IS NOT NULL"
    await store._writer.write(lambda transaction: transaction.execute(sql))  # pyright: ignore[reportPrivateUsage]
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
    sql = "UPDATE conversation SET expires_at = 1 WHERE expires_at IS NOT NULL"
    await store._writer.write(lambda transaction: transaction.execute(sql))  # pyright: ignore[reportPrivateUsage]
    await end(store, await store.records.submit(prompt(accepted.conversation, "two")))
    again = (await store.conversations.get(id)).expires_at
    assert again and again > time.time() * 1000
    child = await store.conversations.create(Conversation(new_id(), parent=id))
    assert (await store.tree.fork(id)).expires_at, "a copy of a temporary conversation is temporary"
    assert (await store.conversations.update(id, keep=True)).expires_at is None
    assert (await store.conversations.get(child.id)).expires_at is None
    assert [one.id for one in (await store.conversations.list()).items] == [id]
