"""Continuing an imported conversation: in a linked copy, so that the source and moot never write to the same branch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from import_stage import HEAD, NEXT, ONE, TWO, USER, source
from moot.agents.codex.service import Codex
from moot.engine.submissions import copy_of
from moot.errors import NotFound, UsageError
from moot.formats.agents.codex.format import CodexFormat
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.testing.codex_program import THREAD
from moot.testing.script import Reply
from moot.types.agent import Agent
from moot.types.canonical import loads_object
from moot.types.conversation import Conversation
from moot.types.event import SENT
from moot.types.message import text_of
from moot.types.run import Prompt, Run
from talk_format import Talk, line

pytestmark = pytest.mark.anyio

MORE = line(id="a2", parent="u2", role="assistant", text="and then that", at=1_700_000_004_000)
ROLLOUT = next((Path(__file__).parents[1] / "recorded" / "formats" / "codex").rglob("*.jsonl"))
ID = ROLLOUT.stem[-36:]


async def bring_in(on: Any, path: Path, data: bytes, format: Any = None) -> Conversation:
    path.write_bytes(data)
    placed = source(path, format or Talk())
    report = Report()
    await import_sources(on.engine.store, [placed], ImportOptions(), report)
    assert not report.problems
    found = await on.engine.store.imports.find(placed.format.name, "t1")
    assert found is not None
    return found


async def lines(on: Any, conversation: str) -> list[str]:
    return [text_of(message.parts) for message in await on.engine.store.conversations.branch(conversation)]


async def count(on: Any) -> int:
    return len((await on.engine.store.conversations.list()).items)


async def test_a_prompt_to_an_imported_conversation_continues_in_a_copy(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        whole = await bring_in(on, tmp_path / "a.talk", HEAD + USER + ONE + TWO)
        before = await on.engine.store.log.read(whole.id)
        run, _ = await on.ask("go on", conversation=whole.id)
        assert run.conversation != whole.id
        assert await on.engine.store.log.read(whole.id) == before
        assert await lines(on, whole.id) == ["hello", "onetwo"]
        assert await lines(on, run.conversation) == ["hello", "onetwo", "go on", "Yes."]
        sent = str(on.server.requests[-1].json["messages"])
        assert sent.index("hello") < sent.index("two") < sent.index("go on")
        copy = await on.engine.store.conversations.get(run.conversation)
        assert (copy.forked_from, copy.forked_from_message, copy.origin) == (whole.id, whole.head, None)
        assert (whole.directory, copy.directory) == ("", str(on.directory))


async def test_the_next_prompt_to_the_source_continues_the_same_copy(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        whole = await bring_in(on, tmp_path / "a.talk", HEAD + USER + ONE)
        assert await copy_of(on.engine.store.conversations, whole) is None
        first, _ = await on.ask("one", conversation=whole.id)
        second, _ = await on.ask("two", conversation=whole.id)
        assert second.conversation == first.conversation and await count(on) == 2
        assert await lines(on, first.conversation) == ["hello", "one", "one", "Yes.", "two", "Yes."]
        shown = await copy_of(on.engine.store.conversations, whole)
        assert shown is not None and shown.id == first.conversation


async def test_a_source_that_grows_later_does_not_change_its_copy(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        file = tmp_path / "a.talk"
        whole = await bring_in(on, file, HEAD + USER + ONE)
        first, _ = await on.ask("mine", conversation=whole.id)
        grown = await bring_in(on, file, HEAD + USER + ONE + TWO + NEXT + MORE)
        assert await lines(on, whole.id) == ["hello", "onetwo", "and then", "and then that"]
        assert await lines(on, first.conversation) == ["hello", "one", "mine", "Yes."]
        assert await copy_of(on.engine.store.conversations, grown) is None
        second, _ = await on.ask("mine too", conversation=whole.id)
        assert second.conversation not in (whole.id, first.conversation)
        assert await lines(on, second.conversation) == ["hello", "onetwo", "and then", "and then that", "mine too", "Yes."]


async def test_an_incomplete_last_message_is_a_separate_starting_point(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        file = tmp_path / "a.talk"
        whole = await bring_in(on, file, HEAD + USER + ONE)
        first, _ = await on.ask("mine", conversation=whole.id)
        await bring_in(on, file, HEAD + USER + ONE + TWO)
        second, _ = await on.ask("mine", conversation=whole.id)
        assert await lines(on, second.conversation) == ["hello", "onetwo", "mine", "Yes."]
        assert await lines(on, first.conversation) == ["hello", "one", "mine", "Yes."]


async def test_edits_other_answers_and_branches_of_a_source_are_made_in_a_copy(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        whole = await bring_in(on, tmp_path / "a.talk", HEAD + USER + ONE + NEXT + MORE)
        asked, answered = (await on.engine.store.conversations.branch(whole.id))[:2]
        edited, _ = await on.ask("Hello!", conversation=whole.id, edits=asked.id)
        assert await lines(on, edited.conversation) == ["Hello!", "Yes."]
        behind, _ = await on.ask("aside", conversation=whole.id, parent=answered.id)
        assert await lines(on, behind.conversation) == ["hello", "one", "aside", "Yes."]
        again = await on.engine.runs.submit(Prompt((), conversation=whole.id, answers=answered.id, directory=str(on.directory)))
        await on.follow(again)
        assert await lines(on, again.conversation.id) == ["hello", "Yes."]
        nodes = await on.engine.store.tree.nodes(again.conversation.id)
        assert [node.line for node in nodes if not node.shown][:1] == ["one"], "the source's answer stays beside it"
        assert await lines(on, whole.id) == ["hello", "one", "and then", "and then that"]


async def test_the_model_of_the_source_need_not_be_here(stage: Any) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        await import_sources(on.engine.store, [source(ROLLOUT, CodexFormat())], ImportOptions(), Report())
        (whole,) = (await on.engine.store.conversations.list()).items
        assert whole.model
        run, answer = await on.ask("go on", conversation=whole.id)
        copy = await on.engine.store.conversations.get(run.conversation)
        assert (run.status, answer.metadata["model"], copy.model) == ("finished", "scripted", "scripted@mine")


async def test_two_concurrent_prompts_share_one_copy(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        whole = await bring_in(on, tmp_path / "a.talk", HEAD + USER + ONE)
        found: list[str] = []

        async def go(text: str) -> None:
            found.append((await on.submit(text, conversation=whole.id, on_busy="queue")).conversation.id)

        async with anyio.create_task_group() as group:
            group.start_soon(go, "one")
            group.start_soon(go, "two")
        assert len(set(found)) == 1 and await count(on) == 2
        with anyio.fail_after(60):
            while len(await lines(on, found[0])) < 6:
                await anyio.sleep(0.02)


async def test_a_rejected_prompt_leaves_no_copy(stage: Any, tmp_path: Path) -> None:
    async with stage([]) as on:
        whole = await bring_in(on, tmp_path / "a.talk", HEAD + USER + ONE)
        with pytest.raises(UsageError):
            await on.submit("go on", conversation=whole.id, agent="nobody")
        assert await count(on) == 1


async def test_a_deleted_copy_is_created_again(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        whole = await bring_in(on, tmp_path / "a.talk", HEAD + USER + ONE)
        first, _ = await on.ask("one", conversation=whole.id)
        await on.engine.store.conversations.delete(first.conversation)
        assert await copy_of(on.engine.store.conversations, whole) is None
        second, _ = await on.ask("two", conversation=whole.id)
        assert await lines(on, second.conversation) == ["hello", "one", "two", "Yes."]
        restored = await on.engine.store.conversations.delete(first.conversation, restore=True)
        assert restored.key is None and await lines(on, first.conversation) == ["hello", "one", "one", "Yes."]


async def test_moots_own_conversation_continues_in_place_and_deleted_messages_reject_prompts(stage: Any, tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        run, _ = await on.ask("one")
        tree = on.engine.store.tree
        assert (await tree.continuation(run.conversation)).conversation.id == run.conversation
        assert (await tree.continuation(run.conversation, message=run.message)).message == run.message
        whole = await bring_in(on, tmp_path / "a.talk", HEAD + USER + ONE)
        await tree.delete(whole.id, [str(whole.head)])
        with pytest.raises(NotFound, match="has been deleted"):
            await tree.continuation(whole.id, message=whole.head)


# ── with its original agent ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def params(on: Any, run: Run, method: str) -> list[Any]:
    """The requests of this name that Codex received."""
    events = await on.engine.store.log.read(run.conversation, limit=4096)
    told = [loads_object(event.raw) for event in events if event.run == run.id and event.raw and event.body == SENT]
    return [line["params"] for line in told if line.get("method") == method]


async def test_the_original_agent_continues_in_a_fork_of_its_session(stage: Any, tmp_path: Path) -> None:
    agents = {"default": Agent(), "codex": Agent("codex", agent_type="codex", options=Codex.trials["answer"])}
    async with stage([Reply(text="Aside.", times=0)], agents=agents) as on:
        file = tmp_path / "rollout.jsonl"
        file.write_bytes(ROLLOUT.read_bytes())
        await import_sources(on.engine.store, [replace(source(file, CodexFormat()), placed=True)], ImportOptions(), Report())
        (whole,) = (await on.engine.store.conversations.list()).items
        assert whole.origin is not None
        last = (await on.engine.store.conversations.branch(whole.id))[-1]
        first, answer = await on.ask("one", conversation=whole.id, agent="codex")
        (fork,) = await params(on, first, "thread/fork")
        assert fork["threadId"] == whole.origin["source_id"]
        assert fork["lastTurnId"] == last.metadata["steps"][-1]["turn_id"]  # type: ignore[index, call-overload]
        assert text_of(answer.parts) == "Hello: one ", "its session knows what was said"
        await on.ask("between", conversation=whole.id, agent="default")
        second, answer = await on.ask("two", conversation=whole.id, agent="codex")
        (resumed,) = await params(on, second, "thread/resume")
        assert resumed["threadId"] == first.agent_session_id and second.conversation == first.conversation
        told = text_of(answer.parts)
        assert "between" in told and "Aside." in told and told.endswith("two ")
        assert file.read_bytes() == ROLLOUT.read_bytes()


async def test_sessions_created_by_moot_are_imported_only_if_named(stage: Any, tmp_path: Path) -> None:
    agents = {"default": Agent(), "codex": Agent("codex", agent_type="codex", options=Codex.trials["answer"])}
    async with stage([], agents=agents) as on:
        run, _ = await on.ask("one", agent="codex")
        file = tmp_path / f"rollout-2026-11-21T20-31-00-{THREAD}.jsonl"
        file.write_bytes(ROLLOUT.read_bytes().replace(ID.encode(), THREAD.encode()))
        placed = replace(source(file, CodexFormat()), placed=True)
        for dry_run in (True, False):
            report = Report()
            await import_sources(on.engine.store, [placed], ImportOptions(dry_run=dry_run), report)
            (one,) = report.brought
            assert (one.outcome, one.conversation and one.conversation.id, await count(on)) == ("known", run.conversation, 1)
        # whichever service ran the program; ids without a session belong to no one
        talk = tmp_path / "a.talk"
        talk.write_bytes(HEAD.replace(b"t1", THREAD.encode()) + USER + ONE)

        class Session(Talk):
            resumable: Literal[True] = True

        report = Report()
        await import_sources(on.engine.store, [replace(source(talk, Session()), placed=True)], ImportOptions(), report)
        assert (report.conversations, await count(on)) == ({"known": 1}, 1)
        talk = talk.rename(tmp_path / "b.talk")
        await import_sources(on.engine.store, [replace(source(talk), placed=True)], ImportOptions(), report)
        assert (report.conversations, await count(on)) == ({"known": 1, "added": 1}, 2)
        named = tmp_path / "named.jsonl"
        named.write_bytes(file.read_bytes())
        await import_sources(on.engine.store, [source(named, CodexFormat())], ImportOptions(), Report())
        assert await count(on) == 3
