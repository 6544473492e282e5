"""What is whose: through the view of one owner there is nothing of another's, and nothing of it can be changed."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from conformance.stores import end, frame, prompt
from moot.errors import Busy, LimitReached, MootError, NotFound
from moot.store.connect import connect
from moot.types.approval import Approval
from moot.types.canonical import JsonObject
from moot.types.conversation import DEFAULT_PROJECT, Conversation, Project
from moot.types.event import Event
from moot.types.exchange import Exchange, ExchangeOptions
from moot.types.format import ImportedMessage
from moot.types.ids import new_id
from moot.types.imports import Arrival, Arriving, Received, Settled, SourceMark
from moot.types.message import Message
from moot.types.part import text_of, text_part
from moot.types.recording import Recording
from moot.types.share import NewShare, Share, SharedPage
from moot.types.stats import Counts
from moot.types.store import Accepted, Ask, Holdings, InboxItem, OpenExchange, Store, Took
from moot.types.usage import Usage

pytestmark = pytest.mark.anyio

WORD = "heliotrope"
KEY = "channel:room"
LATER = 1 << 50
PAGE = SharedPage(b"<p>a page", "default-src 'none'")
ARRIVAL = Arrival(ImportedMessage("user", (text_part("changed"),), "m", b"raw"), b"m", b"digest")
ORIGIN: JsonObject = {"format": "recording", "source_id": "from-elsewhere"}


@dataclass(frozen=True)
class Theirs:
    """Something of everything, all of one owner, and what it is called."""

    conversation: str
    message: str
    run: str
    approval: str
    exchange: str
    project: str
    blob: str
    title: str
    share: str


async def belongings(store: Store, owner: str) -> Theirs:
    own = store.of(owner)
    project = await own.projects.create(Project(new_id(), f"{owner}'s plans", root_path=f"/home/{owner}"))
    title = f"the plans of {owner}"
    made = Conversation(new_id(), project=project.id, key=KEY, client_id="from-a-client", title=title, directory="/work", owner=owner)
    made = replace(made, origin=ORIGIN)
    received = await own.imports.receive(Arriving("kept", 1, "from-elsewhere", replace(made, owner="somebody")))
    assert received.is_new
    made = await own.conversations.get(received.id)
    assert made.owner == owner
    asked = prompt(made, f"the word is {WORD}, said {owner}")
    accepted: Accepted = await store.records.submit(replace(asked, run=replace(asked.run, user=owner)))
    assert accepted.fence is not None
    run = accepted.run.id
    approval = Approval(f"{run}/tool:0.0", run, "call", "shell", b"{}", b"digest", 1)
    exchange = Exchange(f"{run}:0.0", run, made.id, "answer", "demo", "demo/1", "demo", "m", ExchangeOptions(), {})
    await store.log.append(made.id, [frame(accepted, "a")], fence=accepted.fence, changes=[Ask(approval), OpenExchange(exchange)])
    await store.records.post(run, InboxItem("steer", {"parts": []}))
    blob = await own.blobs.upload(f"bytes of {owner}".encode(), "text/plain")
    assert asked.user is not None
    await own.imports.remember(SourceMark("kept", 1, "/there", 2, 3, 4))
    share = await own.shares.add(NewShare(Share(new_id(), made.id, title, LATER), PAGE, os.urandom(8)))
    return Theirs(made.id, asked.user.id, run, approval.id, exchange.id, project.id, blob.sha256, title, share.id)


def nothing(of: Theirs) -> Theirs:
    """Names of the same shape that stand for nothing."""
    run = new_id()
    return Theirs(
        new_id(), new_id(), run, f"{run}/tool:0.0", f"{run}:0.0", new_id(), hashlib.sha256(b"nobody's").hexdigest(), "untold", new_id()
    )


Calls = dict[str, Callable[[Holdings, Theirs], Awaitable[Any]]]
PARTS = [text_part("changed")]

REFUSED: Calls = {
    "log.read": lambda own, it: own.log.read(it.conversation),
    "log.last_seq": lambda own, it: own.log.last_seq(it.conversation),
    "records.run": lambda own, it: own.records.run(it.run),
    "records.run by prefix": lambda own, it: own.records.run(it.run[:30]),
    "conversations.get": lambda own, it: own.conversations.get(it.conversation),
    "conversations.get by prefix": lambda own, it: own.conversations.get(it.conversation[:30]),
    "conversations.get by title": lambda own, it: own.conversations.get(it.title),
    "conversations.rename": lambda own, it: own.conversations.rename(it.conversation, "changed", "user"),
    "conversations.set_settings": lambda own, it: own.conversations.set_settings(it.conversation, {"mode": "auto"}),
    "conversations.update": lambda own, it: own.conversations.update(it.conversation, archived=True),
    "conversations.delete": lambda own, it: own.conversations.delete(it.conversation),
    "conversations.branch": lambda own, it: own.conversations.branch(it.conversation),
    "conversations.message": lambda own, it: own.conversations.message(it.message),
    "conversations.message in it": lambda own, it: own.conversations.message(it.message, conversation=it.conversation),
    "conversations.add_message": lambda own, it: own.conversations.add_message(Message(new_id(), "user", conversation=it.conversation)),
    "conversations.create in a project": lambda own, it: own.conversations.create(Conversation(new_id(), project=it.project)),
    "tree.nodes": lambda own, it: own.tree.nodes(it.conversation),
    "tree.edit": lambda own, it: own.tree.edit(it.message, PARTS),
    "tree.graft": lambda own, it: own.tree.graft(it.conversation, None, [Message(new_id(), "user", tuple(PARTS))]),
    "tree.delete": lambda own, it: own.tree.delete(it.conversation, [it.message]),
    "tree.fork": lambda own, it: own.tree.fork(it.conversation),
    "tree.switch": lambda own, it: own.tree.switch(it.conversation, it.message),
    "grants.revoke": lambda own, it: own.grants.revoke(it.conversation, tool="shell", match="*"),
    "projects.get": lambda own, it: own.projects.get(it.project),
    "projects.update": lambda own, it: own.projects.update(it.project, name="changed"),
    "blobs.about": lambda own, it: own.blobs.about(it.blob),
    "blobs.get": lambda own, it: own.blobs.get(it.blob),
    "imports.take": lambda own, it: own.imports.take(Received(it.conversation), [ARRIVAL]),
    "imports.settle": lambda own, it: own.imports.settle(Received(it.conversation), Settled(1, title="changed")),
    "shares.add": lambda own, it: own.shares.add(NewShare(Share(new_id(), it.conversation, "t", LATER), PAGE, os.urandom(8))),
    "shares.revoke": lambda own, it: own.shares.revoke(it.share),
}
"""What another's name does not reach."""

