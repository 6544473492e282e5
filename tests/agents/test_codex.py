from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents.agent_runs import NO, YES, Driven, calls, driven, texts
from agents.models import Call, Script, ScriptedModels, Step
from agents.programs import codex, codex_environment
from agents.relay import Relay
from conformance.services import children
from e2e.cli_process import MootProcess
from moot.types.agent import Agent
from moot.types.approval import Answer, Approval

pytestmark = pytest.mark.anyio


def shell(command: str, **more: Any) -> Call:
    return Call("exec_command", {"cmd": command, **more})


def plan(*status: str) -> Call:
    return Call("update_plan", {"plan": [{"step": f"Step {number}", "status": status} for number, status in enumerate(status, 1)]})


PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\nEOF"
SCRIPT: Script = {
    "say hello": [Step(reasoning="They greet me.", text="Hello there.")],
    "say it again": [Step(text="Hello once more.")],
    "go another way": [Step(text="Another way.")],
    "run a command": [Step(reasoning="I will run it.", text="I run it.", calls=[shell("touch ran.txt; echo done")]), Step(text="It ran.")],
    "make a file": [Step(text="I make it.", calls=[shell(PATCH)]), Step(text="It is made.")],
    "run for long": [Step(text="It takes a while.", calls=[shell("sleep 60", yield_time_ms=30000)]), Step(text="It is over.")],
    "count for long": [Step(text="word " * 2000, delay=20, piece=5)],
    "make a plan": [
        Step(text="I plan.", calls=[plan("in_progress", "pending")]),
        Step(calls=[plan("completed", "in_progress")]),
        Step(text="Planned."),
    ],
    "have it run": [
        Step(text="Another one does it.", calls=[Call("spawn_agent", {"message": "run a command"})]),
        Step(calls=[shell("sleep 4", yield_time_ms=10000)]),
        Step(text="It was done."),
    ],
    "never mind": [Step(status=400, error="Bad luck")],
}


@pytest.fixture(scope="module")
def models(serve_models: Callable[[Script], ScriptedModels]) -> ScriptedModels:
    codex()
    return serve_models(SCRIPT)


