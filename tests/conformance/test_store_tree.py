"""Rules for every store about the tree of messages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from conformance.stores import end, frame, prompt
from moot.errors import Busy, NotFound, StoreError, UsageError
from moot.types.chunk import Chunk
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange, ExchangeOptions
from moot.types.ids import new_id
from moot.types.message import Message, text_of, text_part
from moot.types.store import Accepted, CloseExchange, Fence, OpenExchange, Store

pytestmark = pytest.mark.anyio


async def said(store: Store, *texts: str, **fields: Any) -> Accepted:
    """Create a conversation of prompts, each with a finished answer. Return the last answer's record."""
    accepted = await store.records.submit(prompt(Conversation(new_id(), directory="/work", **fields), texts[0]))
    await answer(store, accepted)
    for text in texts[1:]:
        accepted = await store.records.submit(prompt(accepted.conversation, text))
        await answer(store, accepted)
    return accepted


async def answer(store: Store, accepted: Accepted) -> None:
    chunks: list[Chunk] = [
        {"type": "text-start", "id": "0"},
        {"type": "text-delta", "id": "0", "delta": "yes"},
        {"type": "text-end", "id": "0"},
    ]
    event = saying(accepted, chunks)
    await store.log.append(accepted.conversation.id, [event], fence=accepted.fence)
    await end(store, accepted)


def saying(accepted: Accepted, chunks: list[Chunk]) -> Event:
    return frame(accepted)._replace(chunks=tuple(chunks))


def lines(messages: Sequence[Message]) -> list[str]:
    return [text_of(message.parts) for message in messages]


async def shown(store: Store, id: str) -> list[str]:
    return lines(await store.conversations.branch(id))


async def test_an_edited_prompt_is_a_sibling_with_its_own_run(store: Store) -> None:
    last = await said(store, "one", "two", "three")
    id = last.conversation.id
    before = await store.conversations.branch(id)
    edited = await store.records.submit(prompt(last.conversation, "TWO", edits=before[2].id))
    await answer(store, edited)
    assert await shown(store, id) == ["one", "yes", "TWO", "yes"]
    assert lines(await store.conversations.branch(id, head=before[-1].id)) == ["one", "yes", "two", "yes", "three", "yes"]
    new = await store.conversations.message(edited.run.message)
    assert new.parent is not None and (await store.conversations.message(new.parent)).parent == before[1].id
    body = [event.body for event in await store.log.read(id) if event.kind == "message"][-1]
    assert isinstance(body, dict) and body["edits"] == before[2].id


async def test_the_first_prompt_can_be_edited_too(store: Store) -> None:
    last = await said(store, "one", "two")
    first = (await store.conversations.branch(last.conversation.id))[0]
    edited = await store.records.submit(prompt(last.conversation, "ONE", edits=first.id))
    await answer(store, edited)
    assert await shown(store, last.conversation.id) == ["ONE", "yes"]


async def test_only_a_prompt_of_that_conversation_can_be_edited_by_a_prompt(store: Store) -> None:
    last, other = await said(store, "one"), await said(store, "else")
    branch = await store.conversations.branch(last.conversation.id)
    with pytest.raises(UsageError, match="is not a prompt"):
        await store.records.submit(prompt(last.conversation, "x", edits=branch[1].id))
    with pytest.raises(NotFound):
        await store.records.submit(prompt(other.conversation, "x", edits=branch[0].id))
    assert await shown(store, last.conversation.id) == ["one", "yes"]


async def test_another_answer_is_a_sibling_of_the_answer(store: Store) -> None:
    last = await said(store, "one", "two")
    first = await store.conversations.branch(last.conversation.id)
    for asked in (first[1].id, first[0].id):
        again = await store.records.submit(prompt(last.conversation, user=None, answers=asked))
        assert (await store.conversations.message(again.run.message)).parent == first[0].id
        await answer(store, again)
        assert await shown(store, last.conversation.id) == ["one", "yes"]
    with pytest.raises(NotFound):
        await store.records.submit(prompt(last.conversation, user=None, answers="none"))


async def test_an_edit_never_steers_a_running_answer(store: Store) -> None:
    live = await store.records.submit(prompt())
    first = (await store.conversations.branch(live.conversation.id))[0]
    with pytest.raises(UsageError, match="Only new messages"):
        await store.records.submit(prompt(live.conversation, "x", edits=first.id, on_busy="steer"))


