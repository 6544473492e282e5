"""Ownership: the view of one owner neither shows nor changes anything of another owner."""

from __future__ import annotations

import inspect
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from conformance.ownership import EMPTY, KEY, ORIGIN, PARTS, REFUSED, UNNAMED, WORD, Theirs, belongings, nothing
from conformance.stores import end, prompt
from moot.errors import Busy, LimitReached, MootError, NotFound
from moot.store.database.connection import connect
from moot.types.conversation import DEFAULT_PROJECT, Conversation, ListChoices, Project
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.imports import Imports, Recording
from moot.types.knowledge import Knowledge
from moot.types.limits import Spending, SpendingQuery
from moot.types.message import Message, text_of, text_part
from moot.types.push import Devices
from moot.types.search import Search, SemanticSearch
from moot.types.stats import Counts, Stats
from moot.types.store import Accepted, HandleInbox, OwnerStore, Store
from moot.types.usage import Usage

pytestmark = pytest.mark.anyio

LAZY = {kind.__name__: kind for kind in (Devices, Imports, Knowledge, Search, SemanticSearch, Stats)}
"""Types that `moot.types.store` imports for type checkers only."""


def count(found: Any) -> int:
    items = found if isinstance(found, list | dict) else getattr(found, "items", None)
    items = getattr(found, "hits", None) if items is None else items
    if isinstance(found, ListChoices):
        items = [*found.agents, *found.models, *found.hosts, *range(found.calls)]
    return 0 if found is None else len(items) if items is not None else 1


def methods() -> set[str]:
    found: set[str] = set()
    for name, seam in inspect.getmembers(OwnerStore, lambda member: isinstance(member, property)):
        kind = get_type_hints(seam.fget, localns=LAZY)["return"]
        found |= {f"{name}.{method}" for method, _ in inspect.getmembers(kind, inspect.isfunction) if not method.startswith("_")}
    return found


async def contents(store: Store) -> dict[str, list[Any]]:
    """Every row of every table."""
    with closing(connect(Path(str((await store.health())["path"])))) as connection:
        tables = [
            row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        ]
        return {table: sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr) for table in tables}


@pytest.fixture
async def theirs(store: Store) -> Theirs:
    return await belongings(store, "ann")


def test_every_method_of_a_view_is_tried() -> None:
    tried = {name.split(" ")[0] for name in (*REFUSED, *EMPTY)} | UNNAMED | {"blobs.upload"}
    assert tried == methods()


async def test_resources_of_other_owners_look_like_missing_ones(store: Store, theirs: Theirs) -> None:
    bob, never = store.of("bob"), nothing(theirs)
    await store.search.index()
    before = await contents(store)
    for name, call in REFUSED.items():
        said: list[str] = []
        for names in (theirs, never):
            with pytest.raises(NotFound) as caught:
                await call(bob, names)
            words = caught.value.advice()
            for known in vars(names).values():
                words = words.replace(known, "…").replace(known[:30], "…")
            said.append(words)
        assert said[0] == said[1], name
    for name, call in EMPTY.items():
        assert count(await call(bob, theirs)) == count(await call(bob, never)) == 0, name
    assert await contents(store) == before


async def test_an_owner_finds_a_resource_by_every_method(store: Store, theirs: Theirs) -> None:
    ann = store.of("ann")
    await end(
        store, Accepted(await ann.conversations.get(theirs.conversation), await ann.records.run(theirs.run), 0, await fence(store, theirs))
    )
    await store.search.index()
    for name, call in EMPTY.items():
        if not any(word in name for word in ("approvals", "inbox", "children")):
            assert count(await call(ann, theirs)) == 1, name
    for name, call in REFUSED.items():
        if name != "conversations.delete":
            await call(ann, theirs)


async def fence(store: Store, theirs: Theirs) -> Any:
    await store.records.interrupt(theirs.run, owner="me", fence=1)
    for item in await store.records.inbox(theirs.run):
        assert item.kind == "steer"
    taken = await store.records.claim(theirs.run, "me", statuses=frozenset({"interrupted"}))
    await store.log.append(theirs.conversation, [Event("meta")], fence=taken, changes=[HandleInbox(1 << 30)])
    return taken


