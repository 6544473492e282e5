"""Sources that grow, are truncated, or are rewritten: the imported result equals one import of the final source."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from import_stage import HEAD, NEXT, ONE, TWO, USER, only, source, stored, take
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.plugins import FORMATS
from moot.types.canonical import JsonObject
from moot.types.conversation import Project
from moot.types.format import Entry, Fidelity, ImportedConversation, ImportedMessage
from moot.types.ids import new_id
from moot.types.message import Message, text_of, text_part
from moot.types.store import Store
from talk_format import Talk, line

pytestmark = pytest.mark.anyio


async def told(store: Store) -> JsonObject:
    """Return everything of a conversation without ids: messages by their path in the tree, raw, records."""
    conversation = await only(store)
    nodes = await store.tree.nodes(conversation.id)
    messages = {node.id: await store.conversations.message(node.id) for node in nodes}
    events = await store.log.read(conversation.id, limit=4096)
    raws: dict[str, bytes] = {}
    for event in events:
        if event.kind == "message" and isinstance(event.body, dict):
            raws[str(event.body["id"])] = raws.get(str(event.body["id"]), b"") + (event.raw or b"")
    said = {
        "/".join(_way(messages, message)): [list(message.parts), message.metadata, raws[message.id].decode(), message.created_at]
        for message in messages.values()
    }
    # a record read before its newline was written stays as read
    records = sorted((event.raw or b"").rstrip(b"\n").decode() for event in events if event.kind == "meta")
    head = messages[conversation.head or ""]
    return {"said": said, "records": records, "head": _way(messages, head), "title": conversation.title}  # type: ignore[dict-item]


def _way(messages: dict[str, Message], message: Message) -> list[str]:
    text = text_of(message.parts)
    return [*(_way(messages, messages[message.parent]) if message.parent else []), f"{message.role}:{text[:12]}"]


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """A tree of messages, some in several lines, with records and broken lines between them."""
    data = HEAD
    ids: list[str] = []
    for number in range(draw(st.integers(1, 8))):
        role = draw(st.sampled_from(["user", "assistant"]))
        parent = draw(st.sampled_from([None, *ids]))
        for piece in range(draw(st.integers(1, 3))):
            usage = {"input": number, "output": piece} if role == "assistant" else None
            said: dict[str, Any] = {"id": f"m{number}", "parent": parent, "role": role, "text": f"{number}.{piece} ", "at": 10**12 + number}
            data += line(**said, **({"usage": usage} if usage else {}))
        ids.append(f"m{number}")
        between = [b"", line(note=draw(st.integers(0, 2))), b"no json\n", b"{\0\0}\n", line(head=draw(st.sampled_from(ids)))]
        data += draw(st.sampled_from(between))
    return data


@given(data=sources(), cuts=st.lists(st.floats(0, 1), max_size=4))
@settings(max_examples=12)
async def test_importing_growing_prefixes_gives_the_same_result_as_one_import(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("grow")
    file = folder / "a.talk"
    file.write_bytes(data)
    async with stored(folder / "once") as store:
        await take(store, file)
        at_once = await told(store)
    file.unlink()
    async with stored(folder / "grown") as store:
        for cut in [*sorted(cuts), 1.0]:
            file.write_bytes(data[: max(len(HEAD), int(len(data) * cut))])
            await take(store, file)
        grown = await told(store)
        again = await take(store, file)
        assert again.unchanged == 1 or not again.counts.changed
    assert grown == at_once


async def test_a_second_import_skips_unchanged_sources_and_adds_nothing_from_touched_ones(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(HEAD + USER + ONE)
    async with stored(tmp_path / "home") as store:
        assert (await take(store, file)).counts.added == 2
        assert (await take(store, file)).unchanged == 1
        os.utime(file, ns=(1, 1))
        report = await take(store, file)
        assert (report.unchanged, report.counts.changed, report.counts.known) == (0, False, 3)


async def test_a_message_that_grows_is_one_message_and_only_the_new_bytes_are_added(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    async with stored(tmp_path / "home") as store:
        file.write_bytes(HEAD + USER + ONE)
        await take(store, file)
        file.write_bytes(HEAD + USER + ONE + TWO)
        report = await take(store, file)
        assert (report.counts.grown, report.counts.added, report.counts.rewritten) == (1, 0, 0)
        conversation = await only(store)
        branch = await store.conversations.branch(conversation.id)
        assert [text_of(message.parts) for message in branch] == ["hello", "onetwo"]
        last = (await store.log.read(conversation.id))[-1]
        assert last.raw == TWO
        assert isinstance(last.body, dict)
        assert (last.body["keep"], len(last.body["parts"])) == (1, 1)  # type: ignore[arg-type]
        assert not (await store.search.search('"onetwo" two')).hits
        assert [hit.message for hit in (await store.search.search("one two")).hits] == [branch[1].id]


async def test_grown_messages_are_found_by_their_new_words(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    async with stored(tmp_path / "home") as store:
        file.write_bytes(HEAD + USER + ONE)
        await take(store, file)
        assert not (await store.search.search("two")).hits
        file.write_bytes(HEAD + USER + ONE + TWO)
        await take(store, file)
        page = await store.search.search("two")
        assert (len(page.hits), page.done, page.total) == (1, 2, 2)


async def test_a_rewritten_message_becomes_a_sibling_of_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    async with stored(tmp_path / "home") as store:
        file.write_bytes(HEAD + USER + ONE + NEXT)
        await take(store, file)
        other = line(id="a1", parent="u1", role="assistant", text="different")
        file.write_bytes(HEAD + USER + other + line(id="u3", parent="a1", role="user", text="on"))
        report = await take(store, file)
        assert report.counts.rewritten == 1
        conversation = await only(store)
        assert [text_of(message.parts) for message in await store.conversations.branch(conversation.id)] == ["hello", "different", "on"]
        assert len(await store.tree.nodes(conversation.id)) == 5
        os.utime(file, ns=(1, 1))
        assert not (await take(store, file)).counts.changed


class LaterTalk(Talk):
    """A later version of the format, which adds the first record to the raw data of answers and reads their text differently."""

    version = 2

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        return (replace(one, entries=map(self._changed, one.entries)) for one in super().read(path))

    def _changed(self, entry: Entry) -> Entry:
        if not isinstance(entry, ImportedMessage) or entry.role == "user":
            return entry
        return replace(entry, raw=HEAD + bytes(cast("bytes", entry.raw)), parts=(text_part(f"Read: {text_of(entry.parts)}"),))


async def test_a_later_version_of_a_format_replaces_messages_without_a_branch_and_counts_them_once(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(long_source(count=6))
    async with stored(tmp_path / "home") as store:
        await take(store, file)
        before = await only(store)
        report = Report()
        await import_sources(store, [source(file, LaterTalk())], ImportOptions(), report)
        assert (report.counts.grown, report.counts.rewritten) == (3, 0)
        after = await only(store)
        assert (after.message_count, after.usage) == (before.message_count, before.usage)
        assert (await store.stats.usage(wait=10)).total.input == 30
        branch = await store.conversations.branch(after.id)
        assert [text_of(message.parts) for message in branch][-2:] == ["text 4", "Read: text 5"]
        assert len(await store.tree.nodes(after.id)) == 6


def long_source(changed: int = -1, count: int = 600) -> bytes:
    """Prompts and priced answers, of which one may be edited."""
    data = HEAD
    for at in range(count):
        said: dict[str, Any] = {"id": f"m{at}", "parent": f"m{at - 1}" if at else None, "role": "assistant" if at % 2 else "user"}
        usage = {"usage": {"input": 10, "output": 1}} if at % 2 else {}
        data += line(**said, text="edited" if at == changed else f"text {at}", at=10**12 + at, **usage)
    return data


async def test_the_branch_of_an_edited_message_is_complete_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    async with stored(tmp_path / "home") as store:
        file.write_bytes(long_source())
        await take(store, file)
        before = await only(store)
        file.write_bytes(long_source(changed=200))
        report = await take(store, file)
        after = await only(store)
        texts = [text_of(message.parts) for message in await store.conversations.branch(after.id)]
        assert texts == [f"text {at}" for at in range(200)] + ["edited"] + [f"text {at}" for at in range(201, 600)]
        assert (report.counts.rewritten, report.counts.added, report.counts.known) == (400, 0, 201)
        assert after.usage == before.usage and not [note for one in report.brought for note in one.notes]
        former = await store.conversations.branch(after.id, head=before.head)
        assert [text_of(message.parts) for message in former] == [f"text {at}" for at in range(600)]
        file.write_bytes(long_source(changed=200, count=602))
        assert ((await take(store, file)).counts.added, len(await store.conversations.branch(after.id))) == (2, 602)
        os.utime(file, ns=(1, 1))
        assert not (await take(store, file)).counts.changed


async def test_an_edit_stays_hidden_if_another_branch_was_chosen_and_the_report_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    async with stored(tmp_path / "home") as store:
        file.write_bytes(HEAD + USER + ONE + NEXT)
        await take(store, file)
        conversation = await only(store)
        said = Message(new_id(), "user", ({"type": "text", "text": "mine"},))
        (mine,) = await store.tree.graft(conversation.id, conversation.head, [said])
        file.write_bytes(HEAD + USER + line(id="a1", parent="u1", role="assistant", text="edited") + NEXT)
        report = await take(store, file)
        assert (await only(store)).head == mine.id
        (note,) = [note for one in report.brought for note in one.notes]
        assert "another branch" in note and note.endswith(f"moot chat tree {conversation.id[:13]}")
        hidden = next(node for node in await store.tree.nodes(conversation.id) if node.line == "and then" and not node.shown)
        texts = [text_of(message.parts) for message in await store.conversations.branch(conversation.id, head=hidden.id)]
        assert texts == ["hello", "edited", "and then"]


async def test_a_source_with_a_repeated_id_does_not_grow_with_each_import(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(
        HEAD + USER + ONE + NEXT + line(id="u1", role="user", text="another with that id") + line(id="x", parent="u1", text="?")
    )
    async with stored(tmp_path / "home") as store:
        await take(store, file)
        before = await told(store)
        for mtime in (1, 2):
            os.utime(file, ns=(mtime, mtime))
            assert not (await take(store, file)).counts.changed
        assert await told(store) == before


async def test_the_active_branch_follows_the_source_until_it_is_continued_in_moot(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    async with stored(tmp_path / "home") as store:
        file.write_bytes(HEAD + USER + ONE)
        await take(store, file)
        conversation = await only(store)
        said = Message("01999999-0000-7000-8000-000000000001", "user", ({"type": "text", "text": "mine"},))
        (mine,) = await store.tree.graft(conversation.id, conversation.head, [said])
        file.write_bytes(HEAD + USER + ONE + NEXT)
        assert (await take(store, file)).counts.added == 1
        conversation = await only(store)
        assert conversation.head == mine.id
        nodes = await store.tree.nodes(conversation.id)
        assert [node.parent for node in nodes[2:]] == [nodes[1].id, nodes[1].id]


async def test_a_truncated_record_waits_in_a_recent_source_and_is_stored_from_an_old_one(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    async with stored(tmp_path / "home") as store:
        file.write_bytes(HEAD + USER + ONE[:-9])
        report = await take(store, file)
        assert (report.problems, report.counts.added) == (0, 1)
        os.utime(file, (time.time() - 3600, time.time() - 3600))
        report = await take(store, file)
        assert (report.problems, report.counts.records) == (1, 1)
        kept = [event.raw for event in await store.log.read((await only(store)).id) if event.kind == "meta"]
        assert kept[-1] == ONE[:-9]
        assert (await take(store, file)).unchanged == 1


async def test_children_are_attached_to_their_parents_in_any_order(tmp_path: Path) -> None:
    parent, child = tmp_path / "p.talk", tmp_path / "c.talk"
    parent.write_bytes(HEAD + USER + ONE)
    child.write_bytes(line(talk="c1", above="t1") + USER)
    ring = tmp_path / "r.talk"
    ring.write_bytes(line(talk="r1", above="r2") + USER)
    back = tmp_path / "s.talk"
    back.write_bytes(line(talk="r2", above="r1") + USER)
    async with stored(tmp_path / "home") as store:
        await take(store, child, parent, ring, back)
        above = await store.imports.find("talk", "t1")
        below = await store.imports.find("talk", "c1")
        one, other = await store.imports.find("talk", "r1"), await store.imports.find("talk", "r2")
        assert above is not None
        assert below is not None
        assert one is not None
        assert other is not None
        assert (below.parent, below.parent_tool_call) == (above.id, "call")
        assert [one.parent, other.parent].count(None) == 1


class Uncalled(Talk):
    """The format, as long as the call that started a sub-agent is unknown."""

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        return (replace(one, parent_call=None) for one in super().read(path))


async def test_the_call_of_a_sub_agent_may_become_known_later(tmp_path: Path) -> None:
    parent, child = tmp_path / "parent.talk", tmp_path / "child.talk"
    parent.write_bytes(HEAD + USER)
    child.write_bytes(line(talk="t2", above="t1") + USER)
    async with stored(tmp_path / "home") as store:
        for format in (Uncalled(), Talk()):
            await import_sources(store, [source(child, format), source(parent, format)], ImportOptions(), Report())
            (top,) = (await store.conversations.list()).items
            (one,) = (await store.conversations.list(parent=top.id)).items
            assert one.parent_tool_call == (None if isinstance(format, Uncalled) else "call")
            child.write_bytes(child.read_bytes() + ONE)


async def test_a_dry_run_reports_the_import_and_stores_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(HEAD + USER + ONE)
    async with stored(tmp_path / "home") as store:
        report = await take(store, file, dry_run=True)
        assert (report.conversations["would be added"], report.counts.added) == (1, 2)
        assert not (await store.conversations.list()).items
        await take(store, file)
        file.write_bytes(HEAD + USER + ONE + TWO + NEXT)
        report = await take(store, file, dry_run=True)
        assert (report.conversations["would grow"], report.counts.grown, report.counts.added) == (1, 1, 1)
        assert (await only(store)).message_count == 2


async def test_older_conversations_are_skipped(tmp_path: Path) -> None:
    old, new = tmp_path / "old.talk", tmp_path / "new.talk"
    old.write_bytes(HEAD + USER + ONE)
    new.write_bytes(line(talk="t2") + line(id="u", role="user", text="late", at=1_800_000_000_000))
    async with stored(tmp_path / "home") as store:
        report = await take(store, old, new, since=1_750_000_000_000)
        assert (report.older, report.conversations["added"]) == (1, 1)
        os.utime(new, ns=(1, 1))
        assert (await take(store, new, since=1_750_000_000_000)).older == 1
        assert (await take(store, old)).conversations["added"] == 1


async def test_impossible_times_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    times = [-5, 10**17, 1_700_000_003_000, 1_700_000_001_000]
    lines = [line(id=str(at), role="user", text=f"at {at}", at=at) for at in times]
    file.write_bytes(HEAD + b"".join(lines))
    async with stored(tmp_path / "home") as store:
        await take(store, file)
        conversation = await only(store)
        assert (conversation.created_at, conversation.updated_at) == (1_700_000_001_000, 1_700_000_003_000)
        assert (await store.search.search("at")).total == 4


async def test_estimated_costs_are_marked_and_grow_with_the_message(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    paid = {"model": "claude-sonnet-4-5@anthropic", "usage": {"input": 1000, "output": 100}}
    async with stored(tmp_path / "home") as store:
        file.write_bytes(HEAD + USER + line(id="a", role="assistant", parent="u1", **paid))
        await take(store, file)
        conversation = await only(store)
        cost = conversation.cost
        assert cost == 1000 * 3000 + 100 * 15000
        step = (await store.conversations.branch(conversation.id))[1].metadata["steps"][0]  # type: ignore[index]
        assert (step["cost"], step["cost_estimated"]) == (cost, True)  # type: ignore[index, call-overload]
        file.write_bytes(
            file.read_bytes() + line(id="a", role="assistant", **paid) + line(id="b", role="assistant", model="?", usage={"input": 5})
        )
        report = await take(store, file)
        conversation = await only(store)
        assert (conversation.cost, conversation.usage.input, conversation.unpriced_runs) == (2 * cost, 2005, 1)
        assert report.unpriced == 1


async def test_only_sources_in_their_own_location_set_the_directory(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    file = tmp_path / "a.talk"
    file.write_bytes(line(talk="t", directory=str(work)) + USER)
    async with stored(tmp_path / "home") as store:
        await take(store, file)
        assert (await only(store)).directory == ""
    async with stored(tmp_path / "other") as store:
        await import_sources(store, [replace(source(file), placed=True)], ImportOptions(), Report())
        assert (await only(store)).directory == str(work)
    async with stored(tmp_path / "third") as store:
        await import_sources(store, [replace(source(file), placed=True)], ImportOptions(home=work), Report())
        assert (await only(store)).directory == ""


async def test_a_directory_that_is_known_only_at_the_end_is_set(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    file = tmp_path / "a.talk"
    many = b"".join(line(id=f"u{at}", role="user", text="hello") for at in range(600))
    file.write_bytes(HEAD + many + line(directory=str(work)))
    async with stored(tmp_path / "home") as store:
        project = await store.projects.create(Project(new_id(), "Work", root_path=str(work)))
        await import_sources(store, [replace(source(file), placed=True)], ImportOptions(), Report())
        found = await only(store)
        assert (found.directory, found.project) == (str(work), project.id)
        await store.conversations.update(found.id, project="default")
        file.write_bytes(file.read_bytes() + line(id="u600", role="user", text="more"))
        await import_sources(store, [replace(source(file), placed=True)], ImportOptions(), Report())
        assert (await only(store)).project == "default"


async def test_conversations_and_messages_without_an_id_are_imported_once(tmp_path: Path) -> None:
    files = [tmp_path / "a.talk", tmp_path / "b.talk"]
    for file in files:
        said = [line(id="", role="user", text="hello"), line(id="a1", parent="", role="assistant", text="one"), line(id="", text="more")]
        file.write_bytes(line(talk="") + b"".join(said))
    async with stored(tmp_path / "home") as store:
        assert (await take(store, *files)).counts.added == 6
        for one in (await store.conversations.list()).items:
            nodes = await store.tree.nodes(one.id)
            assert [node.parent for node in nodes] == [None, nodes[0].id, None]
        for file in files:
            os.utime(file, ns=(1, 1))
        assert not (await take(store, *files)).counts.changed


async def test_a_deleted_conversation_is_not_imported_again(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(HEAD + USER)
    async with stored(tmp_path / "home") as store:
        await take(store, file)
        await store.conversations.delete((await only(store)).id)
        file.write_bytes(HEAD + USER + ONE)
        report = await take(store, file)
        assert (report.conversations["known"], report.counts.changed) == (1, False)


async def test_a_long_conversation_is_stored_in_pieces_that_survive_a_cancellation(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(
        HEAD + b"".join(line(id=f"m{at}", role="user", parent=f"m{at - 1}" if at else None, text="x" * 2000) for at in range(2000))
    )
    async with stored(tmp_path / "home") as store:
        report = Report()
        with anyio.CancelScope() as scope:
            report.on_change = lambda: scope.cancel() if report.messages > 500 else None
            await import_sources(store, [source(file)], ImportOptions(), report)
        count = (await only(store)).message_count
        assert 0 < count < 2000
        report = await take(store, file)
        assert (report.counts.known - 1, report.counts.added) == (count, 2000 - count)
        conversation = await only(store)
        assert conversation.message_count == 2000
        assert len(await store.conversations.branch(conversation.id)) == 2000


@pytest.mark.anyio
async def test_an_empty_session_is_imported_after_its_first_prompt(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    context = line(id="s1", role="system", text="You are at work.", at=1_700_000_000_000)
    file.write_bytes(HEAD + context)
    async with stored(tmp_path / "home") as store:
        reports = [Report() for _ in range(3)]
        await import_sources(store, [replace(source(file), placed=True)], ImportOptions(), reports[0])
        assert reports[0].conversations == {"empty": 1} and not (await store.conversations.list()).items
        assert reports[0].by_format() == {"talk": Fidelity()}, "nothing of it is said to be kept"
        file.write_bytes(HEAD + context + line(id="u1", parent="s1", role="user", text="hello", at=1_700_000_001_000))
        await import_sources(store, [replace(source(file), placed=True)], ImportOptions(), reports[1])
        assert reports[1].conversations == {"added": 1}
        assert [message.role for message in await store.conversations.branch((await only(store)).id)] == ["system", "user"]
    async with stored(tmp_path / "other") as store:  # files named by the user are imported without these rules
        file.write_bytes(HEAD + context)
        await import_sources(store, [source(file)], ImportOptions(), reports[2])
        assert reports[2].conversations == {"added": 1}


async def test_a_message_of_an_unknown_shape_is_lost_and_not_empty(tmp_path: Path) -> None:
    file = tmp_path / "messages.json"
    file.write_bytes(b'[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": {"chunks": ["Good morning"]}}]')
    os.utime(file, (1_700_000_000, 1_700_000_000))  # a record at the end of a young file may still be being written
    async with stored(tmp_path / "home") as store:
        report = Report()
        await import_sources(store, [source(file, FORMATS.make("openai"))], ImportOptions(), report)
        assert (report.problems, report.by_format()["openai"].lost) == (1, {"messages": 1})
        assert (await only(store)).message_count == 1