async def test_an_edited_answer_is_a_sibling_that_the_branch_ends_with(store: Store) -> None:
    last = await said(store, "one", "two")
    before = await store.conversations.branch(last.conversation.id)
    new = await store.tree.edit(before[1].id, [text_part("no")])
    assert (new.role, new.parent, new.status) == ("assistant", before[0].id, "finished")
    assert await shown(store, last.conversation.id) == ["one", "no"]
    assert (await store.conversations.message(before[1].id)).parts == before[1].parts
    with pytest.raises(NotFound):
        await store.tree.edit("none", [])
    live = await store.records.submit(prompt(last.conversation))
    with pytest.raises(Busy, match="still being written"):
        await store.tree.edit(live.run.message, [])


async def test_a_branch_is_added_completely_or_not_at_all(store: Store) -> None:
    last = await said(store, "one", "two")
    id = last.conversation.id
    before = await store.conversations.branch(id)
    new = [Message(new_id(), "assistant", (text_part("YES"),)), Message(new_id(), "user", (text_part("TWO"),))]
    stored = await store.tree.graft(id, before[0].id, new)
    assert [message.parent for message in stored] == [before[0].id, stored[0].id]
    assert await shown(store, id) == ["one", "YES", "TWO"]
    last_seq = await store.log.last_seq(id)
    with pytest.raises(Busy):
        await store.tree.graft(id, None, [Message(new_id(), "user"), Message(before[0].id, "user")])
    assert await shown(store, id) == ["one", "YES", "TWO"] and await store.log.last_seq(id) == last_seq
    assert lines(await store.tree.graft(id, None, [Message(new_id(), "user", (text_part("root"),))])) == ["root"]
    assert await shown(store, id) == ["root"]


async def test_deleted_messages_are_hidden_everywhere_until_restored(store: Store) -> None:
    last = await said(store, "one", "pineapple", "three")
    id = last.conversation.id
    whole = await store.conversations.branch(id)
    gone = [whole[2].id, whole[3].id]
    assert await store.tree.delete(id, [*gone, gone[0]]) == gone
    assert await store.tree.delete(id, gone) == []
    assert await shown(store, id) == ["one", "yes", "three", "yes"]
    assert lines(await store.conversations.branch(id, limit=3)) == ["yes", "three", "yes"]
    assert (await store.search.search("pineapple")).hits == ()
    assert (await store.conversations.get(id)).message_count == 4
    assert [node.deleted for node in await store.tree.nodes(id)] == [False, False, True, True, False, False]
    assert await store.tree.delete(id, gone, restore=True) == gone
    assert await store.conversations.branch(id) == whole
    assert len((await store.search.search("pineapple")).hits) == 1
    assert (await store.conversations.get(id)).message_count == 6
    with pytest.raises(NotFound):
        await store.tree.delete(id, [gone[0], "none"])
    assert await store.conversations.branch(id) == whole


async def test_a_branch_is_read_from_its_start(store: Store) -> None:
    last = await said(store, "one", "two", "three")
    id = last.conversation.id
    whole = await store.conversations.branch(id)
    read = partial(store.conversations.branch, first=True)
    assert lines(await read(id, limit=3)) == ["one", "yes", "two"]
    assert await read(id, limit=9, after=whole[2].id) == whole[3:]
    assert await read(id, limit=9, after=whole[-1].id) == []
    await store.tree.delete(id, [whole[1].id, whole[2].id])
    assert await read(id, limit=2) == [whole[0], whole[3]]
    assert await read(id, limit=2, after=whole[2].id) == whole[3:5]
    edited = await store.tree.edit(whole[4].id, (text_part("3"),))
    assert await read(id, limit=9) == [whole[0], whole[3], edited]
    with pytest.raises(NotFound, match="contains no message"):
        await read(id, limit=9, after=whole[4].id)
    empty = await store.conversations.create(Conversation(new_id(), directory="/work"))
    assert await read(empty.id, limit=9) == []


async def test_a_deleted_message_is_not_answered_and_keeps_its_descendants(store: Store) -> None:
    last = await said(store, "one", "two")
    id = last.conversation.id
    whole = await store.conversations.branch(id)
    await store.tree.delete(id, [message.id for message in whole[2:]])
    again = await store.records.submit(prompt(last.conversation, user=None))
    assert (await store.conversations.message(again.run.message)).parent == whole[0].id
    await answer(store, again)
    await store.tree.switch(id, whole[3].id)
    await answer(store, await store.records.submit(prompt(last.conversation, "three")))
    assert await shown(store, id) == ["one", "yes", "three", "yes"]
    await store.tree.delete(id, [message.id for message in await store.conversations.branch(id)])
    assert await store.conversations.branch(id) == []
    with pytest.raises(UsageError, match="no prompt to answer"):
        await store.records.submit(prompt(last.conversation, user=None))


