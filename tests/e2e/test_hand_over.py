"""A run whose provider refuses further calls continues with another agent."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import MootProcess
from moot import testing
from moot.agents.journal import locate
from moot.features.replays.rerun import rerun
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.hooks import RunHook, RunHooks
from moot.types.limits import Limits
from moot.types.message import text_of, tool_name

pytestmark = pytest.mark.anyio

REFUSED = Reply(status=429, retry_after=7200, error="usage limit reached")
FIRST = Agent(fallback=("second",))
SECOND = Agent("second", instructions="You are the second.", fallback=("default",))


def outside(behaviour: str, **more: Any) -> Agent:
    """Return an agent that is a program with scripted behavior."""
    command = [sys.executable, "-S", "-E", str(Path(testing.__file__).with_name("claude_program.py")), behaviour]
    return Agent("program", agent_type="claude-code", model="", options={"command": command}, **more)


def notes(message: Any) -> list[str]:
    return [part["data"]["text"] for part in message.parts if part["type"] == "data-note"]


async def test_the_fallback_agent_continues_where_the_first_one_stopped(stage: Any) -> None:
    script = [Reply(text="I look.", tool_calls=[ToolCall("shell", {"command": "echo four"})]), REFUSED, Reply(text="There are four.")]
    async with stage(script, agents={"default": FIRST, "second": SECOND}) as on:
        run, message = await on.ask("count")
        assert (run.status, run.agent, run.error) == ("finished", "second", None)
        assert text_of(message.parts) == "I look.There are four." and message.metadata["agent"] == "second"
        (note,) = notes(message)
        assert "usage limit reached" in note and note.endswith("The agent second continues.")
        system, *_, output = (str(part["content"]) for part in on.server.requests[-1].json["messages"])
        assert "You are the second." in system and "four" in output, "the work of the first agent is sent to the second"
        assert [tool_name(part) for part in message.parts if part["type"].startswith("tool-")] == ["shell"], "nothing runs twice"
        conversation = await on.engine.store.conversations.get(run.conversation)
        assert conversation.agent == "default", "the next prompt starts with the first one"
        repeated = await rerun(on.engine.runtime, on.engine.store.of("local"), conversation, run)
        assert (repeated.ran, repeated.why) == (False, "several agents worked on it")
        kinds = [kind for kind in on.kinds() if kind in ("start", "start-step", "finish-step", "finish")]
        assert kinds == ["start", *["start-step", "finish-step"] * 3, "finish"]


async def test_each_agent_gets_a_run_once(stage: Any) -> None:
    async with stage([REFUSED, REFUSED, REFUSED], agents={"default": FIRST, "second": SECOND}) as on:
        run, message = await on.ask("count")
        assert (run.status, run.agent, len(on.server.requests), len(notes(message))) == ("failed", "second", 2, 1)
        assert run.error.kind == "rate_limit"


async def test_models_are_tried_before_another_agent(stage: Any) -> None:
    agents = {"default": Agent(fallback=("spare@mine", "second")), "second": SECOND}
    async with stage([REFUSED, Reply(text="Spare.")], agents=agents) as on:
        run, _ = await on.ask("count")
        assert (run.status, run.agent, run.model) == ("finished", "default", "spare@mine")


@pytest.mark.parametrize(
    ("refusal", "agent"),
    [
        (Reply(status=402, error="Insufficient Balance"), "second"),
        (Reply(status=400, error="Your credit balance is too low"), "second"),
        (Reply(status=400, error="no such thing"), "default"),
        (Reply(status=401, error="bad key"), "default"),
    ],
)
async def test_only_a_used_up_account_hands_over(stage: Any, refusal: Reply, agent: str) -> None:
    async with stage([refusal, Reply(text="Done.")], agents={"default": FIRST, "second": SECOND}) as on:
        run, _ = await on.ask("count")
        assert run.agent == agent and (run.status == "finished") == (agent == "second")


async def test_a_run_waits_only_if_no_agent_is_left(stage: Any) -> None:
    agents = {"default": FIRST, "second": Agent("second")}
    async with stage([REFUSED, REFUSED], agents=agents, limits=Limits(wait_for_reset=10_000)) as on:
        submitted = await on.submit("count")
        with anyio.fail_after(60):
            while (run := await on.engine.store.records.run(submitted.run.id)).status == "running":
                await anyio.sleep(0.01)
        assert (run.status, run.awaits, run.agent) == ("waiting", "time", "second")
        await on.engine.runs.cancel(run.id)
        assert (await on.engine.runs.wait(run.id)).status == "cancelled"


@pytest.mark.parametrize("fallback", [("nobody",), ("default",), ("unusable",)])
async def test_an_agent_that_is_not_usable_is_left_out(stage: Any, fallback: tuple[str, ...]) -> None:
    unusable = Agent("unusable", agent_type="claude-code", options={"command": ["/nowhere/at/all"]})
    agents = {"default": Agent(fallback=(*fallback, "second")), "unusable": unusable, "second": SECOND}
    if fallback == ("nobody",):
        agents["default"] = Agent(fallback=("second",), tools=())
        agents["second"] = Agent("second", agent_type="vanished")
    async with stage([REFUSED, Reply(text="Done.")], agents=agents) as on:
        run, _ = await on.ask("count")
        expected = ("failed", "default") if fallback == ("nobody",) else ("finished", "second")
        assert (run.status, run.agent) == expected


async def test_the_hooks_of_a_run_run_once(stage: Any) -> None:
    hook = RunHook("shell", {"command": "echo hook >> count"})
    agents = {"default": FIRST, "second": Agent("second", hooks=RunHooks((hook,), (hook,)))}
    agents["default"] = Agent(fallback=("second",), hooks=RunHooks((hook,), (hook,)))
    async with stage([REFUSED, Reply(text="Done.")], agents=agents) as on:
        run, _ = await on.ask("count")
        assert run.status == "finished" and (on.directory / "count").read_text() == "hook\n" * 2


async def test_an_outside_agent_is_continued_by_moots_own_loop(stage: Any) -> None:
    agents = {"default": Agent(), "program": outside("limited", fallback=("default",))}
    async with stage([Reply(text="Three.")], agents=agents) as on:
        run, message = await on.ask("count", agent="program")
        assert (run.status, run.agent, run.agent_type, run.agent_session_id) == ("finished", "default", "moot", None)
        assert text_of(message.parts) == "I have counted to two.Three."
        assert "I have counted to two." in str(on.server.requests[0].json["messages"])
        position = locate(await on.engine.store.log.read(run.conversation, run=run.id))
        assert position.step == 3 and position.finished


async def test_an_outside_agent_continues_with_the_work_of_moots_own_loop(stage: Any) -> None:
    script = [Reply(text="I look.", tool_calls=[ToolCall("shell", {"command": "echo four"})]), REFUSED]
    async with stage(script, agents={"default": Agent(fallback=("program",)), "program": outside("answer")}) as on:
        run, message = await on.ask("count")
        assert (run.status, run.agent, run.agent_type) == ("finished", "program", "claude-code")
        assert text_of(message.parts) == "I look.Hello."
        events = await on.engine.store.log.read(run.conversation, run=run.id)
        (sent,) = [event.raw for event in events if event.raw is not None and b'"type":"user"' in event.raw]
        assert b"count" in sent and b"Continue from there" in sent and b"[called shell" in sent and b"four" in sent
        assert message.metadata["agent_type"] == "claude-code"


async def test_a_user_without_a_folder_gets_no_program(stage: Any) -> None:
    async with stage([REFUSED], agents={"default": Agent(fallback=("program",)), "program": outside("answer")}) as on:
        mara = (await on.engine.store.tokens.user("mara")).id
        run, _ = await on.ask("count", user=mara)
        assert (run.status, run.agent) == ("failed", "default")


@pytest.fixture
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([REFUSED, Reply(text="Done by the second.", times=0)]) as server:
        yield server


def test_a_killed_run_continues_with_the_second_agent_and_says_so(moot: MootProcess) -> None:
    config = moot.home / "config.yaml"
    config.write_text(config.read_text() + "\nagents: {default: {fallback: [second]}, second: {description: Helps}}\n")
    moot.more.update({"MOOT_TESTING": "1", "MOOT_CRASH_AT": "run.handed"})
    assert moot.run("run", "count").returncode == -9
    del moot.more["MOOT_CRASH_AT"]
    (conversation,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    ended = moot.run("chat", "resume", conversation["id"])
    assert ended.returncode == 0 and b"Done by the second." in ended.stdout, ended.stderr
    assert b"continues for" not in ended.stderr, "it is said once, in the answer"
    assert b"The agent second continues." in moot.run("chat", "show", conversation["id"]).stdout
    assert moot.run("verify", "--all").returncode == 0
