from __future__ import annotations

import pytest

from moot.store import SqliteStore
from moot.types.conversation import Conversation, Project
from moot.types.message import Message, text_part


@pytest.mark.anyio
@pytest.mark.parametrize("best", [False, True])
async def test_copies_are_hidden_as_long_as_the_original_exists(store: SqliteStore, best: bool) -> None:
    await store.conversations.create(Conversation("a"))
    for number, parent in enumerate((None, "m0")):
        await store.conversations.add_message(Message(f"m{number}", "user", (text_part("apple"),), conversation="a", parent=parent))
    await store.projects.create(Project("p", "other"))
    copy = await store.tree.fork("a")
    copies = [message.id for message in await store.conversations.branch(copy.id)]
    await store.conversations.update(copy.id, project="p")
    await store.conversations.add_message(Message("own", "user", (text_part("apple of its own"),), conversation=copy.id))

    async def found(query: str, **where: str) -> set[str]:
        return {hit.message for hit in (await store.search.search(query, best=best, **where)).hits}

    assert await found("apple") == {"m0", "m1", "own"}
    assert await found("apple", conversation=copy.id) == {*copies, "own"}
    assert await found("apple project:other") == {*copies, "own"}
    await store.tree.delete("a", ["m0"])
    assert await found("apple") == {copies[0], "m1", "own"}
    await store.conversations.delete("a")
    assert await found("apple") == {*copies, "own"}


@pytest.mark.anyio
async def test_a_copy_with_damaged_metadata_does_not_end_a_search(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    await store.conversations.add_message(Message("m", "user", (text_part("apple"),), conversation="a"))
    copy = await store.tree.fork("a")
    await store.search.index()
    await store._writer.write(lambda transaction: transaction.execute("UPDATE message SET metadata = ? WHERE id <> 'm'", (b'{"source":',)))
    (copied,) = await store.conversations.branch(copy.id)
    assert {hit.message for hit in (await store.search.search("apple")).hits} == {"m", copied.id}
