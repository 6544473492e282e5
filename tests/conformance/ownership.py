"""One resource of every kind that a user can own, and every method that reaches it by id."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.stores import frame, prompt
from moot.imports.arrivals import encode_arrival
from moot.types.approval import Approval
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation, Project
from moot.types.cron import Due, Job
from moot.types.exchange import Exchange, ExchangeOptions
from moot.types.format import ImportedMessage
from moot.types.ids import new_id
from moot.types.imports import FinalFacts, ImportTarget, IncomingConversation, SourceMark
from moot.types.knowledge import Chunk, IndexedDocument, KnowledgeScope, Source
from moot.types.maintenance import StoredCopy
from moot.types.message import Message, text_part
from moot.types.push import Device
from moot.types.search import SemanticQuery
from moot.types.share import NewShare, Share, SharedPage
from moot.types.store import Accepted, Ask, InboxItem, OpenExchange, OwnerStore, Store
from moot.types.task import Author, Task
from moot.types.tree import Compaction

WORD = "heliotrope"
KEY = "channel:room"
LATER = 1 << 50
PAGE = SharedPage(b"<p>a page", "default-src 'none'")
ARRIVAL = encode_arrival(ImportedMessage("user", (text_part("changed"),), "m", b"raw"))
ORIGIN: JsonObject = {"format": "recording", "source_id": "from-elsewhere"}


class Lengths:
    """An `Embedder` that gives texts of equal length the same vector."""

    model = "lengths@1"

    def embed(self, text: str, *, question: bool) -> bytes:
        return bytes([min(len(text), 255)])

    def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
        return [1.0 - abs(vector[0] - other[0]) / 255 for other in others]


@dataclass(frozen=True)
class Theirs:
    """Create one resource of every kind for one owner. Return their ids."""

    conversation: str
    message: str
    run: str
    approval: str
    exchange: str
    project: str
    blob: str
    title: str
    share: str
    source: str
    task: str
    device: str


async def belongings(store: Store, owner: str) -> Theirs:
    own = store.of(owner)
    project = await own.projects.create(Project(new_id(), f"{owner}'s plans", root_path=f"/home/{owner}"))
    title = f"the plans of {owner}"
    made = Conversation(new_id(), project=project.id, key=KEY, client_id="from-a-client", title=title, directory="/work", owner=owner)
    made = replace(made, origin=ORIGIN)
    received = await own.imports.receive(IncomingConversation("kept", 1, "from-elsewhere", replace(made, owner="somebody")))
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
    await store.erasure.register_files([StoredCopy(f"/exported by {owner}", "export", 1, 2, made.id)])
    await own.jobs.add(Job("job", "p", every=60, owner=owner))
    await own.jobs.record(Due(owner, "job", 1), "skipped", "")
    task = await own.tasks.create(Task(new_id(), project.id, title), Author(owner))
    await own.tasks.comment(project.id, task.id, WORD, Author(owner))
    share = await own.shares.add(NewShare(Share(new_id(), made.id, title, LATER), PAGE, os.urandom(8)))
    source = await own.knowledge.add(Source(new_id(), f"/papers of {owner}"))
    await own.knowledge.put(source.id, IndexedDocument("a"), [Chunk("page 1", "", f"{WORD} of {owner}")])
    phone = Device(new_id(), owner, "phone", f"https://push.example.com/{owner}", b"key", b"auth", "t1")
    device = await own.devices.add(phone)
    ids = (share.id, source.id, task.id, device.id)
    return Theirs(made.id, asked.user.id, run, approval.id, exchange.id, project.id, blob.sha256, title, *ids)


def nothing(of: Theirs) -> Theirs:
    """Ids of the same shape that don't exist."""
    run = new_id()
    return Theirs(
        new_id(),
        new_id(),
        run,
        f"{run}/tool:0.0",
        f"{run}:0.0",
        new_id(),
        hashlib.sha256(b"nobody's").hexdigest(),
        "untold",
        new_id(),
        new_id(),
        new_id(),
        new_id(),
    )


