"""Rules for every store about approvals, conversations, search and blobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.stores import end, frame, prompt
from moot.errors import Busy, FenceLost, NotFound, StoreError, UsageError
from moot.store.migrations import released
from moot.types.approval import Answer, Approval
from moot.types.chunk import tool_output
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange, ExchangeOptions
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.store import Ask, CloseExchange, End, HandleInbox, InboxItem, OpenExchange, Store, Use
from moot.types.usage import Usage

pytestmark = pytest.mark.anyio

# ── approvals and the inbox ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_approval_is_answered_once_and_used_once(store: Store) -> None:
    first = await store.records.submit(prompt())
    asked = Approval("a1", first.run.id, "c1", "shell", b'{"x":1}', b"d" * 32, 5, questions=[{"q": 1}])
    id, fence = first.conversation.id, first.fence
    await store.log.append(id, [], fence=fence, changes=[Ask(asked)])
    await store.log.append(id, [], fence=fence, changes=[Ask(replace(asked, tool="other"))])
    assert await store.records.approvals() == [asked] == await store.records.approvals(run=first.run.id)
    with pytest.raises(Busy, match="not approved"):
        await store.log.append(id, [frame(first)], fence=fence, changes=[Use("a1", b"d" * 32)])
    answered = await store.records.answer("a1", Answer(True, "always", "fine", "me", {"v": [1]}))
    assert answered.answer == Answer(True, "always", "fine", "me", {"v": [1]})
    with pytest.raises(Busy, match="has already been"):
        await store.records.answer("a1", Answer(False))
    assert [item.kind for item in await store.records.inbox(first.run.id)] == ["answer"]
    with pytest.raises(Busy, match="different call"):
        await store.log.append(id, [], fence=fence, changes=[Use("a1", b"e" * 32)])
    await store.log.append(id, [], fence=fence, changes=[Use("a1", b"d" * 32)])
    with pytest.raises(Busy, match="already used"):
        await store.log.append(id, [], fence=fence, changes=[Use("a1", b"d" * 32)])
    assert await store.records.approvals() == []
    with pytest.raises(NotFound):
        await store.records.answer("a2", Answer(True))


async def test_an_expired_approval_is_neither_answered_nor_used(store: Store) -> None:
    first = await store.records.submit(prompt())
    asked = Approval("a1", first.run.id, "c1", "shell", b"{}", b"d", 5, expires_at=10)
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=[Ask(asked)])
    with pytest.raises(Busy, match="expired"):
        await store.records.answer("a1", Answer(True))


async def test_the_end_of_a_run_closes_its_approvals(store: Store) -> None:
    first = await store.records.submit(prompt())
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=[Ask(Approval("a1", first.run.id, "c", "t", b"", b"", 1))])
    await end(store, first, status="cancelled")
    assert await store.records.approvals() == []
    with pytest.raises(Busy):
        await store.records.answer("a1", Answer(True))
    with pytest.raises(Busy, match="ended"):
        await store.records.post(first.run.id, InboxItem("cancel"))
    with pytest.raises(NotFound):
        await store.records.post("nobody", InboxItem("cancel"))


async def test_exchanges_are_opened_and_closed(store: Store) -> None:
    first = await store.records.submit(prompt())
    options = ExchangeOptions("2.1", 2, ("c1",), {"x": 2**70})
    opened = Exchange(
        "x1", first.run.id, first.conversation.id, "answer", "openai-chat", "openai-chat/1", "p", "m", options, {"pieces": ["a"]}
    )
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=[OpenExchange(opened)])
    assert await store.records.exchange("x1") == opened
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=[CloseExchange("x1", "cut")])
    assert await store.records.exchange("x1") == replace(opened, ended="cut")
    assert await store.records.exchange("x2") is None
    with pytest.raises(StoreError, match="x2"):
        await store.log.append(first.conversation.id, [], fence=first.fence, changes=[CloseExchange("x2", "cut")])


async def test_the_pieces_of_a_request_are_stored_with_its_start(store: Store) -> None:
    first, other = await store.records.submit(prompt()), await store.records.submit(prompt())
    pieces = await store.blobs.stage((b"[", b"x" * 300_000), "application/json")
    with pytest.raises(NotFound):
        await store.blobs.get(pieces.blobs[0].sha256)
    assert len(await store.blobs.get(pieces.blobs[1].sha256)) == 300_000  # a large one has a row, so that it can be deleted
    names = ("x1", first.run.id, first.conversation.id)
    exchange = Exchange(*names, "answer", "openai-chat", "openai-chat/1", "p", "m", ExchangeOptions(), {"pieces": pieces.hashes})
    changes = [OpenExchange(exchange, pieces)]
    assert other.fence is not None
    with pytest.raises(FenceLost):
        await store.log.append(first.conversation.id, [], fence=replace(other.fence, run=first.run.id, number=9), changes=changes)
    with pytest.raises(NotFound):
        await store.blobs.get(pieces.blobs[0].sha256)
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=changes)
    assert [await store.blobs.get(blob.sha256) for blob in pieces.blobs] == [b"[", b"x" * 300_000]
    assert [await store.blobs.about(blob.sha256) for blob in pieces.blobs] == [*pieces.blobs]


# ── conversations ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_field_of_a_conversation_is_stored(store: Store) -> None:
    given = Conversation(
        new_id(), key="k", client_id="c", title="t\x00\u0301ü", title_source="user", agent="a", agent_type="t", model="m@p", parent="p",
        parent_tool_call="tc", forked_from="f", forked_from_message="fm", directory="/w\udcff", allowed_uris=("/a b", "/\udcfe"),
        is_task_finished=True, settings={"mode": "ask", "n": 2**64}, head=None, origin={"format": "x"}, usage=Usage(1, None, 3), cost=0,
        unpriced_runs=2, context_usage=0.5, created_at=5, updated_at=6, archived_at=7,
    )  # fmt: skip
    made = await store.conversations.create(given)
    assert made == replace(given, no=made.no) and made.no > 0
    assert await store.conversations.get(given.id) == made
    for twice in (Conversation(given.id), Conversation(new_id(), key="k"), Conversation(new_id(), client_id="c")):
        with pytest.raises(Busy):
            await store.conversations.create(twice)
    with pytest.raises(NotFound, match="project"):
        await store.conversations.create(Conversation(new_id(), project="none"))


async def test_conversations_are_found_by_title_and_id_prefix(store: Store) -> None:
    one = await store.conversations.create(Conversation("aaaa-1", title="Same", client_id="mine"))
    two = await store.conversations.create(Conversation("aaaa-2", title="Same"))
    three = await store.conversations.create(Conversation("bbbb-1", title="Other"))
    for reference, expected in (("aaaa-1", one), ("mine", one), ("aaaa-2", two), ("bbbb", three), ("Other", three)):
        assert await store.conversations.get(reference) == expected
    for reference in ("aaaa", "Same"):
        with pytest.raises(NotFound, match=r"aaaa-1.*|aaaa-2.*"):
            await store.conversations.get(reference)
    for reference in ("bbb", "", "%", "other"):
        with pytest.raises(NotFound):
            await store.conversations.get(reference)
    await store.conversations.delete("aaaa-1")
    assert await store.conversations.get("Same") == two
    assert (await store.conversations.get("aaaa-1")).deleted_at is not None


async def test_lists_are_newest_first_and_paged(store: Store) -> None:
    for number in range(7):
        await store.conversations.create(Conversation(f"c{number}", created_at=number // 2 + 1, directory=f"/{number % 2}"))
    whole = [item.id for item in (await store.conversations.list()).items]
    assert whole == ["c6", "c5", "c4", "c3", "c2", "c1", "c0"]
    paged: list[str] = []
    cursor = None
    while True:
        page = await store.conversations.list(limit=2, cursor=cursor)
        paged += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert paged == whole
    assert [item.id for item in (await store.conversations.list(directory="/1")).items] == ["c5", "c3", "c1"]
    await store.conversations.delete("c5")
    assert [item.id for item in (await store.conversations.list(directory="/1")).items] == ["c3", "c1"]
    assert [item.id for item in (await store.conversations.list(deleted=True)).items] == ["c5"]
    assert (await store.conversations.list(project="other")).items == []
    for bad in ("", "c", "' OR 1=1", "c1-2-3"):
        with pytest.raises(UsageError, match="cursor"):
            await store.conversations.list(cursor=bad)


async def test_a_title_set_by_the_user_is_never_replaced(store: Store) -> None:
    made = await store.conversations.create(Conversation(new_id()))
    for title, source, expected in (
        ("first", "first-line", "first"),
        ("better", "model", "better"),
        ("worse", "first-line", "better"),
        ("mine \ud800", "user", "mine \ufffd"),
        ("theirs", "model", "mine \ufffd"),
        ("mine too", "user", "mine too"),
    ):
        assert (await store.conversations.rename(made.id, title, source)).title == expected  # type: ignore[arg-type]
    assert (await store.conversations.update(made.id, settings={"mode": "plan"})).settings == {"mode": "plan"}
    with pytest.raises(NotFound):
        await store.conversations.rename("none", "x", "user")


async def test_branches_share_their_trunk(store: Store) -> None:
    made = await store.conversations.create(Conversation(new_id()))
    parent = None
    for number in range(10):
        message = Message(
            f"m{number}", "user" if number % 2 == 0 else "assistant", (text_part(str(number)),), conversation=made.id, parent=parent
        )
        stored = await store.conversations.add_message(message, raw=b"raw", body={"source": number})
        assert stored.first_seq == stored.last_seq == number + 1
        parent = message.id
    aside = await store.conversations.add_message(Message("x", "user", conversation=made.id, parent="m3"), move_head=False)
    assert [message.id for message in await store.conversations.branch(made.id)] == [f"m{number}" for number in range(10)]
    assert [message.id for message in await store.conversations.branch(made.id, limit=3)] == ["m7", "m8", "m9"]
    assert [message.id for message in await store.conversations.branch(made.id, head="x")] == ["m0", "m1", "m2", "m3", "x"]
    assert (await store.tree.switch(made.id, "x", exactly=True)).head == "x"
    assert (await store.conversations.branch(made.id, limit=1)) == [aside]
    event = (await store.log.read(made.id, limit=1))[0]
    assert event.kind == "message" and event.raw == b"raw" and isinstance(event.body, dict) and event.body["source"] == 0
    assert (await store.conversations.get(made.id)).message_count == 11
    for call in (
        store.conversations.branch(made.id, head="none"),
        store.tree.switch(made.id, "none"),
        store.conversations.message("none"),
        store.conversations.branch("none"),
        store.conversations.add_message(Message("y", "user", conversation=made.id, parent="none")),
    ):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(Busy):
        await store.conversations.add_message(Message("m1", "user", conversation=made.id))


async def test_an_edited_message_keeps_the_client_id(store: Store) -> None:
    made = await store.conversations.create(Conversation(new_id()))
    await store.conversations.add_message(Message("m1", "user", conversation=made.id, client_id="c1"))
    await store.conversations.add_message(Message("m2", "user", conversation=made.id, client_id="c1"))
    assert (await store.conversations.message("m1")).client_id is None
    assert (await store.conversations.message("m2")).client_id == "c1"
    with pytest.raises(UsageError, match="128"):
        await store.conversations.add_message(Message("m3", "user", conversation=made.id, client_id="c" * 129))
    with pytest.raises(UsageError, match="Unicode"):
        await store.conversations.add_message(Message("m3\ud800", "user", conversation=made.id))


async def test_there_is_always_a_default_project(store: Store) -> None:
    assert (await store.projects.around("")).id == "default"
    assert (await store.projects.around("/nowhere\udcff")).id == "default"


# ── search and blobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_finished_messages_are_found_newest_first(store: Store) -> None:
    first = await store.records.submit(prompt(text="the quick brown fox"))
    call = {"type": "tool-input-available", "toolCallId": "c", "toolName": "shell", "input": {}}
    said = Event(
        "chunks", ({"type": "reasoning-delta", "id": "r", "delta": "secretly"}, call, tool_output("c", "a lazy dog")), run=first.run.id
    )  # type: ignore[arg-type]
    await store.log.append(first.conversation.id, [said, frame(first, "jumps over")], fence=first.fence)
    assert [hit.role for hit in (await store.search.search("quick")).hits] == ["user"]
    page = await store.search.search("jumps")
    assert page.hits == () and (page.done, page.total) == (1, 1)
    await end(store, first)
    page = await store.search.search("jumps OVER")
    assert [hit.message for hit in page.hits] == [first.run.message] and (page.done, page.total) == (2, 2)
    assert page.hits[0].snippet == "\x02jumps\x03 \x02over\x03 a lazy dog" or "\x02jumps\x03 \x02over\x03" in page.hits[0].snippet
    assert (await store.search.search("lazy")).hits
    assert not (await store.search.search("secretly")).hits
    page = await store.search.search("quick jumps")
    assert page.loose and {hit.role for hit in page.hits} == {"user", "assistant"}
    assert not (await store.search.search('"quick" "jumps"')).hits


async def test_search_is_paginated_filtered_and_skips_deleted_messages(store: Store) -> None:
    for number in range(6):
        made = await store.conversations.create(Conversation(f"c{number % 2}x{number}", title=f"T{number}"))
        await store.conversations.add_message(
            Message(f"m{number}", "user", (text_part("needle"),), conversation=made.id, created_at=10_000 - number * 1000)
        )
    found: list[str] = []
    cursor = None
    while True:
        page = await store.search.search("needle", limit=4, cursor=cursor)
        found += [hit.message for hit in page.hits]
        if (cursor := page.next_cursor) is None:
            break
    assert found == ["m0", "m1", "m2", "m3", "m4", "m5"]
    await store.conversations.delete("c0x0")
    assert [hit.message for hit in (await store.search.search("needle", limit=2)).hits] == ["m1", "m2"]
    assert [hit.message for hit in (await store.search.search("needle", conversation="c1x3")).hits] == ["m3"]
    with pytest.raises(UsageError, match="cursor"):
        await store.search.search("needle", cursor="x")


async def test_blobs_are_stored_by_content(store: Store) -> None:
    for data in (b"", b"small", bytes(range(256)) * 1024, b"large" * 100_000):
        blob = await store.blobs.put(data, "text/x")
        assert blob == await store.blobs.put(data, "text/x") and blob.size == len(data)
        assert await store.blobs.get(blob.sha256) == data
        assert await store.blobs.get(blob.sha256, offset=3, limit=7) == data[3:10]
        assert await store.blobs.get(blob.sha256, offset=len(data) + 5) == b""
    for bad in ("0" * 64, "../../etc/passwd", ""):
        with pytest.raises(NotFound):
            await store.blobs.get(bad)


@pytest.mark.parametrize("sizes", [[], [0], [5, 7], [200_000, 100_000], [300_000, 1, 300_000]])
async def test_a_blob_can_be_written_in_chunks(store: Store, sizes: list[int]) -> None:
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]

    async def coming() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    whole = b"".join(pieces)
    blob = await store.blobs.put_from(coming(), "text/x")
    assert blob == await store.blobs.put(whole, "text/x") and blob.size == len(whole)
    assert await store.blobs.get(blob.sha256) == whole
    await store.blobs.put_from(coming(), "text/x")
    assert not list(Path(str((await store.health())["path"])).parent.rglob(".incoming*"))


async def test_an_interrupted_blob_write_leaves_nothing(store: Store) -> None:
    async def coming() -> AsyncIterator[bytes]:
        yield b"x" * 400_000
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await store.blobs.put_from(coming())
    folder = Path(str((await store.health())["path"])).parent
    assert not [file for file in folder.rglob("*") if (file.is_file() and file.stat().st_size == 400_000) or ".incoming" in file.name]


async def test_health_names_library_and_schema(store: Store) -> None:
    health = await store.health()
    assert health["integrity"] == "ok" and health["schema"] == len(released())
    assert {"library", "version", "protection", "bytes"} <= health.keys()


async def test_a_closed_store_raises_an_error(store: Store) -> None:
    await store.close()
    await store.close()
    for call in (store.log.read("x"), store.log.append("x", [Event("meta")]), store.blobs.put(b"")):
        with pytest.raises(StoreError, match="closed"):
            await call


async def test_a_run_with_unread_steering_messages_does_not_finish(store: Store) -> None:
    first = await store.records.submit(prompt())
    no = await store.records.post(first.run.id, InboxItem("steer", {"id": "s", "parts": []}))
    with pytest.raises(Busy):
        await store.log.append(first.conversation.id, [], fence=first.fence, changes=[End("finished")])
    assert (await store.records.run(first.run.id)).status == "running"
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=[HandleInbox(no), End("finished")])
    assert (await store.records.run(first.run.id)).status == "finished"
