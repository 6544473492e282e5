"""Codex's service with a double of its program: its questions, and every way in which it can fail."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from conformance import services
from moot.agents.codex.service import Codex
from moot.agents.outside.turn import Turn
from moot.config.settings import Permissions, Rule
from moot.convert.agents.codex import CodexAppServer
from moot.errors import UsageError
from moot.runtime.leg import events_of
from moot.testing import codex_program
from moot.testing.script import Reply
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.canonical import dumps, loads_object
from moot.types.event import SENT, Event
from moot.types.ids import exchange_id
from moot.types.message import Message, is_tool, text_of
from moot.types.run import Run

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BEHAVIOURS = sorted(codex_program.BEHAVIOURS)
ASKING = {"ask", "patch", "withdraw"}


def agents(**more: Any) -> dict[str, Agent]:
    command = [*Codex.trials["answer"]["command"]]  # type: ignore[misc]
    made = {name: Agent(name, agent_type="codex", options={"command": [*command[:-1], name], **more}) for name in BEHAVIOURS}
    return {"default": Agent(), **made}


async def check(on: Any, run: Run) -> None:
    await services.check_log(services.Stage(on.engine, on.directory), run)


async def lines(on: Any, run: Run) -> list[tuple[bool, bytes]]:
    log = await services.Stage(on.engine, on.directory).events(run)
    return [(event.body == SENT, event.raw) for event in log if event.kind == "raw" and event.raw]


def said(message: Message) -> str:
    return text_of([part for part in message.parts if part.get("type") == "text"])


def calls(message: Message) -> list[Any]:
    return [part for part in message.parts if is_tool(part)]


async def test_an_answer_is_complete_and_both_directions_are_stored(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        run, message = await on.ask("say it", agent="answer")
        assert (run.status, run.error, said(message)) == ("finished", None, "Hello: say it ")
        assert (run.agent_session_id, run.usage.input, run.usage.output) == (codex_program.THREAD, 10, 5)
        assert message.metadata["context_usage"] == 0.15 and message.metadata["model"] == "double-1"
        await check(on, run)
        sent = [loads_object(line)["method"] for ours, line in await lines(on, run) if ours]
        assert sent == ["initialize", "initialized", "thread/start", "turn/start"]
        assert (await on.engine.store.conversations.get(run.conversation)).model == "", "its model is its own"


async def test_the_next_prompt_continues_the_session(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        first, _ = await on.ask("one", agent="answer")
        run, message = await on.ask("two", agent="answer", conversation=first.conversation)
        resumed = [loads_object(line) for ours, line in await lines(on, run) if ours and b"thread/resume" in line]
        assert resumed[0]["params"]["threadId"] == codex_program.THREAD  # type: ignore[index, call-overload]
        assert said(message) == "Hello: two "


async def test_messages_from_other_agents_are_passed_to_the_session(stage: Any) -> None:
    async with stage([Reply(text="A model's word.")], agents=agents()) as on:
        first, _ = await on.ask("one", agent="answer")
        await on.ask("aside", agent="default", conversation=first.conversation)
        _, message = await on.ask("two", agent="answer", conversation=first.conversation)
        text = said(message)
        assert "User: aside" in text and "A model's word." in text and "one" not in text and text.rstrip().endswith("two")


async def test_a_session_continued_elsewhere_is_forked_at_the_old_position(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        first, answer = await on.ask("one", agent="answer")
        await on.ask("two", agent="answer", conversation=first.conversation)
        run, _ = await on.ask("two, otherwise", agent="answer", conversation=first.conversation, parent=first.message)
        forks = [loads_object(line)["params"] for ours, line in await lines(on, run) if ours and b"thread/fork" in line]
        (step,) = answer.metadata["steps"]  # type: ignore[misc]
        assert forks[0]["lastTurnId"] == step["turn_id"]  # type: ignore[index, call-overload]


async def test_a_lost_session_is_recreated_with_the_whole_history(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        first, _ = await on.ask("one", agent="forget")
        run, message = await on.ask("two", agent="forget", conversation=first.conversation)
        assert run.status == "finished" and "User: one" in said(message)


# ── its questions ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "decision", "state"),
    [
        (Answer(True), '"accept"', "output-available"),
        (Answer(True, "acceptWithExecpolicyAmendment"), '{"acceptWithExecpolicyAmendment": ', "output-available"),
        (Answer(False, reason="no"), '"decline"', "output-denied"),
        (Answer(False, "cancel"), '"cancel"', "output-denied"),
    ],
)
async def test_a_decision_is_sent_in_the_protocols_terms(stage: Any, answer: Answer, decision: str, state: str) -> None:
    async with stage([], agents=agents(), mode="ask") as on:
        run, message = await on.ask("go", lambda chunk: answer, agent="ask")
        assert f"You said {decision}" in said(message)
        (call,) = calls(message)
        assert (call["state"], call["input"], call["approval"]["approved"]) == (state, {"command": "ls -1"}, answer.approved)
        assert (run.status, run.error.kind if run.error else None) == (
            ("failed", "interrupted") if answer.option == "cancel" else ("finished", None)
        )
        (asked,) = await on.engine.store.records.approvals(run=run.id, open_only=False)
        assert [(option.id, option.kind) for option in asked.options] == [
            ("accept", "allow_once"),
            ("acceptWithExecpolicyAmendment", "allow_always"),
            ("decline", "reject_once"),
            ("cancel", "reject_once"),
        ]
        await check(on, run)


async def test_every_file_of_a_change_must_be_allowed(stage: Any) -> None:
    deny = Permissions(mode="auto", rules=(Rule("write_file", "deny", "/work/b.txt"),))
    async with stage([], agents=agents(), permissions=deny) as on:
        _, message = await on.ask("go", agent="patch")
        assert 'You said "decline"' in said(message)
    async with stage([], agents=agents(), mode="edits") as on:
        _, message = await on.ask("go", agent="patch")
        assert 'You said "accept"' in said(message)


async def test_a_withdrawn_question_is_closed(stage: Any) -> None:
    async with stage([], agents=agents(), mode="ask") as on:
        submitted = await on.submit("go", agent="withdraw")
        with anyio.fail_after(60):
            while (await on.engine.store.records.run(submitted.run.id)).status not in ("finished", "failed"):
                await anyio.sleep(0.02)
        assert await on.engine.store.records.approvals(run=submitted.run.id) == []
        run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "finished"
        await check(on, run)


async def test_a_run_that_waits_is_stopped_and_superseded_with_its_process(stage: Any) -> None:
    async with stage([], agents=agents(), mode="ask") as on:
        before = services.children()
        for how in ("cancel", "supersede"):
            submitted = await on.submit("go", agent="ask")
            assert (await on.follow(submitted)).status == "waiting"
            if how == "cancel":
                await on.engine.runs.cancel(submitted.run.id)
            else:
                later = await on.submit("never mind", agent="answer", conversation=submitted.conversation.id)
                assert (await on.engine.runs.wait(later.run.id)).status == "finished"
            with anyio.fail_after(60):
                alive = ("waiting", "running")
                while services.children() - before or (await on.engine.store.records.run(submitted.run.id)).status in alive:
                    await anyio.sleep(0.02)
            assert (await on.engine.store.records.run(submitted.run.id)).status == "cancelled"
            assert await on.engine.store.records.approvals(run=submitted.run.id) == []
            exchange = await on.engine.store.records.exchange(exchange_id(submitted.run.id, 1, 0))
            assert exchange is not None and exchange.ended == ("cancelled" if how == "cancel" else "cut")
            log = await services.Stage(on.engine, on.directory).events(submitted.run)
            (end,) = [event.body for event in log if event.kind == "exchange" and event.phase == "end"]
            assert isinstance(end, dict) and (how == "cancel" or "superseded by a new prompt" in str(end["error"]))


async def test_a_turn_interrupted_by_a_crash_is_closed_by_the_next_prompt(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        on.engine.settings.agents["tried"] = on.engine.settings.agents["answer"]
        here = services.Stage(on.engine, on.directory)
        leg = await services.leg_of(here, "go")
        turn = await Turn.begin(leg.request, leg, CodexAppServer(), number=1, prompt=b"go")
        begun = {"method": "item/started", "params": {"item": {"type": "commandExecution", "id": "c", "command": "ls"}}}
        words = {"method": "item/agentMessage/delta", "params": {"itemId": "i", "delta": "Half"}}
        await turn.record_received(dumps(words) + b"\n", dumps(begun) + b"\n")
        await on.engine.store.records.interrupt(leg.fence.run, owner=leg.request.run.owner, fence=leg.fence.number)
        await on.ask("something else", agent="answer", conversation=leg.request.conversation.id)
        exchange = await on.engine.store.records.exchange(exchange_id(leg.fence.run, 1, 0))
        assert exchange is not None and exchange.ended == "cut"
        message = await on.engine.store.conversations.message(leg.fence.message)
        assert message.status == "cancelled" and [part.get("state") for part in message.parts[1:]] == ["done", "output-error"]


async def test_a_steering_message_starts_its_own_turn(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        submitted = await on.submit("one", agent="linger")
        await services.Stage(on.engine, on.directory).words(submitted.run)
        steered = await on.submit("and this", agent="linger", conversation=submitted.conversation.id, on_busy="steer")
        assert steered.steered
        run = await on.follow(submitted)
        message = await on.engine.store.conversations.message(run.message)
        assert run.status == "finished" and said(message).count("Hello") == 2
        told = [loads_object(line)["params"]["input"][0]["text"] for ours, line in await lines(on, run) if ours and b"turn/start" in line]  # type: ignore[index, call-overload]
        assert told == ["one", "and this"]
        await check(on, run)


# ── its failures ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_crash_keeps_the_partial_answer_and_shows_stderr(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        run, message = await on.ask("go", agent="crash")
        assert run.status == "failed" and run.error.kind == "transport"
        assert run.error.message.endswith("exited before its answer was complete (exit code 101): thread 'main' panicked: out of luck")
        assert said(message) == "Half an ans" and calls(message)[0]["state"] == "output-error"
        assert (await lines(on, run))[-1] == (False, b'{"method":"item/agentMess')
        assert run.agent_session_id == codex_program.THREAD, "the next prompt goes on in it"
        await check(on, run)


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("silent", "transport", "exited before its answer was complete (exit code 0)"),
        ("fail", "overloaded", "the model is overloaded"),
        ("refuse", "protocol", "thread/start was refused: no rollout found: refuse"),
    ],
)
async def test_each_failure_has_its_own_message(stage: Any, behaviour: str, kind: str, words: str) -> None:
    async with stage([], agents=agents()) as on:
        run, _ = await on.ask("go", agent=behaviour)
        assert run.status == "failed" and run.error.kind == kind and words in run.error.message
        await check(on, run)


@pytest.mark.parametrize("behaviour", ["noise", "newer", "flood"])
async def test_noise_new_events_and_floods_are_harmless(stage: Any, behaviour: str) -> None:
    async with stage([], agents=agents()) as on:
        run, message = await on.ask("go", agent=behaviour)
        assert run.status == "finished" and said(message)
        await check(on, run)


async def test_an_agent_that_ignores_an_interrupt_is_killed_within_a_second(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        before = services.children()
        submitted = await on.submit("go", agent="hang")
        await services.Stage(on.engine, on.directory).words(submitted.run)
        await on.engine.runs.cancel(submitted.run.id)
        with anyio.fail_after(services.SECOND + services.ALLOWANCE):
            run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "cancelled" and not services.children() - before
        await check(on, run)


async def test_a_missing_program_shows_how_to_install_it(stage: Any) -> None:
    missing = {"default": Agent(), "codex": Agent("codex", agent_type="codex", options={"command": ["no-such-codex"]})}
    async with stage([], agents=missing) as on:
        run, _ = await on.ask("go", agent="codex")
        assert (run.status, run.error.kind) == ("failed", "config") and run.error.fix == "npm install --global @openai/codex"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sandbox": "none"}, "options.sandbox is 'none'. Expected one of: read-only"),
        ({"model": "x"}, "options.model is unknown. Known options: approval, args, command, env, sandbox"),
        ({"env": ["A"]}, r"options.env is \['A'\]. Expected names with their values"),
    ],
)
async def test_a_wrong_option_is_named(stage: Any, options: dict[str, Any], words: str) -> None:
    async with stage([], agents=agents(**options)) as on:
        run, _ = await on.ask("go", agent="answer")
        assert run.status == "failed" and run.error.kind == "config"
        with pytest.raises(UsageError, match=words):
            raise UsageError(run.error.message)


async def test_a_run_of_a_killed_process_is_not_repeated(stage: Any, tmp_path: Path) -> None:
    async with stage([], agents=agents()) as on:
        before = services.children()
        submitted = await on.submit("go", agent="slow")
        await services.Stage(on.engine, on.directory).words(submitted.run)
        for child in services.children() - before:
            os.kill(child, 9)
        run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "failed" and "(signal 9)" in run.error.message
        await check(on, run)


async def test_a_turn_cut_off_by_moots_crash_is_closed_and_not_repeated(stage: Any) -> None:
    async with stage([], agents=agents()) as on:
        on.engine.settings.agents["tried"] = on.engine.settings.agents["answer"]
        leg = await services.leg_of(services.Stage(on.engine, on.directory), "go")
        await leg.append(Event("journal", phase="start", key="agent:1.0", body={"turn": 1}), sync=True)
        turn = await Turn.begin(leg.request, leg, CodexAppServer(), number=1, prompt=b"go")
        begun = {"method": "item/started", "params": {"item": {"type": "commandExecution", "id": "c", "command": "ls"}}}
        words = {"method": "item/agentMessage/delta", "params": {"itemId": "i", "delta": "Half"}}
        await turn.record_received(dumps(words) + b"\n", dumps(begun) + b"\n")
        again = await services.reopened(services.Stage(on.engine, on.directory), leg.request, leg.fence)
        outcome = await Codex().run(leg.request, again)  # the store is verified after the test
        assert outcome.status == "failed" and outcome.error is not None and outcome.error.kind == "cut"
        kinds = [str(chunk["type"]) for event in await events_of(on.engine.store, leg.fence) for chunk in event.chunks]
        assert kinds[-3:] == ["text-end", "tool-output-error", "finish-step"] and again.step_open is False