async def test_messages_in_use_by_a_live_run_cannot_be_deleted(store: Store) -> None:
    live = await store.records.submit(prompt())
    id = live.conversation.id
    both = await store.conversations.branch(id)
    for message, words in ((both[0], "is being answered"), (both[1], "still being written")):
        with pytest.raises(Busy, match=words):
            await store.tree.delete(id, [message.id])
    await end(store, live)
    assert len(await store.tree.delete(id, [message.id for message in both])) == 2


async def test_a_fork_copies_the_branch_and_names_its_source(store: Store) -> None:
    last = await said(store, "one", "two", "three", title="plans", key="k", client_id="c")
    source = last.conversation
    whole = await store.conversations.branch(source.id)
    await store.tree.delete(source.id, [whole[1].id])
    before = await store.log.read(source.id)
    made = await store.tree.fork(source.id, message=whole[3].id)
    copies = await store.conversations.branch(made.id)
    assert lines(copies) == ["one", "two", "yes"]
    assert {copy.id for copy in copies}.isdisjoint(message.id for message in whole)
    assert copies[1].metadata["source"] == {
        "conversation": source.id,
        "message": whole[2].id,
        "first_seq": whole[2].first_seq,
        "last_seq": whole[2].last_seq,
    }
    assert (made.forked_from, made.forked_from_message, made.title) == (source.id, whole[3].id, "plans (fork)")
    assert (made.directory, made.agent, made.key, made.client_id) == (source.directory, source.agent, None, None)
    assert (made.message_count, made.cost, made.head) == (3, None, copies[-1].id)
    assert await store.log.read(source.id) == before
    assert [event.kind for event in await store.log.read(made.id)] == ["tree", "message", "message", "message"]
    assert (await store.tree.fork(made.id)).title == "plans (fork 2)"
    assert (await store.tree.fork(source.id, title="mine")).title_source == "user"


async def test_a_fork_of_a_live_message_copies_its_current_state(store: Store) -> None:
    live = await store.records.submit(prompt())
    begun = saying(live, [{"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0", "delta": "half"}])
    await store.log.append(live.conversation.id, [begun], fence=live.fence)
    made = await store.tree.fork(live.conversation.id)
    copy = (await store.conversations.branch(made.id))[-1]
    assert (text_of(copy.parts), copy.status, copy.run) == ("half", "cancelled", None)
    assert all(part.get("state") != "streaming" for part in copy.parts)
    await end(store, live)


async def test_an_empty_conversation_cannot_be_forked(store: Store) -> None:
    empty = await store.conversations.create(Conversation(new_id()))
    with pytest.raises(UsageError, match="no messages"):
        await store.tree.fork(empty.id)
    with pytest.raises(NotFound):
        await store.tree.fork(empty.id, message="none")
    await store.conversations.delete(empty.id)
    with pytest.raises(NotFound, match="is deleted"):
        await store.tree.fork(empty.id)


async def test_the_tree_is_a_list_with_lasting_numbers_and_the_shown_branch_marked(store: Store) -> None:
    last = await said(store, "one\nmore", "two")
    id = last.conversation.id
    branch = await store.conversations.branch(id)
    await answer(store, await store.records.submit(prompt(last.conversation, "TWO", edits=branch[2].id)))
    nodes = await store.tree.nodes(id)
    assert [(node.no, node.role, node.line, node.shown) for node in nodes] == [
        (1, "user", "one", True),
        (2, "assistant", "yes", True),
        (3, "user", "two", False),
        (4, "assistant", "yes", False),
        (5, "user", "TWO", True),
        (6, "assistant", "yes", True),
    ]
    assert [node.parent for node in nodes] == [None, *(nodes[at].id for at in (0, 1, 2, 1, 4))]
    with pytest.raises(NotFound):
        await store.tree.nodes("none")