async def test_names_are_unique_per_owner(store: Store, theirs: Theirs) -> None:
    other = await belongings(store, "bob")
    for owner, mine in (("ann", theirs), ("bob", other)):
        own = store.of(owner)
        found = await own.conversations.by_key(KEY)
        assert found is not None and found.id == mine.conversation
        assert (await own.conversations.get("from-a-client")).id == mine.conversation
        assert [item.id for item in (await own.conversations.list()).items] == [mine.conversation]
        assert (await own.projects.around(f"/home/{owner}/below")).id == mine.project
        with pytest.raises(Busy):
            await own.conversations.create(Conversation(new_id(), key=KEY))
    everything = await store.conversations.list()
    assert {item.owner for item in everything.items} == {"ann", "bob"}
    assert len(await store.records.approvals()) == 2
    assert await store.conversations.by_key(KEY) is None


async def test_resources_created_in_a_view_belong_to_its_owner(store: Store, theirs: Theirs) -> None:
    bob = store.of("bob")
    made = await bob.conversations.create(Conversation(new_id(), title=theirs.title, owner="ann"))
    assert (made.owner, made.project) == ("bob", f"{DEFAULT_PROJECT}:bob")
    assert (await bob.conversations.get(theirs.title)).id == made.id
    assert [item.id for item in (await bob.conversations.list(project=DEFAULT_PROJECT)).items] == [made.id]
    await bob.conversations.add_message(Message(new_id(), "user", tuple(PARTS), conversation=made.id))
    copy = await bob.tree.fork(made.id)
    assert (copy.owner, copy.title) == ("bob", f"{theirs.title} (fork)")
    again = await store.tree.fork(theirs.conversation)
    assert (again.owner, again.title) == ("ann", f"{theirs.title} (fork)")
    brought = await bob.imports.add(Recording("there", Conversation(new_id(), origin=ORIGIN, owner="ann"), (), (), (), ()))
    assert (brought.owner, brought.project) == ("bob", f"{DEFAULT_PROJECT}:bob")
    project = await bob.projects.create(Project(new_id(), "mine", root_path="/home/ann", owner="ann"))
    assert project.owner == "bob"
    assert [item.name for item in (await bob.projects.list()).items] == [DEFAULT_PROJECT, "mine"]
    with pytest.raises(Busy, match="/home/ann"):
        await bob.projects.update("default", root_path="/home/ann")


async def test_each_owner_has_a_default_project(store: Store) -> None:
    mine = await store.of("ann").projects.update(DEFAULT_PROJECT, rules="be brief")
    assert (mine.id, mine.owner) == (f"{DEFAULT_PROJECT}:ann", "ann")
    assert (await store.of("ann").projects.get(DEFAULT_PROJECT)).rules == "be brief"
    for other in (store.of("bob"), store.of("local"), store):
        assert (await other.projects.get(DEFAULT_PROJECT)).rules == ""
        assert [item.rules for item in (await other.projects.list()).items][:1] == [""]
    with pytest.raises(NotFound):
        await store.of("bob").projects.get(mine.id)


async def test_folders_of_other_owners_are_not_moved(store: Store) -> None:
    ann, bob = store.of("ann"), store.of("bob")
    made = await ann.conversations.create(Conversation(new_id(), directory="/code/shop/src"))
    assert list(await bob.projects.unplaced()) == list(await bob.projects.folders()) == []
    assert list(await ann.projects.unplaced()) == ["/code/shop/src"]
    await bob.projects.place({"/code/shop/src": "/elsewhere"})
    assert await bob.projects.move("/code/shop", "/stolen") == 0
    assert (await ann.conversations.get(made.id)).directory == "/code/shop/src"
    await ann.projects.place({"/code/shop/src": "/code/shop"})
    assert list(await ann.projects.unplaced()) == []
    assert list(await ann.projects.folders()) == ["/code/shop/src"]
    assert await ann.projects.move("/code/shop", "/code/store") == 1
    assert (await ann.conversations.get(made.id)).directory == "/code/store/src"