@pytest.fixture
def stage(models: ScriptedModels, tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(*, mode: Any = "ask", url: str = "", args: Sequence[str] = (), **agent: Any) -> AsyncGenerator[Driven, None]:
        options = {
            **options_of(url or models.url, tmp_path),
            "args": [*args],
            "sandbox": "danger-full-access",
        }  # its own sandbox is not available everywhere
        agents = {"codex": Agent("codex", agent_type="codex", options=options, **agent)}
        async with driven(tmp_path / "moot", tmp_path / "work", agents, mode=mode) as stage:
            yield stage

    return opened


def options_of(url: str, home: Path) -> dict[str, Any]:
    environment = codex_environment(url, home, home / "work")
    return {"command": [codex()], "env": {name: value for name, value in {**environment, "HOME": str(home)}.items() if name != "PATH"}}


async def test_an_answer_has_reasoning_and_usage(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        run, message = await on.ask("say hello", agent="codex")
        assert run.status == "finished", run.error
        assert [part["type"] for part in message.parts] == ["step-start", "reasoning", "text"]
        assert texts(message) == "Hello there." and message.parts[1]["text"] == "They greet me."
        assert (run.usage.input, run.usage.output) == (110, 20) and run.agent_session_id
        assert message.metadata["model"] == "gpt-5.2-codex"


async def test_a_command_runs_only_after_its_approval(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        asked: list[Approval] = []

        def answer(approval: Approval) -> Answer:
            assert not (on.directory / "ran.txt").exists()
            asked.append(approval)
            return YES

        run, message = await on.ask("run a command", answer, agent="codex")
        assert run.status == "finished" and (on.directory / "ran.txt").exists()
        assert texts(message) == "I run it.It ran."
        (call,) = calls(message)
        assert (call["toolName"], call["input"], call["output"]) == ("shell", {"command": "touch ran.txt; echo done"}, "done\n")
        (approval,) = asked
        assert {option.kind for option in approval.options} == {"allow_once", "allow_always", "reject_once"}
        assert [part.text for part in approval.parts] == ["touch ran.txt", "echo done"]


async def test_a_denied_command_is_not_run_and_the_answer_continues(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        run, message = await on.ask("run a command", NO, agent="codex")
        assert run.status == "finished" and not (on.directory / "ran.txt").exists()
        assert calls(message)[0]["state"] == "output-denied" and texts(message).endswith("It ran.")


async def test_an_approval_for_the_session_is_not_requested_again(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        asked: list[str] = []

        def answer(approval: Approval) -> Answer:
            asked.append(approval.tool)
            lasting = next(option for option in approval.options if option.kind == "allow_always")
            return Answer(True, lasting.id)

        first, _ = await on.ask("make a file", answer, agent="codex")
        (on.directory / "made.txt").unlink()
        run, _ = await on.ask("make a file", answer, agent="codex", conversation=first.conversation)
        assert run.status == "finished" and set(asked) == {"fileChange"}


async def test_a_file_is_changed_without_a_question_in_the_mode_edits_and_not_at_all_in_plan(stage: Callable[..., Any]) -> None:
    async with stage(mode="edits") as on:
        _, message = await on.ask("make a file", agent="codex")
        assert (on.directory / "made.txt").read_text() == "made\n"
        (call,) = calls(message)
        assert call["toolName"] == "apply_patch" and call["output"].endswith("made.txt")
        (on.directory / "made.txt").unlink()
        _, message = await on.ask("make a file", agent="codex", mode="plan")
        assert not (on.directory / "made.txt").exists() and calls(message)[0]["state"] == "output-denied"


async def test_a_new_process_resumes_the_session_and_an_edit_forks_it(stage: Callable[..., Any], models: ScriptedModels) -> None:
    async with stage() as on:
        first, _ = await on.ask("say hello", agent="codex")
    async with stage() as on:
        second, message = await on.ask("say it again", agent="codex", conversation=first.conversation)
        assert texts(message) == "Hello once more." and second.agent_session_id == first.agent_session_id
        assert (second.usage.input, second.usage.output) == (110, 20), "only what this turn took"
        assert "Hello there." in str(models.requests("/v1/responses")[-1]["body"])
        third, message = await on.ask("go another way", agent="codex", conversation=first.conversation, parent=first.message)
        assert texts(message) == "Another way." and third.agent_session_id != first.agent_session_id
        told = str(models.requests("/v1/responses")[-1]["body"])
        assert "Hello there." in told and "Hello once more." not in told


async def test_the_current_plan_is_shown(stage: Callable[..., Any]) -> None:
    async with stage(args=["-c", "tools.update_plan.enabled=true"]) as on:
        run, message = await on.ask("make a plan", agent="codex")
        assert run.status == "finished" and texts(message) == "I plan.Planned.", run.error
        (shown,) = (part for part in message.parts if part["type"] == "data-plan")
        assert shown["data"] == {"entries": [{"content": "Step 1", "status": "completed"}, {"content": "Step 2", "status": "in_progress"}]}


async def test_sub_agent_text_calls_and_usage_are_attributed(stage: Callable[..., Any], models: ScriptedModels) -> None:
    def named(answer: bytes) -> bytes:
        """The call is in a namespace, which the scripted model does not know."""
        return answer.replace(b'"name":"spawn_agent"', b'"namespace":"multi_agent_v1","name":"spawn_agent"')

    asked: list[str] = []

    def answer(approval: Approval) -> Answer:
        asked.append(approval.parts[0].text)
        return YES

    with Relay(models.url, named) as relay:
        async with stage(url=relay.url) as on:
            run, message = await on.ask("have it run", answer, agent="codex")
            assert run.status == "finished" and (on.directory / "ran.txt").exists(), run.error
    assert sorted(asked) == ["sleep 4", "touch ran.txt"]
    assert texts(message) == "Another one does it.It was done.", "its words are not the answer's"
    words = [part["data"] for part in message.parts if part["type"] == "data-subagent"]
    assert [(data["kind"], data["text"]) for data in words] == [("reasoning", "I will run it."), ("text", "I run it."), ("text", "It ran.")]
    (its,) = {data["thread"] for data in words}
    assert {data["agent"] for data in words} == {"sub-agent 1"}
    ran = next(call for call in calls(message) if call["input"] == {"command": "touch ran.txt; echo done"})
    assert ran["output"] == "done\n" and ran["toolMetadata"]["codex"]["agent"] == its
    assert (run.usage.input, run.usage.output) == (5 * 110, 5 * 20), "three calls of the model and two of its sub-agent"


async def test_a_web_search_by_the_vendor_is_shown_as_a_call(stage: Callable[..., Any], models: ScriptedModels) -> None:
    def searched(answer: bytes) -> bytes:
        """The scripted model has no tools of its own, so the search is added before its text, as the vendor sends it."""
        item = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "tides"}}
        begun = {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        events = b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in (begun, done))
        return answer.replace(b"event: response.output_item.added", events + b"event: response.output_item.added", 1)

    with Relay(models.url, searched) as relay:
        async with stage(url=relay.url) as on:
            run, message = await on.ask("say it again", agent="codex")
    assert run.status == "finished" and texts(message) == "Hello once more.", run.error
    (call,) = calls(message)
    assert (call["toolName"], call["state"], call["input"]["query"]) == ("web_search", "output-available", "tides")


@pytest.mark.parametrize("prompt", ["run for long", "count for long"])
async def test_a_run_stops_within_a_second_and_the_session_can_continue(stage: Callable[..., Any], prompt: str) -> None:
    before = children()
    async with stage(mode="auto") as on:
        run = await on.begin(prompt, agent="codex")
        await on.says(run, "It takes a while." if prompt == "run for long" else "word word")
        began = anyio.current_time()
        await on.engine.runs.cancel(run.id)
        run, message = await on.ended(run)
        assert run.status == "cancelled" and anyio.current_time() - began < 5 and not children() - before
        assert all(call["state"] in ("output-error", "output-available") for call in calls(message))
        after, message = await on.ask("say hello", agent="codex", conversation=run.conversation)
        assert texts(message) == "Hello there." and after.agent_session_id == run.agent_session_id


async def test_a_model_refusal_fails_the_run_with_its_message(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        run, _ = await on.ask("never mind", agent="codex")
        assert run.status == "failed" and "Bad luck" in run.error.message


def test_the_agent_runs_by_name(models: ScriptedModels, moot_with: Callable[..., MootProcess], tmp_path: Path) -> None:
    options = options_of(models.url, tmp_path)
    variables = "".join(f"      {name}: '{value}'\n" for name, value in options["env"].items())
    config = f"agents:\n  codex:\n    agent_type: codex\n    options:\n     command: ['{codex()}']\n     env:\n{variables}"
    moot = moot_with(config)
    ended = moot.run("run", "-a", "codex", "say hello")
    assert (ended.returncode, ended.stdout) == (0, b"Hello there.\n"), ended.stderr
    denied = moot.run("run", "-a", "codex", "run a command")
    assert denied.returncode == 3 and b"denied" in denied.stderr, denied.stderr
