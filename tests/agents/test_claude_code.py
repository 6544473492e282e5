from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agents.agent_runs import NO, YES, Driven, calls, driven, texts
from agents.models import Call, Script, ScriptedModels, Step
from agents.programs import claude, claude_environment
from conformance.services import children
from e2e.cli_process import MootProcess
from moot.types.agent import Agent
from moot.types.approval import Answer, Approval
from moot.types.message import TOOL_DONE

pytestmark = pytest.mark.anyio


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def bash(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "a command"})


SCRIPT: Script = {
    "say hello": [Step(reasoning="They greet me.", text="Hello there.")],
    "say it again": [Step(text="Hello once more.")],
    "go another way": [Step(text="Another way.")],
    "make a file": [Step(reasoning="I will make it.", text="I make it.", calls=[bash("touch made.txt")]), Step(text="It is made.")],
    "count for long": [Step(text="word " * 2000, delay=20, piece=5)],
    "run for long": [Step(text="It takes a while.", calls=[bash("for i in $(seq 600); do sleep 0.1; done")]), Step(text="It is over.")],
    "try hard": [Step(text="After all.", status=529, error="Overloaded", refusals=1)],
    "never mind": [Step(status=529, error="Overloaded")],
    "ask me": [
        Step(
            calls=[
                Call(
                    "AskUserQuestion",
                    {
                        "questions": [
                            {
                                "question": "Which colour?",
                                "header": "Colour",
                                "multiSelect": False,
                                "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
                            }
                        ]
                    },
                )
            ]
        ),
        Step(text="I see."),
    ],
    "delegate it": [
        Step(
            text="I delegate.", calls=[Call("Task", {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"})]
        ),
        Step(text="It is done."),
    ],
    "look around": [Step(text="Looking.", calls=[bash("ls")]), Step(text="I have looked.")],
    "list with your own": [Step(calls=[Call("mcp__moot__list_files", {"path": "."})]), Step(text="Listed.")],
    "crash": [Step(text="word " * 2000, delay=20, piece=5)],
}


@pytest.fixture(scope="module")
def models(serve_models: Callable[[Script], ScriptedModels]) -> ScriptedModels:
    claude()
    return serve_models(SCRIPT)


@pytest.fixture
def stage(models: ScriptedModels, tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(*, mode: Any = "ask", home: Path | None = None, **agent: Any) -> AsyncGenerator[Driven, None]:
        environment = {**claude_environment(models.url), "HOME": str(tmp_path), "CLAUDE_CODE_MAX_RETRIES": "1"}
        options = {"env": {name: value for name, value in environment.items() if name != "PATH"}}
        agents = {"claude": Agent("claude", agent_type="claude-code", model="", options=options, **agent)}
        async with driven(home or tmp_path / "moot", tmp_path / "work", agents, mode=mode) as stage:
            yield stage

    return opened


async def test_an_answer_has_reasoning_usage_and_cost(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        run, message = await on.ask("say hello", agent="claude")
        assert run.status == "finished", run.error
        assert [part["type"] for part in message.parts] == ["step-start", "reasoning", "text"]
        assert texts(message) == "Hello there."
        assert (run.usage.input, run.usage.output) == (110, 20)
        assert run.cost and run.agent_session_id
        assert message.metadata["agent"] == "claude" and str(message.metadata["model"]).startswith("claude-")


async def test_a_call_runs_only_after_its_approval(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        made = on.directory / "made.txt"
        asked: list[Approval] = []

        def answer(approval: Approval) -> Answer:
            assert not made.exists()
            asked.append(approval)
            return YES

        run, message = await on.ask("make a file", answer, agent="claude")
        assert run.status == "finished" and made.exists()
        assert json.loads(asked[0].arguments)["command"] == "touch made.txt"
        labels = {option.kind: option.label for option in asked[0].options}
        assert {"allow_once", "allow_always", "reject_once"} <= labels.keys()
        (call,) = calls(message)
        assert (call["toolName"], call["state"]) == ("Bash", "output-available")
        assert "It is made." in texts(message)


async def test_suggested_permissions_apply_to_the_run_only(stage: Callable[..., Any], tmp_path: Path) -> None:
    async with stage() as on:

        def answer(approval: Approval) -> Answer:
            wanted = next(option for option in approval.options if "touch" in option.label)
            return Answer(True, wanted.id)

        run, _ = await on.ask("make a file", answer, agent="claude")
        assert run.status == "finished" and (on.directory / "made.txt").exists()
        sent = [json.loads(line) for line in await on.raw(run, sent=True)]
        updates = [update for line in sent for update in line.get("response", {}).get("response", {}).get("updatedPermissions", [])]
        assert [update["destination"] for update in updates] == ["session"]
        assert not [path for path in (*on.directory.rglob("*"), *(tmp_path / ".claude").glob("settings*")) if "settings" in path.name]


async def test_a_denied_call_is_not_executed(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        run, message = await on.ask("make a file", NO, agent="claude")
        assert run.status == "finished"
        assert not (on.directory / "made.txt").exists()
        (call,) = calls(message)
        assert call["state"] == "output-denied" and call["approval"]["reason"] == "not now"
        assert "not now" in b"".join(await on.raw(run)).decode()


async def test_auto_mode_needs_no_approval_and_plan_mode_denies_changes(stage: Callable[..., Any]) -> None:
    async with stage(mode="auto") as on:
        run, _ = await on.ask("make a file", agent="claude")
        assert run.status == "finished" and (on.directory / "made.txt").exists()
        (on.directory / "made.txt").unlink()
        run, message = await on.ask("make a file", agent="claude", mode="plan")
        assert run.status == "finished" and not (on.directory / "made.txt").exists()
        assert calls(message)[0]["state"] in ("output-error", "output-denied")


async def test_a_question_of_the_agent_is_shown_to_the_user(stage: Callable[..., Any]) -> None:
    async with stage() as on:

        def answer(approval: Approval) -> Answer:
            assert isinstance(approval.questions, list)
            question: Any = approval.questions[0]
            assert (question["text"], [option["label"] for option in question["options"]]) == ("Which colour?", ["Red", "Blue"])
            return Answer(True, value=[["Blue"]])

        run, message = await on.ask("ask me", answer, agent="claude")
        assert run.status == "finished"
        assert '"Which colour?"="Blue"' in calls(message)[0]["output"]


async def test_sub_agent_calls_reference_their_parent_call(stage: Callable[..., Any]) -> None:
    async with stage(mode="auto") as on:
        run, message = await on.ask("delegate it", agent="claude")
        assert run.status == "finished"
        task, inner = calls(message)
        assert (task["toolName"], inner["toolName"]) == ("Task", "Bash")
        assert inner["toolMetadata"]["moot"]["parentToolCallId"] == task["toolCallId"]
        assert "Looking" not in texts(message)


async def test_tools_of_moot_are_handed_in_and_decided_by_its_rules(stage: Callable[..., Any]) -> None:
    async with stage(tools=("list_files",)) as on:
        (on.directory / "here.txt").write_text("x")
        run, message = await on.ask("list with your own", agent="claude")
        assert run.status == "finished", run.error
        (call,) = calls(message)
        assert call["toolName"] == "mcp__moot__list_files" and "here.txt" in call["output"]


async def test_instructions_model_images_and_limits_are_passed_on(stage: Callable[..., Any], models: ScriptedModels) -> None:
    picture = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PIXEL}"}
    async with stage(mode="auto", instructions="Speak like a sailor.", max_steps=1) as on:
        run, message = await on.ask("make a file", agent="claude", model="claude-haiku-4-5", more=(picture,))
        assert run.status == "failed" and run.error is not None
        assert (run.error.kind, run.error.fix) == ("limit", "raise it with max_steps")
        assert calls(message)[0]["state"] == "output-available"
        sent = json.loads((await on.raw(run, sent=True))[1])["message"]["content"]
        assert [block["type"] for block in sent] == ["image", "text"] and sent[0]["source"]["data"] == PIXEL
    asked = models.asked()[-1]
    assert "Speak like a sailor." in json.dumps(asked["messages"]) and asked["model"] == "claude-haiku-4-5"


@pytest.mark.parametrize("prompt", ["count for long", "run for long"])
async def test_cancelling_takes_less_than_a_second_and_leaves_no_process(stage: Callable[..., Any], prompt: str) -> None:
    async with stage(mode="auto") as on:
        before = children()
        run = await on.begin(prompt, agent="claude")
        await on.says(run, "word word" if prompt.startswith("count") else "a while")
        began = anyio.current_time()
        await on.engine.runs.cancel(run.id)
        ended, message = await on.ended(run)
        assert ended.status == "cancelled" and anyio.current_time() - began < 5
        assert not children() - before
        if prompt.startswith("count"):
            assert b'"subtype":"interrupt"' in b"".join(await on.raw(run, sent=True))
        assert all(call["state"] in TOOL_DONE for call in calls(message))


async def test_a_prompt_resumes_the_session_and_a_branch_forks_it(stage: Callable[..., Any], models: ScriptedModels) -> None:
    async with stage() as on:
        first, _ = await on.ask("say hello", agent="claude")
    async with stage() as on:
        second, message = await on.ask("say it again", conversation=first.conversation)
        assert second.agent_session_id == first.agent_session_id
        assert texts(message) == "Hello once more."
        assert second.cost and first.cost and second.cost <= first.cost, "a session's total is no cost of a run"
        third, message = await on.ask("go another way", conversation=first.conversation, parent=first.message)
        assert third.status == "finished" and texts(message) == "Another way."
        assert third.agent_session_id not in (None, first.agent_session_id)
    said = json.dumps(models.asked()[-1]["messages"])
    assert "say hello" in said and "Hello there." in said and "say it again" not in said


async def test_a_lost_session_is_recreated_with_the_history(stage: Callable[..., Any], tmp_path: Path) -> None:
    async with stage() as on:
        first, _ = await on.ask("say hello", agent="claude")
        for path in (tmp_path / ".claude" / "projects").rglob("*.jsonl"):
            path.unlink()
        second, message = await on.ask("say it again", conversation=first.conversation)
        assert (second.status, texts(message)) == ("finished", "Hello once more.")
        assert second.agent_session_id != first.agent_session_id
        assert "Hello there." in json.loads((await on.raw(second, sent=True))[-1])["message"]["content"]


async def test_a_rejected_model_call_is_retried_and_reported(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        run, message = await on.ask("try hard", agent="claude")
        assert run.status == "finished" and texts(message) == "After all."
        assert message.parts[0]["type"] == "data-note"
        run, _ = await on.ask("never mind", agent="claude")
        assert run.status == "failed" and run.error is not None
        assert run.error.kind == "overloaded" and "529" in run.error.message


async def test_a_crash_keeps_the_partial_answer_and_the_next_prompt_works(stage: Callable[..., Any]) -> None:
    async with stage() as on:
        run = await on.begin("crash", agent="claude")
        await on.says(run, "word word")
        note = next(event for event in await on.events(run) if isinstance(event.body, dict) and "pgid" in event.body)
        assert isinstance(note.body, dict)
        os.killpg(int(str(note.body["pgid"])), signal.SIGKILL)
        ended, message = await on.ended(run)
        assert ended.status == "failed" and ended.error is not None and "signal 9" in ended.error.message
        assert "word word" in texts(message)
        run, message = await on.ask("say hello", conversation=run.conversation)
        assert (run.status, texts(message)) == ("finished", "Hello there.")


# ── the real moot ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def moot(moot_with: Callable[..., MootProcess], models: ScriptedModels) -> MootProcess:
    return moot_with("", claude_environment(models.url))


def test_the_agent_runs_by_name_without_configuration(moot: MootProcess) -> None:
    ended = moot.run("run", "-a", "claude-code", "say hello")
    assert (ended.returncode, ended.stdout) == (0, b"Hello there.\n"), ended.stderr
    ended = moot.run("run", "-a", "claude-code", "--mode", "auto", "make a file")
    assert ended.returncode == 0 and (moot.work / "made.txt").exists(), ended.stderr


async def test_a_killed_moot_keeps_everything_and_resumes_the_session(moot: MootProcess) -> None:
    process = moot.start("run", "-a", "claude-code", "count for long")
    assert process.stdout is not None
    said = process.stdout.read(50)
    process.kill()
    process.wait()
    ended = moot.run("chat", "resume", "1")
    assert ended.returncode != 0 and b"was interrupted" in ended.stderr
    shown = moot.run("chat", "show", "1")
    assert said.strip() in shown.stdout
    ended = moot.run("chat", "continue", "1", "say hello")
    assert (ended.returncode, ended.stdout) == (0, b"Hello there.\n"), ended.stderr