BY = Author("somebody")


async def _counted_tasks(own: OwnerStore, it: Theirs) -> list[None]:
    return [None] * await own.tasks.count(it.project)


async def _rewind(own: Any, conversation: str) -> Any:
    head = (await own.conversations.get(conversation)).head
    return await own.tree.rewind(conversation, head, expect=head)


Calls = dict[str, Callable[[OwnerStore, Theirs], Awaitable[Any]]]
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
    "conversations.update settings": lambda own, it: own.conversations.update(it.conversation, settings={"mode": "auto"}),
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
    "tree.continuation": lambda own, it: own.tree.continuation(it.conversation),
    "tree.switch": lambda own, it: own.tree.switch(it.conversation, it.message),
    "tree.rewind": lambda own, it: _rewind(own, it.conversation),
    "tree.compact": lambda own, it: own.tree.compact(it.conversation, Compaction(it.message, "A summary.")),
    "tree.compactions": lambda own, it: own.tree.compactions(it.conversation),
    "tree.digest": lambda own, it: own.tree.digest(it.conversation, [it.message]),
    "tree.withheld": lambda own, it: own.tree.withheld(it.conversation, [it.message]),
    "jobs.pause": lambda own, it: own.jobs.pause("ann", "job", paused=True),
    "jobs.remove": lambda own, it: own.jobs.remove("ann", "job"),
    "grants.revoke": lambda own, it: own.grants.revoke(it.conversation, tool="shell", match="*"),
    "tasks.get": lambda own, it: own.tasks.get(it.project, it.task),
    "tasks.get by number": lambda own, it: own.tasks.get(it.project, "#1"),
    "tasks.create": lambda own, it: own.tasks.create(Task(new_id(), it.project, "changed"), BY),
    "tasks.update": lambda own, it: own.tasks.update(it.project, it.task, {"title": "changed"}, BY),
    "tasks.comment": lambda own, it: own.tasks.comment(it.project, it.task, "changed", BY),
    "tasks.comments": lambda own, it: own.tasks.comments(it.project, it.task),
    "tasks.history": lambda own, it: own.tasks.history(it.project, it.task),
    "tasks.remove": lambda own, it: own.tasks.remove(it.project, it.task),
    "projects.get": lambda own, it: own.projects.get(it.project),
    "projects.remove": lambda own, it: own.projects.remove(it.project, dry_run=True),
    "projects.update": lambda own, it: own.projects.update(it.project, name="changed"),
    "blobs.about": lambda own, it: own.blobs.about(it.blob),
    "blobs.get": lambda own, it: own.blobs.get(it.blob),
    "imports.take": lambda own, it: own.imports.take(ImportTarget(it.conversation), [ARRIVAL]),
    "imports.take as new": lambda own, it: own.imports.take(ImportTarget(it.conversation, is_new=True), [ARRIVAL]),
    "imports.settle": lambda own, it: own.imports.settle(ImportTarget(it.conversation), FinalFacts(1, title="changed")),
    "shares.add": lambda own, it: own.shares.add(NewShare(Share(new_id(), it.conversation, "t", LATER), PAGE, os.urandom(8))),
    "knowledge.documents": lambda own, it: own.knowledge.documents(it.source),
    "knowledge.put": lambda own, it: own.knowledge.put(it.source, IndexedDocument("b"), []),
    "knowledge.drop": lambda own, it: own.knowledge.drop(it.source, ["a"]),
    "knowledge.remove": lambda own, it: own.knowledge.remove(it.source),
    "shares.revoke": lambda own, it: own.shares.revoke(it.share),
    "devices.get": lambda own, it: own.devices.get(it.device),
    "devices.remove": lambda own, it: own.devices.remove(it.device),
}
"""Check that another user can't reach it."""

