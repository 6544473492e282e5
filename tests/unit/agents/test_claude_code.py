from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents.agent_runs import NO, YES, Driven, calls, driven, texts
from conformance.services import children
from moot import testing
from moot.types.agent import Agent, McpServer
from moot.types.approval import Answer

pytestmark = pytest.mark.anyio

DOUBLE = [sys.executable, "-S", "-E", str(Path(testing.__file__).with_name("claude_program.py"))]


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(
        behaviour: str,
        *,
        mode: Any = "ask",
        options: dict[str, Any] | None = None,
        mcp: Mapping[str, McpServer] | None = None,
        **agent: Any,
    ) -> AsyncGenerator[Driven, None]:
        given = {"command": [*DOUBLE, behaviour], **(options or {})}
        agents = {"claude": Agent("claude", agent_type="claude-code", options=given, **agent)}
        async with driven(tmp_path / "moot", tmp_path / "work", agents, mode=mode, mcp=mcp or {}) as on:
            yield on

    return opened


async def test_a_program_that_dies_fails_the_run_with_its_stderr(stage: Callable[..., Any]) -> None:
    async with stage("crash") as on:
        run, message = await on.ask("go", agent="claude")
        assert run.status == "failed" and run.error is not None
        assert "exit code 7" in run.error.message and "a bad thing happened" in run.error.message
        assert "\x1b" not in run.error.message
        assert texts(message) == "I am about to"


async def test_the_model_that_the_agent_reports_is_stored_in_the_run_but_not_chosen(stage: Callable[..., Any]) -> None:
    async with stage("answer") as on:
        run, message = await on.ask("go", agent="claude")
        assert (run.model, message.metadata["model"]) == ("double-1", "double-1")
        assert (await on.engine.store.conversations.get(run.conversation)).model == ""
        assert list((await on.engine.store.stats.usage()).models) == ["double-1"]
        found = await on.engine.store.search.search("model:double-1")
        assert [hit.message for hit in found.hits] == [run.message]


async def test_a_program_without_output_fails_the_run(stage: Callable[..., Any]) -> None:
    async with stage("silent") as on:
        run, _ = await on.ask("go", agent="claude")
        assert run.status == "failed" and run.error is not None and "exited before it answered (exit code 0)" in run.error.message


@pytest.mark.parametrize(("behaviour", "words"), [("noise", "Hello."), ("newer", "I am newer."), ("flood", "y" * (1 << 20))])
async def test_noise_floods_and_new_events_are_harmless_and_stored(stage: Callable[..., Any], behaviour: str, words: str) -> None:
    async with stage(behaviour) as on:
        run, message = await on.ask("go", agent="claude")
        assert (run.status, texts(message)) == ("finished", words), run.error
        raw = b"".join(await on.raw(run))
        assert {"noise": b"\n\n\x1b[2J{not json}\n", "newer": b'"hologram"', "flood": b"x" * 200}[behaviour] in raw
        if behaviour == "newer":
            assert b"Unknown request" in b"".join(await on.raw(run, sent=True))


async def test_an_agent_without_mcp_support_is_reported_and_answers(stage: Callable[..., Any]) -> None:
    async with stage("older", mcp={"files": McpServer("files", command="no-matter")}) as on:
        run, message = await on.ask("go", agent="claude")
        assert (run.status, texts(message)) == ("finished", "Hello.")
        (note,) = [part for part in message.parts if part["type"] == "data-note"]
        assert note["data"] == {"text": "The MCP server 'files' can't be reached: Unknown request"}


@pytest.mark.parametrize("behaviour", ["slow", "hang"])
async def test_a_cancel_takes_effect_even_if_the_agent_ignores_it(stage: Callable[..., Any], behaviour: str) -> None:
    async with stage(behaviour) as on:
        before = children()
        run = await on.begin("go", agent="claude")
        await on.says(run, "I begin.")
        began = anyio.current_time()
        await on.engine.runs.cancel(run.id)
        ended, message = await on.ended(run)
        assert (ended.status, texts(message)) == ("cancelled", "I begin. ")
        assert anyio.current_time() - began < 30 and not children() - before


async def test_edited_arguments_reach_the_agent_with_every_digit(stage: Callable[..., Any]) -> None:
    async with stage("ask") as on:
        run, message = await on.ask("go", YES, agent="claude")
        said = json.loads(calls(message)[0]["output"])
        assert said == {"behavior": "allow", "updatedInput": {"command": "ls", "n": 12345678901234567890123}}
        run, message = await on.ask("go", Answer(True, arguments=b'{"command":"ls -a"}'), agent="claude")
        assert json.loads(calls(message)[0]["output"])["updatedInput"] == {"command": "ls -a"}, run.error
        run, message = await on.ask("go", NO, agent="claude")
        assert json.loads(calls(message)[0]["errorText"]) == {"behavior": "deny", "message": "not now"}


async def test_rules_of_moot_apply_to_the_agents_tools(stage: Callable[..., Any]) -> None:
    async with stage("ask", mode="plan") as on:
        run, message = await on.ask("go", agent="claude")
        assert run.status == "finished" and "plan" in json.loads(calls(message)[0]["errorText"])["message"]
        run, message = await on.ask("go", agent="claude", mode="auto")
        assert json.loads(calls(message)[0]["output"])["behavior"] == "allow"


async def test_a_withdrawn_question_is_no_longer_open(stage: Callable[..., Any]) -> None:
    async with stage("withdraw") as on:
        run = await on.begin("go", agent="claude")
        ended, message = await on.ended(run)
        assert (ended.status, texts(message)) == ("finished", "I changed my mind.")
        assert not await on.engine.store.records.approvals(run=run.id)


async def test_a_missing_program_and_invalid_options_suggest_a_fix(stage: Callable[..., Any]) -> None:
    async with stage("answer", options={"command": ["no-such-claude"]}) as on:
        run, _ = await on.ask("go", agent="claude")
        assert run.error is not None and "'no-such-claude'" in run.error.message and "moot[claude]" in run.error.advice()
    async with stage("answer", options={"modle": "opus"}) as on:
        run, _ = await on.ask("go", agent="claude")
        assert run.error is not None and "agents.claude.options.modle" in run.error.message


async def test_a_steering_message_starts_its_own_turn_in_the_same_session(stage: Callable[..., Any]) -> None:
    async with stage("linger") as on:
        run = await on.begin("go", agent="claude")
        await on.says(run, "I begin.")
        await on.begin("and this too", conversation=run.conversation, on_busy="steer")
        ended, _ = await on.ended(run)
        sent = [json.loads(line) for line in await on.raw(run, sent=True)]
        assert ended.status == "finished"
        assert [line["message"]["content"] for line in sent if line["type"] == "user"] == ["go", "and this too"]