EMPTY: Calls = {
    "log.last_seqs": lambda own, it: own.log.last_seqs([it.conversation]),
    "records.last_answer": lambda own, it: own.records.last_answer(it.message),
    "records.runs": lambda own, it: own.records.runs(),
    "records.runs of it": lambda own, it: own.records.runs(conversation=it.conversation),
    "records.inbox": lambda own, it: own.records.inbox(it.run),
    "records.approval": lambda own, it: own.records.approval(it.approval),
    "records.approvals": lambda own, it: own.records.approvals(open_only=False),
    "records.approvals of it": lambda own, it: own.records.approvals(run=it.run),
    "records.approvals in it": lambda own, it: own.records.approvals(conversation=it.conversation),
    "records.exchange": lambda own, it: own.records.exchange(it.exchange),
    "conversations.named": lambda own, it: own.conversations.named(it.conversation),
    "conversations.named by the client": lambda own, it: own.conversations.named("from-a-client"),
    "imports.find": lambda own, it: own.imports.find("kept", "from-elsewhere"),
    "imports.mark": lambda own, it: own.imports.mark("kept", "/there"),
    "imports.counts": lambda own, it: own.imports.counts(),
    "shares.list": lambda own, it: own.shares.list(),
    "shares.list of it": lambda own, it: own.shares.list(conversation=it.conversation),
    "conversations.keyed": lambda own, it: own.conversations.keyed(KEY),
    "conversations.list": lambda own, it: own.conversations.list(archived=None),
    "conversations.list of its project": lambda own, it: own.conversations.list(project=it.project),
    "search.search": lambda own, it: own.search.search(WORD, wait=5),
    "search.search in it": lambda own, it: own.search.search(WORD, conversation=it.conversation),
}
"""What looks and finds nothing."""

