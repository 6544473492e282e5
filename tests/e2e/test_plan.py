"""Mode plan: the agent shows its plan, and the person's answer decides what happens to it."""

from __future__ import annotations

from typing import Any

import pytest

from moot.commands import CommandContext
from moot.commands.prompts import PlanCommand
from moot.errors import UsageError
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.canonical import dumps
from moot.types.message import is_tool

pytestmark = pytest.mark.anyio

PLAN = Reply(tool_calls=[ToolCall("exit_plan", {"plan": "# Plan\n1. Write x"})])
WRITE = Reply(tool_calls=[ToolCall("write_file", {"path": "x", "content": "y"})])
DONE = Reply(text="Done.", times=0)


def says(*answers: str) -> Any:
    """Answer the questions in this order, and allow every call."""
    left = list(answers)

    def answer(asked: dict[str, Any]) -> Answer:
        return Answer(approved=True, value=[[left.pop(0)]]) if "questions" in asked else Answer(approved=True)

    return answer


def outputs(message: Any, tool: str = "exit_plan") -> list[str]:
    return [str(part.get("output") or part.get("errorText")) for part in message.parts if is_tool(part) and part["type"] == f"tool-{tool}"]


async def test_an_accepted_plan_is_carried_out_and_changes_need_approval(stage: Any) -> None:
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> Answer:
        asked.append("plan" if "questions" in request else "call")
        return says("Accept")(request)

    async with stage([PLAN, WRITE, DONE]) as on:
        run, message = await on.ask("write x", answer, mode="plan")
        assert (run.status, asked, (on.directory / "x").read_text()) == ("finished", ["plan", "call"], "y")
        assert "accepted the plan" in outputs(message)[0]
        conversation = await on.engine.store.conversations.get(run.conversation)
        assert conversation.own_settings.mode == "ask"


async def test_edits_are_allowed_with_the_plan_also_if_the_mode_is_that_of_the_conversation(stage: Any) -> None:
    async with stage([Reply(text="Hi."), PLAN, WRITE, DONE]) as on:
        first, _ = await on.ask("hello")
        context = CommandContext(on.engine, str(on.directory), first.conversation)
        await PlanCommand().run(context, "")
        run, _ = await on.ask("write x", says("Accept and allow edits"), conversation=first.conversation)
        assert (run.status, (on.directory / "x").read_text()) == ("finished", "y")
        assert (await on.engine.store.conversations.get(run.conversation)).own_settings.mode == "edits"


async def test_words_ask_for_another_plan_and_a_rejected_one_changes_nothing(stage: Any) -> None:
    second = Reply(tool_calls=[ToolCall("exit_plan", {"plan": "Write z"})])
    async with stage([PLAN, second, WRITE, DONE]) as on:
        run, message = await on.ask("write x", says("Use z instead", "Reject"), mode="plan")
        first, rejected = outputs(message)
        assert first.endswith("call exit_plan again: Use z instead") and "rejected the plan" in rejected
        assert run.status == "finished" and not (on.directory / "x").exists()
        assert "mode plan" in outputs(message, "write_file")[0]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (
            ["Accept"],
            "The user accepted the plan. The mode is now ask. Carry it out. The user changed the plan. It is now:\n\n# Plan\n1. Write z",
        ),
        (["Revise", "and say why"], "call exit_plan again: and say why The user changed the plan."),
    ],
)
async def test_the_model_gets_the_plan_as_the_user_has_changed_it(stage: Any, answers: list[str], expected: str) -> None:
    def answer(asked: dict[str, Any]) -> Answer:
        assert asked["questions"][0]["edits"] == "plan"
        return Answer(approved=True, value=[[*answers]], arguments=dumps({"plan": "# Plan\n1. Write z\n"}))

    async with stage([PLAN, DONE]) as on:
        run, message = await on.ask("write x", answer, mode="plan")
        assert run.status == "finished" and expected in outputs(message)[0]
        assert "1. Write z" in str(on.server.requests[-1].json["messages"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (b'{"plan": " "}', "non-empty string"),
        (b'{"plan": 1}', "non-empty string"),
        (b'{"other": "x"}', "whose only key is 'plan'"),
        (b"[]", "whose only key is 'plan'"),
        (b"{", "not valid JSON"),
        (dumps({"plan": "x" * 50_001}), "more than 50,000 characters"),
    ],
)
async def test_a_changed_plan_must_be_text(stage: Any, arguments: bytes, problem: str) -> None:
    async with stage([PLAN, DONE]) as on:
        submitted = await on.submit("write x", mode="plan")
        await on.engine.runs.wait(submitted.run.id)
        (asked,) = await on.engine.store.records.approvals()
        with pytest.raises(UsageError, match=problem):
            await on.engine.runs.answer(asked.id, Answer(True, value=[["Accept"]], arguments=arguments))
        await on.engine.runs.answer(asked.id, Answer(True, value=[["Accept"]]))
        assert (await on.engine.runs.wait(submitted.run.id)).status == "finished"


@pytest.mark.parametrize(
    ("more", "agent"),
    [({"mode": "ask"}, Agent()), ({"mode": "plan", "settings": {"unattended": "deny"}}, Agent()), ({"mode": "plan"}, Agent(role="read"))],
)
async def test_the_tool_is_offered_only_in_mode_plan_to_agents_that_can_carry_out_a_plan(stage: Any, more: Any, agent: Agent) -> None:
    async with stage([DONE], agents={"default": agent}) as on:
        await on.ask("hi", **more)
        assert "exit_plan" not in str(on.server.requests[-1].json.get("tools"))
        await on.ask("hi", mode="plan")
        assert ("exit_plan" in str(on.server.requests[-1].json.get("tools"))) is (agent.role != "read")