async def test_switching_shows_a_branch_to_its_newest_end_or_exactly_there(store: Store) -> None:
    last = await said(store, "one", "two")
    id = last.conversation.id
    branch = await store.conversations.branch(id)
    await answer(store, await store.records.submit(prompt(last.conversation, "TWO", edits=branch[2].id)))
    assert (await store.tree.switch(id, branch[2].id)).head == branch[3].id
    assert await shown(store, id) == ["one", "yes", "two", "yes"]
    assert (await store.tree.switch(id, branch[1].id, exactly=True)).head == branch[1].id
    assert await shown(store, id) == ["one", "yes"]
    assert await store.tree.switch(id, branch[0].id)
    assert await shown(store, id) == ["one", "yes", "TWO", "yes"]
    seq = await store.log.last_seq(id)
    await store.tree.switch(id, branch[0].id)
    assert await store.log.last_seq(id) == seq
    with pytest.raises(NotFound):
        await store.tree.switch(id, "none")


async def test_agent_model_and_archive_flag_can_be_set_during_a_run(store: Store) -> None:
    live = await store.records.submit(prompt())
    id = live.conversation.id
    await store.conversations.update(id, model="chosen@p")
    await end(store, live, model="answered@p")
    assert (await store.conversations.get(id)).model == "chosen@p"
    plain = await store.records.submit(prompt())
    await end(store, plain, model="answered@p")
    assert (await store.conversations.get(plain.conversation.id)).model == "answered@p"
    found = await store.conversations.update(id, agent=("reviewer", "moot"), model="", archived=True)
    assert (found.agent, found.model, found.archived_at is not None, found.own_settings.model) == ("reviewer", "", True, None)
    assert [item.id for item in (await store.conversations.list()).items] == [plain.conversation.id]
    assert [item.id for item in (await store.conversations.list(archived=True)).items] == [id]
    await store.conversations.update(id, archived=False, touch=True)
    assert [item.id for item in (await store.conversations.list()).items] == [id, plain.conversation.id]
    bodies = [event.body for event in await store.log.read(id) if event.kind == "meta"]
    assert bodies == [
        {"model": "chosen@p", "settings": {"model": "chosen@p"}},
        {"agent": "reviewer", "agent_type": "moot", "model": "", "archived": True, "settings": {}},
        {"archived": False},
    ]


async def test_the_list_is_filtered_by_title_model_agent_and_directory(store: Store) -> None:
    ids: dict[str, str] = {}
    for title, model, directory in (
        ("Grüße an 100% alle", "big@mine", "/work/a_b"),
        ("plain words", "small@other", "/work/axb"),
        ("ПРИВЕТ", "", os.fsdecode(b"/caf\xe9")),
    ):
        ids[title[0]] = (await store.conversations.create(Conversation(new_id(), title=title, model=model, directory=directory))).id
    for query, found in (
        ("", "ПpG"),
        ("grüße", "G"),
        ("привет", "П"),
        ("PLAIN", "p"),
        ("mine gr", "G"),
        ("100%", "G"),
        ("%", "G"),
        ("a_b", "G"),
        ("/work", "pG"),
        ("caf", "П"),
        ("default", "ПpG"),
        ("nothing", ""),
        ("'; --", ""),
    ):
        page = await store.conversations.list(query=query)
        assert [item.id for item in page.items] == [ids[letter] for letter in found], query
    first = await store.conversations.list(query="a", limit=1)
    second = await store.conversations.list(query="a", limit=1, cursor=first.next_cursor)
    assert [item.id for item in (*first.items, *second.items)] == [ids["П"], ids["p"]]


async def test_an_exchange_outside_a_run_is_recorded_without_a_message(store: Store) -> None:
    live = await store.records.submit(prompt())
    id = live.conversation.id
    exchange = Exchange(f"{id}:title:1", "", id, "title", "d", "d/1", "p", "m", ExchangeOptions(), {})
    raw = saying(live, [{"type": "text-delta", "id": "0", "delta": "aside"}])._replace(run=None, exchange=exchange.id)
    await store.log.append(id, [raw], changes=[OpenExchange(exchange)])
    await store.log.append(id, [raw], changes=[CloseExchange(exchange.id, "eof")])
    assert await store.records.exchange(exchange.id) == replace(exchange, ended="eof")
    assert (await store.conversations.message(live.run.message)).parts == ()
    own = replace(exchange, id=f"{live.run.id}:1.0", run=live.run.id)
    assert live.fence is not None
    await store.log.append(id, [frame(live)], fence=live.fence, changes=[OpenExchange(own)])
    for change in (OpenExchange(own), OpenExchange(replace(own, run="")), CloseExchange(own.id, "eof"), OpenExchange(replace(own, id="x"))):
        with pytest.raises(StoreError, match="Append with the run's fence"):
            await store.log.append(id, [raw], changes=[change])
    assert isinstance(live.fence, Fence)
    await end(store, live)