UNNAMED = {
    "stats.usage",
    "stats.count",
    "shares.page",
    "imports.receive",
    "imports.remember",
    "conversations.create",
    "projects.at",
    "projects.list",
    "projects.create",
    "search.index",
    "blobs.put",
    "blobs.put_all",
    "blobs.put_from",
    "imports.add",
}
"""What takes no name of a thing; their tests are below."""


def count(found: Any) -> int:
    items = found if isinstance(found, list | dict) else getattr(found, "items", None)
    items = getattr(found, "hits", None) if items is None else items
    return 0 if found is None else len(items) if items is not None else 1


def methods() -> set[str]:
    found: set[str] = set()
    for name, seam in inspect.getmembers(Holdings, lambda member: isinstance(member, property)):
        kind = get_type_hints(seam.fget)["return"]
        found |= {f"{name}.{method}" for method, _ in inspect.getmembers(kind, inspect.isfunction) if not method.startswith("_")}
    return found


async def contents(store: Store) -> dict[str, list[Any]]:
    """Every row of every table."""
    with closing(connect(Path(str((await store.health())["path"])))) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr) for table in tables}


@pytest.fixture
async def theirs(store: Store) -> Theirs:
    return await belongings(store, "ann")


def test_every_method_of_a_view_is_tried() -> None:
    tried = {name.split(" ")[0] for name in (*REFUSED, *EMPTY)} | UNNAMED | {"blobs.upload"}
    assert tried == methods()


async def test_what_is_anothers_is_not_found_in_the_words_for_what_there_is_not(store: Store, theirs: Theirs) -> None:
    bob, never = store.of("bob"), nothing(theirs)
    await store.search.index()
    before = await contents(store)
    for name, call in REFUSED.items():
        said: list[str] = []
        for names in (theirs, never):
            with pytest.raises(NotFound) as caught:
                await call(bob, names)
            words = caught.value.advice()
            for known in (names.conversation, names.message, names.run, names.project, names.blob, names.title, names.share):
                words = words.replace(known, "…").replace(known[:30], "…")
            said.append(words)
        assert said[0] == said[1], name
    for name, call in EMPTY.items():
        assert count(await call(bob, theirs)) == count(await call(bob, never)) == 0, name
    assert await contents(store) == before


async def test_its_owner_finds_it_by_every_method(store: Store, theirs: Theirs) -> None:
    ann = store.of("ann")
    await end(
        store, Accepted(await ann.conversations.get(theirs.conversation), await ann.records.run(theirs.run), 0, await fence(store, theirs))
    )
    await store.search.index()
    for name, call in EMPTY.items():
        if "approvals" not in name and "inbox" not in name:
            assert count(await call(ann, theirs)) == 1, name
    for name, call in REFUSED.items():
        if name != "conversations.delete":
            await call(ann, theirs)


async def fence(store: Store, theirs: Theirs) -> Any:
    await store.records.interrupt(theirs.run, owner="me", fence=1)
    for item in await store.records.inbox(theirs.run):
        assert item.kind == "steer"
    taken = await store.records.claim(theirs.run, "me", statuses=frozenset({"interrupted"}))
    await store.log.append(theirs.conversation, [Event("meta")], fence=taken, changes=[Took(1 << 30)])
    return taken