async def test_projects_are_paginated_and_filtered_by_text(store: Store) -> None:
    ann = store.of("ann")
    for number in range(5):
        await ann.projects.create(Project(new_id(), f"plan {number}", root_path=f"/plans/{number}\udcff"))
    first = await ann.projects.list(limit=4)
    assert [item.name for item in first.items] == [DEFAULT_PROJECT, "plan 0", "plan 1", "plan 2"]
    rest = await ann.projects.list(limit=4, cursor=first.next_cursor)
    assert ([item.name for item in rest.items], rest.next_cursor) == (["plan 3", "plan 4"], None)
    assert [item.name for item in (await ann.projects.list(query="PLAN 3")).items] == ["plan 3"]
    assert (await ann.projects.around("/plans/3\udcff/a/b")).name == "plan 3"
    assert (await ann.projects.around("/plans/3")).name == DEFAULT_PROJECT
    assert (await ann.projects.get("plan 4")).root_path == "/plans/4\udcff"
    with pytest.raises(MootError, match="cursor"):
        await ann.projects.list(cursor="c1-2")


async def test_a_blob_hash_alone_grants_no_access(store: Store) -> None:
    ann, bob = store.of("ann"), store.of("bob")
    for data in (b"small", b"large" * 100_000):
        blob = await ann.blobs.upload(data, "image/png")
        with pytest.raises(NotFound):
            await bob.blobs.get(blob.sha256)
        # the same bytes of another owner: nothing reveals that they were already stored
        again = await bob.blobs.upload(data, "text/plain")
        assert (again.sha256, again.media_type) == (blob.sha256, "text/plain")
        assert (await bob.blobs.about(blob.sha256)).media_type == "text/plain"
        assert (await ann.blobs.about(blob.sha256)).media_type == "image/png"
        assert await bob.blobs.get(blob.sha256, offset=1, limit=3) == data[1:4] == await store.blobs.get(blob.sha256, offset=1, limit=3)


async def test_blobs_of_runs_are_readable_by_their_owner_only(store: Store) -> None:
    (blob,) = await store.of("ann").blobs.put_all([b"an output"], "text/plain")
    plain = await store.blobs.put(b"of this machine")
    assert await store.of("ann").blobs.get(blob.sha256) == b"an output"
    assert await store.of("local").blobs.get(plain.sha256) == b"of this machine"
    for other, name in (("bob", blob.sha256), ("local", blob.sha256), ("ann", plain.sha256)):
        with pytest.raises(NotFound):
            await store.of(other).blobs.about(name)


async def test_uploads_have_a_quota_for_each_owner(store: Store) -> None:
    ann = store.of("ann")
    await ann.blobs.put(b"x" * 500)  # not given by a user
    first = await ann.blobs.upload(b"a" * 60, "text/plain", quota=100)
    assert await ann.blobs.upload(b"a" * 60, "text/plain", quota=100) == first
    before = await contents(store)
    with pytest.raises(LimitReached, match="60 of 100"):
        await ann.blobs.upload(b"b" * 41, "text/plain", quota=100)
    assert await contents(store) == before
    await ann.blobs.upload(b"b" * 40, "text/plain", quota=100)
    await store.of("bob").blobs.upload(b"c" * 100, "text/plain", quota=100)
    await ann.blobs.upload(b"c" * 100, "text/plain")


async def test_limits_count_each_users_runs_for_themselves(store: Store) -> None:
    def said(user: str) -> Any:
        made = prompt(Conversation(new_id(), owner=user))
        return replace(made, run=replace(made.run, user=user), at_most=1)

    running = {user: await store.records.submit(said(user)) for user in ("ann", "bob")}
    assert [accepted.run.status for accepted in running.values()] == ["running", "running"]
    queued = await store.records.submit(said("ann"))
    assert (queued.run.status, queued.run.user) == ("queued", "ann")
    with pytest.raises(Busy):
        await store.records.claim(queued.run.id, "me", statuses=frozenset({"queued"}), at_most=1)
    await end(store, running["bob"])
    with pytest.raises(Busy):
        await store.records.claim(queued.run.id, "me", statuses=frozenset({"queued"}), at_most=1)
    await end(store, running["ann"])
    await store.records.claim(queued.run.id, "me", statuses=frozenset({"queued"}), at_most=1)


