"""Rules for every store about sub-agents: who has which, which parents are due, limits, and lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.stores import end, prompt
from moot.errors import Busy, LimitReached
from moot.types.canonical import JsonObject
from moot.types.children import BACKGROUND
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.store import Accepted, Park, Store, Submission

pytestmark = pytest.mark.anyio


def task(parent: Accepted, *, background: bool = False, **fields: Any) -> Submission:
    """Return the prompt of a sub-agent of the parent's run."""
    plain = prompt(Conversation(new_id(), directory="/work", parent=parent.conversation.id), **fields)
    settings: JsonObject = {BACKGROUND: True} if background else {}
    return replace(plain, run=replace(plain.run, parent_run=parent.run.id, settings=settings))


async def park(store: Store, accepted: Accepted) -> None:
    parked = Event("meta", body={"parked": True})
    await store.log.append(accepted.conversation.id, [parked], fence=accepted.fence, changes=[Park("run")])


async def test_the_children_of_a_run_and_of_a_conversation_are_listed_oldest_first(store: Store) -> None:
    top = await store.records.submit(prompt())
    first, second = [await store.records.submit(task(top)) for _ in range(2)]
    inner = await store.records.submit(task(first))
    await end(store, top)
    later = await store.records.submit(prompt(top.conversation))
    third = await store.records.submit(task(later))

    async def ids(run: str = "", **more: Any) -> list[str]:
        return [child.id for child in await store.records.children(run, **more)]

    assert await ids(top.run.id) == [first.run.id, second.run.id]
    assert await ids(top.run.id, tree=True) == [first.run.id, second.run.id, inner.run.id]
    assert await ids(conversation=top.conversation.id) == [first.run.id, second.run.id, third.run.id]
    assert await ids() == await ids(conversation="none") == []


async def test_a_parked_parent_is_due_when_the_last_awaited_child_has_ended(store: Store) -> None:
    top = await store.records.submit(prompt())
    children = [await store.records.submit(task(top)) for _ in range(2)]
    await store.records.submit(task(top, background=True))
    await park(store, top)
    assert await store.records.parked([top.run.id]) == {top.run.id: False}
    for child, is_due in zip(children, (False, True), strict=True):
        await end(store, child, status="failed")
        assert await store.records.parked([top.run.id]) == {top.run.id: is_due}


async def test_owners_of_children_are_known_until_they_end(store: Store) -> None:
    top = await store.records.submit(prompt())
    held, dead, ended = [await store.records.submit(task(top, owner=owner)) for owner in ("me", "other", "me")]
    parked = await store.records.submit(task(top))
    inner = await store.records.submit(task(parked, owner="other"))
    await park(store, parked)
    await store.records.interrupt(dead.run.id, owner="other", fence=1)
    await end(store, ended)
    assert await store.records.child_owners([top.run.id]) == {held.run.id: "me", dead.run.id: None, inner.run.id: "other"}
    assert await store.records.child_owners([held.run.id]) == await store.records.child_owners([]) == {}


async def test_children_of_earlier_runs_count_while_they_are_at_work(store: Store) -> None:
    top = await store.records.submit(prompt())
    awaited, background = await store.records.submit(task(top)), await store.records.submit(task(top, background=True))
    await end(store, awaited)
    await end(store, top)
    later = await store.records.submit(prompt(top.conversation))
    await store.records.submit(task(later, children=(2, 0)))
    with pytest.raises(LimitReached, match="started 2"):
        await store.records.submit(task(later, children=(2, 0)))
    await end(store, background)
    await store.records.submit(task(later, children=(2, 0)))
    with pytest.raises(LimitReached, match="started 2"):
        await store.records.submit(task(later, children=(2, 0)))


async def test_interrupted_children_do_not_count_for_their_user(store: Store) -> None:
    top = await store.records.submit(prompt())
    dead, waiting = [await store.records.submit(task(top, children=(0, 2), owner=owner)) for owner in ("other", "me")]
    with pytest.raises(LimitReached, match="2 sub-agents are already running"):
        await store.records.submit(task(top, children=(0, 2)))
    await park(store, waiting)
    await store.records.interrupt(dead.run.id, owner="other", fence=1)
    await store.records.submit(task(top, children=(0, 2)))
    with pytest.raises(LimitReached):
        await store.records.submit(task(top, children=(0, 2)))


async def test_a_conversation_at_work_is_not_deleted(store: Store) -> None:
    top = await store.records.submit(prompt())
    child = await store.records.submit(task(top, background=True))
    await end(store, top)
    for id in (top.conversation.id, child.conversation.id):
        with pytest.raises(Busy, match="unfinished run"):
            await store.conversations.delete(id)
    await park(store, child)
    with pytest.raises(Busy):
        await store.conversations.delete(child.conversation.id)
    await store.records.claim(child.run.id, "other", statuses=frozenset({"waiting"}))
    await store.records.interrupt(child.run.id, owner="other", fence=2)
    for id in (child.conversation.id, top.conversation.id):
        assert (await store.conversations.delete(id)).deleted_at is not None


async def test_the_trash_lists_a_child_that_was_deleted_without_its_parent(store: Store) -> None:
    top = await store.records.submit(prompt())
    child = await store.records.submit(task(top))
    await end(store, child)
    await end(store, top)
    await store.conversations.delete(child.conversation.id)

    async def trash() -> list[str]:
        return [one.id for one in (await store.conversations.list(deleted=True)).items]

    assert await trash() == [child.conversation.id]
    assert [one.id for one in (await store.conversations.list()).items] == [top.conversation.id]
    await store.conversations.delete(top.conversation.id)
    assert await trash() == [top.conversation.id], "it is below its parent"
    await store.conversations.delete(top.conversation.id, restore=True)
    await store.conversations.delete(child.conversation.id, restore=True)
    assert await trash() == []