async def test_pinned_conversations_are_listed_first_on_pages_of_any_size(store: Store) -> None:
    made = [(await store.conversations.create(Conversation(new_id(), title=f"{at}", updated_at=1000 + at // 2))).id for at in range(9)]
    for at in (1, 4, 8):
        assert (await store.conversations.update(made[at], pinned=True)).pinned_at
    expected = [made[at] for at in (8, 4, 1, 7, 6, 5, 3, 2, 0)]
    for limit in (1, 2, 3, 4, 8, 9, 10):
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await store.conversations.list(limit=limit, cursor=cursor, pinned_first=True)
            found += [one.id for one in page.items]
            assert len(page.items) == limit or page.next_cursor is None
            if (cursor := page.next_cursor) is None:
                break
        assert found == expected, limit
    assert [one.id for one in (await store.conversations.list(pinned=True)).items] == expected[:3]
    assert [one.id for one in (await store.conversations.list(pinned=False)).items] == expected[3:]
    assert [one.id for one in (await store.conversations.list()).items] == made[::-1], "by default, pins don't change the order"
    assert (await store.conversations.update(made[4], pinned=False)).pinned_at is None


async def test_a_list_of_all_pinned_conversations_ends(store: Store) -> None:
    for _ in range(2):
        made = await store.conversations.create(Conversation(new_id()))
        await store.conversations.update(made.id, pinned=True)
    page = await store.conversations.list(limit=2, pinned_first=True)
    assert (len(page.items), page.next_cursor) == (2, None)


async def test_tags_select_conversations_in_the_order_of_their_activity(store: Store) -> None:
    made = [(await store.conversations.create(Conversation(new_id(), updated_at=1000 + at))).id for at in range(5)]
    for id in (*made[:3], made[4]):
        assert (await store.conversations.update(id, tags=("release", "draft", "draft"))).tags == ("draft", "release")
    await store.conversations.update(made[4], tags=("release",))
    await store.conversations.update(made[0], touch=True)  # moves it to the top

    async def tagged(tag: str, **wanted: Any) -> list[str]:
        return [one.id for one in (await store.conversations.list(tag=tag, **wanted)).items]

    assert await tagged("draft") == [made[0], made[2], made[1]]
    assert await tagged("release", since=1002) == [made[0], made[4], made[2]]
    first = await store.conversations.list(tag="draft", limit=2)
    assert [one.id for one in first.items] == [made[0], made[2]]
    assert await tagged("draft", limit=2, cursor=first.next_cursor) == [made[1]]
    await store.conversations.update(made[1], pinned=True)
    assert await tagged("draft", pinned_first=True) == [made[1], made[0], made[2]]
    assert (await store.conversations.choices()).tags == ("draft", "release")
    await store.conversations.delete(made[2])
    assert await tagged("draft", deleted=True) == [made[2]]
    bodies = [event.body for event in await store.log.read(made[4])]
    assert bodies == [{"tags": ["draft", "release"]}, {"tags": ["release"]}]


@pytest.mark.parametrize("tag", ["", "Two", "two words", "-x", "a" * 31, "\u00c4rger", "a,b", "a/b"])
async def test_invalid_tags_are_refused(store: Store, tag: str) -> None:
    made = await store.conversations.create(Conversation(new_id(), tags=("old",)))
    with pytest.raises(UsageError, match="tag is a word of at most 30 lowercase letters"):
        await store.conversations.update(made.id, tags=("fine", tag))
    assert (await store.conversations.get(made.id)).tags == ("old",)


async def test_a_conversation_has_at_most_20_tags(store: Store) -> None:
    made = await store.conversations.create(Conversation(new_id()))
    many = [f"t{at}" for at in range(21)]
    assert len((await store.conversations.update(made.id, tags=many[:20])).tags) == 20
    with pytest.raises(UsageError, match="at most 20 tags, not 21"):
        await store.conversations.update(made.id, tags=many)


async def test_a_fork_has_the_tags_but_is_not_pinned(store: Store) -> None:
    id = (await said(store, "one")).conversation.id
    await store.conversations.update(id, tags=("\u53d1\u5e03", "draft"), pinned=True)
    copy = await store.tree.fork(id)
    assert (copy.tags, copy.pinned_at) == (("draft", "\u53d1\u5e03"), None)