async def test_index_progress_covers_the_owners_messages_only(store: Store, theirs: Theirs) -> None:
    bob = store.of("bob")
    made = await bob.conversations.create(Conversation(new_id()))
    for number in range(3):
        await bob.conversations.add_message(Message(new_id(), "user", (text_part(f"{WORD} {number}"),), conversation=made.id))
    found = await bob.search.search(WORD, limit=2, wait=5)
    assert (len(found.hits), found.done, found.total) == (2, 3, 3)
    rest = await bob.search.search(WORD, limit=2, cursor=found.next_cursor)
    assert [hit.conversation for hit in (*found.hits, *rest.hits)] == [made.id] * 3
    assert (await store.of("ann").search.search(WORD)).total == 1  # the answer is still being written


async def test_messages_have_the_clients_name_in_their_conversation(store: Store, theirs: Theirs) -> None:
    ann = store.of("ann")
    made = await ann.conversations.create(Conversation(new_id()))
    await ann.conversations.add_message(Message(new_id(), "user", (text_part("hi"),), conversation=made.id, client_id="m-1"))
    assert text_of((await ann.conversations.message("m-1", conversation=made.id)).parts) == "hi"
    for id, conversation in (("m-1", theirs.conversation), (theirs.message, made.id), ("m-2", made.id)):
        with pytest.raises(NotFound):
            await ann.conversations.message(id, conversation=conversation)


async def test_runs_are_paginated(store: Store) -> None:
    made = [await store.records.submit(prompt()) for _ in range(5)]
    first = await store.records.runs(limit=2)
    assert [run.id for run in first] == [accepted.run.id for accepted in made[:2:-1]]
    rest = await store.records.runs(limit=9, before=first[-1].no)
    assert [run.id for run in rest] == [accepted.run.id for accepted in made[2::-1]]


async def test_a_conversation_moves_to_a_project_of_its_owner(store: Store, theirs: Theirs) -> None:
    ann = store.of("ann")
    moved = await ann.conversations.update(theirs.conversation, project=DEFAULT_PROJECT)
    assert moved.project == f"{DEFAULT_PROJECT}:ann"
    foreign = await store.of("bob").projects.create(Project(new_id(), "bob's"))
    with pytest.raises(NotFound):
        await ann.conversations.update(theirs.conversation, project=foreign.id)


async def test_totals_cover_the_owners_runs_only(store: Store, theirs: Theirs) -> None:
    assert (await store.of("ann").stats.usage()).conversations == 1
    assert (await store.of("ann").stats.usage()).total.runs == 0  # it has not ended
    made = await store.records.submit(prompt(Conversation(new_id(), owner="bob")))
    await end(store, made, usage=Usage(input=5, output=7), cost=30, model="m@p")
    other = await store.records.submit(prompt(Conversation(new_id(), owner="bob"), "more"))
    await end(store, other, status="failed", usage=Usage(input=1))
    bob = store.of("bob").stats
    found = await bob.usage()
    assert (found.conversations, found.messages) == (2, 4)
    assert found.total == Counts(runs=2, failed=1, input=6, output=7, cost=30, unpriced_runs=1)
    assert [counts.runs for counts in found.days.values()] == [2]
    assert {name: counts.runs for name, counts in found.models.items()} == {"m@p": 1, "": 1}
    assert (await bob.usage(conversation=made.conversation.id)).total.runs == 1
    assert (await bob.usage(conversation=theirs.conversation)).total == (await bob.usage(until=1)).total == Counts()
    assert (await bob.usage(conversation=theirs.conversation)).conversations == 0
    assert (await store.of("ann").stats.usage()).total.runs == 0
    assert (await store.stats.usage()).total.runs == 2
    own, hers, her_run = await bob.spent([SpendingQuery("bob"), SpendingQuery("ann"), SpendingQuery(run=theirs.run)])
    assert (own.cost, hers, her_run) == (30, Spending(), Spending())
