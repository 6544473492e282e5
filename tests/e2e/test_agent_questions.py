"""Questions of an outside agent: policy, an answer, no answer, a late answer; meanwhile the run waits and keeps its owner."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from moot.config.settings import Permissions, Rule
from moot.errors import Busy, FenceLost, UsageError
from moot.runtime.journal import worked
from moot.runtime.leg import Leg, events_of
from moot.types.agent import Agent
from moot.types.approval import Answer, Approval, Option, OutsideAnswer, OutsideCall
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.run import Run, RunRequest
from moot.types.store import Submission

pytestmark = pytest.mark.anyio

OPTIONS = (
    Option("yes", "Yes, proceed", "allow_once"),
    Option("session", "Yes, and don't ask again", "allow_always"),
    Option("stop", "No", "reject_once"),
)
CALL = OutsideCall("call_1", "Bash", "ls -1", b'{"command":"ls -1"}', frozenset({"execute"}), "ls -1", OPTIONS, like="shell")


async def leg_of(on: Any, settings: dict[str, Any] | None = None) -> Leg:
    """A run of this process, in the middle of a call."""
    store = on.engine.store
    conversation = Conversation(new_id(), agent_type="outside", directory=str(on.directory))
    run = Run(new_id(), conversation.id, new_id(), agent_type="outside", settings=settings or {})
    user = Message(new_id(), "user", (text_part("go"),))
    accepted = await store.records.submit(Submission(run, conversation, user, owner="this one"))
    assert accepted.fence is not None
    request = RunRequest(accepted.run, accepted.conversation, Agent(agent_type="outside"), run.settings)
    message = await store.conversations.message(run.message)
    leg = Leg(on.engine.runtime, request, accepted.fence, message, await events_of(store, accepted.fence))
    call = {"type": "tool-input-available", "toolCallId": "call_1", "toolName": "Bash", "input": {"command": "ls -1"}, "dynamic": True}
    await leg.append(Event("chunks", ({"type": "start", "messageId": run.message}, call), phase="start", key="run"))
    return leg


async def opened(on: Any, leg: Leg, count: int = 1) -> list[Approval]:
    with anyio.fail_after(60):
        while len(found := await on.engine.store.records.approvals(run=leg.fence.run)) < count:
            await anyio.sleep(0.005)
    return found


async def status(on: Any, leg: Leg) -> str:
    return (await on.engine.store.records.run(leg.fence.run)).status


async def asked(on: Any, leg: Leg, answer: Answer, call: OutsideCall = CALL) -> OutsideAnswer:
    """Decide the call with this answer of a user."""
    found: list[OutsideAnswer] = []

    async def ask() -> None:
        found.append(await leg.decide(call))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        (approval,) = await opened(on, leg)
        await on.engine.runs.answer(approval.id, answer)
    return found[0]


async def test_decisions_by_rules_and_modes_need_no_question(stage: Any) -> None:
    rules = (Rule("shell", "deny", "rm *"), Rule("Bash", "allow", "ls *"))
    async with stage([], permissions=Permissions(mode="ask", rules=rules)) as on:
        leg = await leg_of(on)
        assert await leg.decide(CALL) == OutsideAnswer(True, OPTIONS[0], "the rule Bash 'ls *' says allow")
        denied = await leg.decide(OutsideCall("call_1", "Bash", "", b"{}", frozenset({"execute"}), "rm -rf x", OPTIONS, like="shell"))
        assert (denied.approved, denied.option, denied.by) == (False, OPTIONS[2], "policy")
        assert denied.reason == "Not allowed: the rule shell 'rm *' says deny."
        assert await on.engine.store.records.approvals(run=leg.fence.run, open_only=False) == []
        rulings = [event.body for event in await events_of(on.engine.store, leg.fence) if event.kind == "meta"]
        assert [body["ruling"] for body in rulings] == ["allow", "deny"]  # type: ignore[index, call-overload]


@pytest.mark.parametrize(("mode", "approved"), [("auto", True), ("plan", False), ("edits", True)])
async def test_modes_apply_to_calls_of_outside_agents(stage: Any, mode: str, approved: bool) -> None:
    async with stage([], permissions=Permissions(mode=mode)) as on:  # type: ignore[arg-type]
        effects = frozenset({"write"}) if mode == "edits" else frozenset({"execute"})
        leg = await leg_of(on)
        assert (await leg.decide(OutsideCall("call_1", "Edit", "", b"{}", effects, "a.txt", OPTIONS))).approved is approved  # type: ignore[arg-type]


async def test_the_run_waits_for_the_answer_and_continues(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)
        found: list[OutsideAnswer] = []

        async def ask() -> None:
            found.append(await leg.decide(CALL))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            (approval,) = await opened(on, leg)
            run = await on.engine.store.records.run(leg.fence.run)
            assert (run.status, run.owner, run.held) == ("waiting", "this one", True)
            assert approval.options == OPTIONS and approval.outside == CALL and approval.tool_call == "call_1"
            await leg.append(Event("meta", body={"it": "still has something to say"}))
            with pytest.raises(Busy, match="no other process can continue it"):
                await on.engine.store.records.claim(run.id, "somebody", statuses=frozenset({"waiting"}))
            await on.engine.runs.answer(approval.id, Answer(True, "session"))
            assert await status(on, leg) == "running", "it is running as soon as the answer is stored"
        assert found == [OutsideAnswer(True, OPTIONS[1], "", "user")]
        stored = await on.engine.store.records.approval(approval.id)
        assert stored.used_at is not None
        (part,) = [part for part in leg.message().parts if part["type"] == "dynamic-tool"]
        assert part["approval"]["approved"] is True  # type: ignore[index, call-overload]


async def test_a_denial_is_sent_with_its_reason_and_a_reject_option(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        said = await asked(on, await leg_of(on), Answer(False, reason="not here"))
        assert said == OutsideAnswer(False, OPTIONS[2], "not here", "user")


async def test_a_grant_for_the_conversation_is_stored_by_moot(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)
        said = await asked(on, leg, Answer(True, "conversation"))
        assert said.option == OPTIONS[0], "the agent is told of this one call, and asks again"
        assert (await leg.decide(CALL)).reason == "allowed in this conversation: ls -1"


async def test_an_answer_the_agent_rejects_keeps_the_question_open(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)
        async with anyio.create_task_group() as group:
            group.start_soon(leg.decide, CALL)
            (approval,) = await opened(on, leg)
            with pytest.raises(UsageError, match="does not offer the answer 'perhaps'"):
                await on.engine.runs.answer(approval.id, Answer(True, "perhaps"))
            with pytest.raises(UsageError, match="does not accept edited arguments"):
                await on.engine.runs.answer(approval.id, Answer(True, arguments=b'{"command":"id"}'))
            assert len(await opened(on, leg)) == 1
            group.cancel_scope.cancel()


async def test_the_run_waits_for_all_answers(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)
        async with anyio.create_task_group() as group:
            group.start_soon(leg.decide, CALL)
            group.start_soon(leg.decide, CALL)
            first, second = await opened(on, leg, 2)
            await on.engine.runs.answer(first.id, Answer(True))
            assert await status(on, leg) == "waiting"
            await on.engine.runs.answer(second.id, Answer(False))
            assert await status(on, leg) == "running"


async def test_without_an_approver_the_call_is_denied(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on, {"unattended": "deny"})
        said = await leg.decide(CALL)
        assert (said.approved, said.option) == (False, OPTIONS[2])
        assert "no one is available" in said.reason


async def test_an_unanswered_question_is_denied_after_its_timeout(stage: Any) -> None:
    async with stage([], permissions=Permissions(mode="ask", timeout=0.05)) as on:
        leg = await leg_of(on)
        with anyio.fail_after(60):
            said = await leg.decide(CALL)
        assert (said.approved, said.reason, said.by) == (False, "No one answered in time.", "moot")
        assert await status(on, leg) == "running"


async def test_an_interrupted_wait_closes_its_question(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)
        async with anyio.create_task_group() as group:
            group.start_soon(leg.decide, CALL)
            (approval,) = await opened(on, leg)
            group.cancel_scope.cancel()
        assert await on.engine.store.records.approvals(run=leg.fence.run) == []
        assert await status(on, leg) == "running"
        with pytest.raises(Busy, match="has already been"):
            await on.engine.runs.answer(approval.id, Answer(True))


async def test_waiting_for_an_answer_does_not_count_as_run_time(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)
        with leg.deadline.limit(0.2) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(leg.decide, CALL)
                (approval,) = await opened(on, leg)
                await anyio.sleep(0.3)
                await on.engine.runs.answer(approval.id, Answer(True))
        assert not scope.cancelled_caught
        assert worked(await events_of(on.engine.store, leg.fence)) < 0.3


async def test_questions_of_a_dead_process_are_denied_and_its_run_is_interrupted(stage: Any, tmp_path: Path) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)

        async def decide_without_owner() -> None:
            with suppress(FenceLost):  # it may still wait for the decision when its run is interrupted
                await leg.decide(CALL)

        async with anyio.create_task_group() as group:
            group.start_soon(decide_without_owner)
            (approval,) = await opened(on, leg)
            # its owner has no lock, as after a kill
            assert (await on.engine.runs.current(leg.fence.run)).status == "interrupted"
            stored = await on.engine.store.records.approval(approval.id)
            assert (stored.answer.approved, stored.answer.reason) == (False, "The agent that asked is gone.")
            group.cancel_scope.cancel()


async def test_a_session_is_found_by_branch_and_lists_unseen_messages(stage: Any) -> None:
    async with stage([]) as on:
        leg = await leg_of(on)
        assert await leg.session() is None
        await leg.set_session("session-1")
        assert (await on.engine.store.records.run(leg.fence.run)).agent_session_id == "session-1"
