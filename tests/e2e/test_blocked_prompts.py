"""Prompts that a hook blocked: no model gets them, by any way, and the user still sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.acp_stage import DOUBLE
from moot.cli.repl.branch import taken_text
from moot.config.settings import Models
from moot.convert.files.attachments import local_file
from moot.features.exports import export_conversation
from moot.plugins import FORMATS
from moot.runtime.history import compact
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent, HistorySettings
from moot.types.hooks import CommandHook
from moot.types.message import Message, note_of, text_of, text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

SECRET = "swordfish"
WORD = "swor[d]fish"  # so that the name of the hook does not contain it
GUARD = f"if grep -q {WORD}; then echo 'contains a password' >&2; exit 2; fi"
HOOKS = {"hooks": {"UserPromptSubmit": (CommandHook(GUARD),)}}
ALL = Models(main="scripted@mine", small="little@mine", compaction="little@mine")
SUMMARY = Reply(when="Write the summary", text="They like fish.", times=0)
TITLE = Reply(when="user:", text="About fish", times=0)


def sent(on: Any) -> str:
    """Return everything that models got."""
    return "\n".join(json.dumps(request.json) for request in on.server.requests)


def notes(message: Message) -> list[str]:
    return [note_of(part) for part in message.parts if part["type"] == "data-note"]


async def settled(on: Any, conversation: str, title: str) -> None:
    """Wait until the conversation has this title."""
    with anyio.fail_after(10):
        while (await on.engine.store.conversations.get(conversation)).title != title:
            await anyio.sleep(0.01)


async def test_a_blocked_prompt_is_in_no_summary_and_no_title(stage: Any) -> None:
    agents = {"default": Agent(tools=(), history=HistorySettings(keep=1))}
    async with stage([SUMMARY, TITLE, Reply(text="Yes.", times=0)], models=ALL, agents=agents, **HOOKS) as on:
        run, message = await on.ask(f"the password is {SECRET}")
        assert notes(message) == [f"The UserPromptSubmit hook {GUARD!r} blocked the prompt: contains a password"]
        await settled(on, run.conversation, "Blocked prompt")
        await on.ask("I like fish", conversation=run.conversation)
        await settled(on, run.conversation, "About fish")
        await on.ask(f"again {SECRET}", conversation=run.conversation)
        await on.ask("and cats", conversation=run.conversation)
        head = (await on.engine.store.conversations.get(run.conversation)).head
        made = await compact(on.engine.runtime, run.conversation, head, keep=1)
        assert made is not None and "I like fish" in sent(on)
        assert SECRET not in sent(on)
        branch = await on.engine.store.conversations.branch(run.conversation)
        assert SECRET in str([part for one in branch for part in one.parts]), "the user still sees it"


async def test_a_title_without_a_model_is_that_of_the_first_prompt_that_passed(stage: Any) -> None:
    async with stage([Reply(text="ok")], **HOOKS) as on:
        run, _ = await on.ask(f"the password is {SECRET}")
        await settled(on, run.conversation, "Blocked prompt")
        await on.ask("hello there", conversation=run.conversation)
        await settled(on, run.conversation, "hello there")


async def test_a_blocked_prompt_stays_out_of_the_history_when_its_answer_is_deleted_or_the_branch_is_forked(stage: Any) -> None:
    async with stage([Reply(text="ok", times=0)], **HOOKS) as on:
        tree = on.engine.store.tree
        run, message = await on.ask(f"the password is {SECRET}")
        fork = await tree.fork(run.conversation, message=message.parent)
        await on.ask("hello", conversation=fork.id)
        again = await tree.fork(fork.id)
        await on.ask("hello", conversation=again.id)
        await on.ask("hello", conversation=run.conversation, parent=message.parent)
        await tree.delete(run.conversation, [message.id])
        await on.ask("hello", conversation=run.conversation, parent=message.parent)
        assert len(on.server.requests) == 4 and SECRET not in sent(on)


async def test_a_blocked_prompt_that_passes_later_is_part_of_the_history(stage: Any, directory: Path) -> None:
    guard = f"if [ -e closed ] && grep -q {WORD}; then exit 2; fi"
    async with stage([Reply(text="ok", times=0)], hooks={"UserPromptSubmit": (CommandHook(guard),)}) as on:
        (directory / "closed").touch()
        run, message = await on.ask(f"the word is {SECRET}")
        (directory / "closed").unlink()
        retry = await on.engine.runs.submit(Prompt((), conversation=run.conversation, answers=message.parent))
        second = await on.engine.runs.wait(retry.run.id)
        assert second.status == "finished" and SECRET in sent(on)
        await on.ask("hello", conversation=run.conversation)
        assert SECRET in json.dumps(on.server.requests[-1].json)


async def test_a_prompt_whose_hook_did_not_end_is_not_sent_later(stage: Any, directory: Path) -> None:
    slow = CommandHook(f"grep -q {WORD} || exit 0; touch begun; sleep 600")
    async with stage([Reply(text="ok", times=0)], hooks={"UserPromptSubmit": (slow,)}) as on:
        submitted = await on.submit(f"the password is {SECRET}")
        with anyio.fail_after(10):
            while not (directory / "begun").exists():
                await anyio.sleep(0.01)
        await on.engine.runs.cancel(submitted.run.id)
        assert (await on.engine.runs.wait(submitted.run.id)).status == "cancelled"
        await on.ask("hello", conversation=submitted.conversation.id)
        assert "hello" in sent(on) and SECRET not in sent(on)


async def test_a_search_of_a_model_does_not_find_blocked_prompts(stage: Any) -> None:
    def script(recorded: Any) -> Reply:
        found = any(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(text="ok") if found else Reply(tool_calls=[ToolCall("search_history", {"query": "password"})])

    agents = {"default": Agent(tools=("search_history",))}
    async with stage(script, agents=agents, **HOOKS) as on:
        await on.ask(f"the password is {SECRET}")
        await on.ask("what is the password policy?")
        run, _ = await on.ask("find it")
        assert run.status == "finished" and "password policy" in sent(on) and SECRET not in sent(on)
        page = await on.engine.store.search.search(SECRET)
        assert len(page.hits) == 1, "the user finds it"


async def test_an_outside_agent_gets_no_blocked_prompt(stage: Any) -> None:
    agents = {
        "default": Agent(),
        "double": Agent("double", agent_type="acp:double", model="", options={"command": [*DOUBLE, "echo"]}),
    }
    async with stage([Reply(text="ok", times=0)], agents=agents, **HOOKS) as on:
        run, _ = await on.ask("hello", agent="double")
        await on.ask(f"the password is {SECRET}", conversation=run.conversation, agent="default")
        _, message = await on.ask("again", conversation=run.conversation, agent="double")
        assert "again" in text_of(message.parts) and SECRET not in text_of(message.parts)


@pytest.mark.parametrize("name", ["claude", "codex"])
async def test_a_session_for_another_agent_does_not_contain_it_and_a_document_does(stage: Any, name: str) -> None:
    async with stage([Reply(text="ok", times=0)], **HOOKS) as on:
        run, _ = await on.ask("hello")
        await on.ask(f"the password is {SECRET}", conversation=run.conversation)
        found = await on.engine.store.conversations.get(run.conversation)
        session = await export_conversation(on.engine.store, found, FORMATS.make(name))
        document = await export_conversation(on.engine.store, found, FORMATS.make("html"))
        assert b"hello" in session.data and SECRET.encode() not in session.data
        assert SECRET.encode() in document.data and b"blocked the prompt" in document.data


async def test_a_run_is_not_affected_by_hooks_that_were_removed_while_they_ran(stage: Any, directory: Path) -> None:
    slow = CommandHook("touch begun; sleep 600")
    async with stage([Reply(text="ok")], hooks={"UserPromptSubmit": (slow,)}) as on:
        submitted = await on.submit("first")
        with anyio.fail_after(10):
            while not (directory / "begun").exists():
                await anyio.sleep(0.01)
    async with stage([Reply(text="ok", times=0)]) as on:
        await on.engine.runs.resume(submitted.run.id)
        run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "finished"
        await on.ask("second", conversation=run.conversation)
        assert "first" in json.dumps(on.server.requests[-1].json)


async def test_a_blocked_message_into_a_running_answer_is_not_sent_and_others_get_added_text(stage: Any) -> None:
    guard = CommandHook(f"if grep -q {WORD}; then echo 'contains a password' >&2; exit 2; fi; echo Be brief.")
    async with stage([Reply(text="one", hang_at=1), Reply(text="two")], hooks={"UserPromptSubmit": (guard,)}) as on:
        submitted = await on.submit("hello")
        await on.called()
        await on.submit(f"the password is {SECRET}", conversation=submitted.conversation.id, on_busy="steer")
        await on.submit("in French please", conversation=submitted.conversation.id, on_busy="steer")
        on.server.release()
        run = await on.engine.runs.wait(submitted.run.id)
        message = await on.engine.store.conversations.message(run.message)
        assert run.status == "finished" and f"Not sent: the password is {SECRET}" in notes(message)
        assert SECRET not in sent(on) and "in French please" in sent(on)
        chunks = [piece for event in await on.engine.store.log.read(run.conversation) for piece in event.chunks]
        assert [text for text in map(taken_text, chunks) if text] == [f"the password is {SECRET}", "Be brief.\n\nin French please"]
        assert "Be brief.\\n\\n" in json.dumps(on.server.requests[-1].json["messages"][-1])


async def test_hooks_see_the_text_of_attached_files(stage: Any) -> None:
    async with stage([Reply(text="ok")], **HOOKS) as on:
        attached = local_file(f"password: {SECRET}".encode(), "notes/keys.txt")
        submitted = await on.engine.runs.submit(Prompt((text_part("sum it up"), attached), directory=str(on.directory)))
        run = await on.engine.runs.wait(submitted.run.id)
        message = await on.engine.store.conversations.message(run.message)
        assert message.metadata["finish_reason"] == "blocked" and on.server.requests == []