EMPTY: Calls = {
    "log.last_seqs": lambda own, it: own.log.last_seqs([it.conversation]),
    "records.last_answer": lambda own, it: own.records.last_answer(it.message),
    "records.runs": lambda own, it: own.records.runs(),
    "records.runs of it": lambda own, it: own.records.runs(conversation=it.conversation),
    "records.inbox": lambda own, it: own.records.inbox(it.run),
    "records.children": lambda own, it: own.records.children(it.run),
    "records.children in its tree": lambda own, it: own.records.children(it.run, tree=True),
    "records.children in it": lambda own, it: own.records.children(conversation=it.conversation),
    "records.approval": lambda own, it: own.records.approval(it.approval),
    "records.approvals": lambda own, it: own.records.approvals(open_only=False),
    "records.approvals of it": lambda own, it: own.records.approvals(run=it.run),
    "records.approvals of its tree": lambda own, it: own.records.approvals(run=it.run, tree=True),
    "records.approvals in it": lambda own, it: own.records.approvals(conversation=it.conversation),
    "records.exchange": lambda own, it: own.records.exchange(it.exchange),
    "conversations.by_client_id": lambda own, it: own.conversations.by_client_id(it.conversation),
    "conversations.by_client_id by the client": lambda own, it: own.conversations.by_client_id("from-a-client"),
    "imports.find": lambda own, it: own.imports.find("kept", "from-elsewhere"),
    "imports.mark": lambda own, it: own.imports.mark("kept", "/there"),
    "imports.exported": lambda own, it: own.imports.exported(f"/exported by {it.title.rpartition(' ')[2]}"),
    "imports.counts": lambda own, it: own.imports.counts(),
    "jobs.list": lambda own, it: own.jobs.list(),
    "jobs.history": lambda own, it: own.jobs.history(),
    "jobs.latest": lambda own, it: own.jobs.latest(),
    "tasks.count": _counted_tasks,
    "tasks.list": lambda own, it: own.tasks.list(None),
    "tasks.list of its project": lambda own, it: own.tasks.list(it.project),
    "devices.list": lambda own, it: own.devices.list(),
    "shares.list": lambda own, it: own.shares.list(),
    "shares.list of it": lambda own, it: own.shares.list(conversation=it.conversation),
    "conversations.by_key": lambda own, it: own.conversations.by_key(KEY),
    "conversations.list": lambda own, it: own.conversations.list(archived=None),
    "conversations.choices": lambda own, it: own.conversations.choices(),
    "conversations.list of its project": lambda own, it: own.conversations.list(project=it.project),
    "search.search": lambda own, it: own.search.search(WORD, wait=5),
    "search.search in it": lambda own, it: own.search.search(WORD, conversation=it.conversation),
    "knowledge.sources": lambda own, it: own.knowledge.sources(),
    "knowledge.search": lambda own, it: own.knowledge.search(WORD, KnowledgeScope(), limit=5, embedder=Lengths()),
    "meaning.search": lambda own, it: own.meaning.search(SemanticQuery(WORD), embedder=Lengths(), wait=5),
    "meaning.search in it": lambda own, it: own.meaning.search(SemanticQuery(WORD, conversation=it.conversation), embedder=Lengths()),
}
"""Calls that must find nothing."""

UNNAMED = {
    "devices.add",
    "devices.record",
    "stats.usage",
    "stats.count",
    "stats.spent",
    "stats.edits",
    "stats.windows",
    "shares.page",
    *("jobs.add", "jobs.ended", "jobs.ensure", "jobs.note", "jobs.record", "jobs.settle", "jobs.version"),
    "imports.receive",
    "imports.remember",
    "conversations.create",
    "projects.around",
    "projects.folders",
    "projects.move",
    "projects.place",
    "projects.unplaced",
    "projects.list",
    "projects.create",
    "search.index",
    "meaning.read",
    "knowledge.add",
    "knowledge.embed",
    "blobs.put",
    "blobs.put_all",
    "blobs.stage",
    "blobs.put_from",
    "imports.add",
}
"""Calls that take no id; they have separate tests."""