async def test_names_are_each_owners_own(store: Store, theirs: Theirs) -> None:
    other = await belongings(store, "bob")
    for owner, mine in (("ann", theirs), ("bob", other)):
        own = store.of(owner)
        found = await own.conversations.keyed(KEY)
        assert found is not None and found.id == mine.conversation
        assert (await own.conversations.get("from-a-client")).id == mine.conversation
        assert [item.id for item in (await own.conversations.list()).items] == [mine.conversation]
        assert (await own.projects.at(f"/home/{owner}")).id == mine.project
        with pytest.raises(Busy):
            await own.conversations.create(Conversation(new_id(), key=KEY))
    everything = await store.conversations.list()
    assert {item.owner for item in everything.items} == {"ann", "bob"}
    assert len(await store.records.approvals()) == 2
    assert await store.conversations.keyed(KEY) is None


async def test_what_is_made_in_a_view_is_its_owners(store: Store, theirs: Theirs) -> None:
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


async def test_everybody_has_a_default_project_of_their_own(store: Store) -> None:
    mine = await store.of("ann").projects.update(DEFAULT_PROJECT, rules="be brief")
    assert (mine.id, mine.owner) == (f"{DEFAULT_PROJECT}:ann", "ann")
    assert (await store.of("ann").projects.get(DEFAULT_PROJECT)).rules == "be brief"
    for other in (store.of("bob"), store.of("local"), store):
        assert (await other.projects.get(DEFAULT_PROJECT)).rules == ""
        assert [item.rules for item in (await other.projects.list()).items][:1] == [""]
    with pytest.raises(NotFound):
        await store.of("bob").projects.get(mine.id)


async def test_projects_are_listed_page_by_page_and_by_words(store: Store) -> None:
    ann = store.of("ann")
    for number in range(5):
        await ann.projects.create(Project(new_id(), f"plan {number}", root_path=f"/plans/{number}\udcff"))
    first = await ann.projects.list(limit=4)
    assert [item.name for item in first.items] == [DEFAULT_PROJECT, "plan 0", "plan 1", "plan 2"]
    rest = await ann.projects.list(limit=4, cursor=first.next_cursor)
    assert ([item.name for item in rest.items], rest.next_cursor) == (["plan 3", "plan 4"], None)
    assert [item.name for item in (await ann.projects.list(query="PLAN 3")).items] == ["plan 3"]
    assert (await ann.projects.get("plan 4")).root_path == "/plans/4\udcff"
    with pytest.raises(MootError, match="cursor"):
        await ann.projects.list(cursor="c1-2")


async def test_a_hash_alone_opens_nothing(store: Store) -> None:
    ann, bob = store.of("ann"), store.of("bob")
    for data in (b"small", b"large" * 100_000):
        blob = await ann.blobs.upload(data, "image/png")
        with pytest.raises(NotFound):
            await bob.blobs.get(blob.sha256)
        # the same bytes of another: nothing tells that they were here, or as what
        again = await bob.blobs.upload(data, "text/plain")
        assert (again.sha256, again.media_type) == (blob.sha256, "text/plain")
        assert (await bob.blobs.about(blob.sha256)).media_type == "text/plain"
        assert (await ann.blobs.about(blob.sha256)).media_type == "image/png"
        assert await bob.blobs.get(blob.sha256, offset=1, limit=3) == data[1:4] == await store.blobs.get(blob.sha256, offset=1, limit=3)


async def test_what_runs_put_there_is_read_by_their_owner_alone(store: Store) -> None:
    (blob,) = await store.of("ann").blobs.put_all([b"an output"], "text/plain")
    plain = await store.blobs.put(b"of this machine")
    assert await store.of("ann").blobs.get(blob.sha256) == b"an output"
    assert await store.of("local").blobs.get(plain.sha256) == b"of this machine"
    for other, name in (("bob", blob.sha256), ("local", blob.sha256), ("ann", plain.sha256)):
        with pytest.raises(NotFound):
            await store.of(other).blobs.about(name)


async def test_uploads_have_a_quota_for_each_owner(store: Store) -> None:
    ann = store.of("ann")
    await ann.blobs.put(b"x" * 500)  # not given by a person
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


async def test_how_far_the_index_goes_is_told_of_ones_own(store: Store, theirs: Theirs) -> None:
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


async def test_runs_go_page_by_page(store: Store) -> None:
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


async def test_sums_are_over_ones_own_runs(store: Store, theirs: Theirs) -> None:
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
