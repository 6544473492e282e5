from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents.driving import NO, YES, Driven, calls, driven, texts
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


async def test_a_program_that_dies_ends_the_run_with_what_it_complained_of(stage: Callable[..., Any]) -> None:
    async with stage("crash") as on:
        run, message = await on.ask("go", agent="claude")
        assert run.status == "failed" and run.error is not None
        assert "exit code 7" in run.error.message and "a bad thing happened" in run.error.message
        assert "\x1b" not in run.error.message
        assert texts(message) == "I am about to"


async def test_a_program_that_says_nothing_is_a_failure(stage: Callable[..., Any]) -> None:
    async with stage("silent") as on:
        run, _ = await on.ask("go", agent="claude")
        assert run.status == "failed" and run.error is not None and "exited before it answered (exit code 0)" in run.error.message


@pytest.mark.parametrize(("behaviour", "words"), [("noise", "Hello."), ("newer", "I am newer."), ("flood", "y" * (1 << 20))])
async def test_noise_floods_and_news_do_no_harm_and_are_kept(stage: Callable[..., Any], behaviour: str, words: str) -> None:
    async with stage(behaviour) as on:
        run, message = await on.ask("go", agent="claude")
        assert (run.status, texts(message)) == ("finished", words), run.error
        raw = b"".join(await on.raw(run))
        assert {"noise": b"\n\n\x1b[2J{not json}\n", "newer": b'"hologram"', "flood": b"x" * 200}[behaviour] in raw
        if behaviour == "newer":
            assert b"Unknown request" in b"".join(await on.raw(run, sent=True))


async def test_one_that_takes_no_mcp_servers_is_told_of_and_answers_without(stage: Callable[..., Any]) -> None:
    async with stage("older", mcp={"files": McpServer("files", command="no-matter")}) as on:
        run, message = await on.ask("go", agent="claude")
        assert (run.status, texts(message)) == ("finished", "Hello.")
        (note,) = [part for part in message.parts if part["type"] == "data-note"]
        assert note["data"] == {"text": "The MCP server 'files' can't be reached: Unknown request"}


@pytest.mark.parametrize("behaviour", ["slow", "hang"])
async def test_a_cancel_holds_whether_it_is_heard_or_not(stage: Callable[..., Any], behaviour: str) -> None:
    async with stage(behaviour) as on:
        before = children()
        run = await on.begin("go", agent="claude")
        await on.says(run, "I begin.")
        began = anyio.current_time()
        await on.engine.runs.cancel(run.id)
        ended, message = await on.ended(run)
        assert (ended.status, texts(message)) == ("cancelled", "I begin. ")
        assert anyio.current_time() - began < 5 and not children() - before


async def test_arguments_reach_it_to_the_last_digit_and_as_a_person_changed_them(stage: Callable[..., Any]) -> None:
    async with stage("ask") as on:
        run, message = await on.ask("go", YES, agent="claude")
        said = json.loads(calls(message)[0]["output"])
        assert said == {"behavior": "allow", "updatedInput": {"command": "ls", "n": 12345678901234567890123}}
        run, message = await on.ask("go", Answer(True, arguments=b'{"command":"ls -a"}'), agent="claude")
        assert json.loads(calls(message)[0]["output"])["updatedInput"] == {"command": "ls -a"}, run.error
        run, message = await on.ask("go", NO, agent="claude")
        assert json.loads(calls(message)[0]["errorText"]) == {"behavior": "deny", "message": "not now"}


async def test_rules_of_moot_hold_for_its_tools(stage: Callable[..., Any]) -> None:
    async with stage("ask", mode="plan") as on:
        run, message = await on.ask("go", agent="claude")
        assert run.status == "finished" and "plan" in json.loads(calls(message)[0]["errorText"])["message"]
        run, message = await on.ask("go", agent="claude", mode="auto")
        assert json.loads(calls(message)[0]["output"])["behavior"] == "allow"


async def test_a_question_that_it_takes_back_is_open_no_more(stage: Callable[..., Any]) -> None:
    async with stage("withdraw") as on:
        run = await on.begin("go", agent="claude")
        ended, message = await on.ended(run)
        assert (ended.status, texts(message)) == ("finished", "I changed my mind.")
        assert not await on.engine.store.records.approvals(run=run.id)


async def test_a_missing_program_and_wrong_options_say_what_to_do(stage: Callable[..., Any]) -> None:
    async with stage("answer", options={"command": ["no-such-claude"]}) as on:
        run, _ = await on.ask("go", agent="claude")
        assert run.error is not None and "'no-such-claude'" in run.error.message and "moot[claude]" in run.error.advice()
    async with stage("answer", options={"modle": "opus"}) as on:
        run, _ = await on.ask("go", agent="claude")
        assert run.error is not None and "agents.claude.options.modle" in run.error.message


async def test_what_is_said_meanwhile_is_a_turn_of_its_own_in_the_same_session(stage: Callable[..., Any]) -> None:
    async with stage("linger") as on:
        run = await on.begin("go", agent="claude")
        await on.says(run, "I begin.")
        await on.begin("and this too", conversation=run.conversation, on_busy="steer")
        ended, _ = await on.ended(run)
        sent = [json.loads(line) for line in await on.raw(run, sent=True)]
        assert ended.status == "finished"
        assert [line["message"]["content"] for line in sent if line["type"] == "user"] == ["go", "and this too"]
