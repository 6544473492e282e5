"""Running concurrently: several engines on one file, owners that died, cancels and answers at awkward moments."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from conformance import services
from e2e.conftest import Stage
from e2e.orphans import orphan, reach
from moot.agents.journal import Position
from moot.agents.model_call import converse
from moot.agents.request import Request
from moot.config.settings import Permissions
from moot.engine import open_engine
from moot.guard.processes import process_started
from moot.plugins import DIALECTS
from moot.runtime.drive import drive
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.chunk import finish
from moot.types.event import Event
from moot.types.exchange import Exchange, ExchangeOptions, start_body
from moot.types.ids import exchange_id, llm_key, new_id
from moot.types.limits import Limits
from moot.types.message import TOOL_DONE, is_tool, text_of, text_part
from moot.types.provider import ModelRequest
from moot.types.run import Run
from moot.types.store import End, Fold, HandleInbox, InboxItem, OpenExchange, Store

pytestmark = pytest.mark.anyio


def calling(command: str, then: str = "done") -> Any:
    """A model that runs one command and then answers."""

    def script(recorded: Recorded) -> Reply:
        said = "'role': 'tool'" in str(recorded.json["messages"])
        return Reply(text=then) if said else Reply(tool_calls=[ToolCall("shell", {"command": command})])

    return script


async def begun(on: Any, conversation: str, key: str) -> None:
    with anyio.fail_after(60):
        while not any(event.phase == "start" and str(event.key).startswith(key) for event in await on.engine.store.log.read(conversation)):
            await anyio.sleep(0.01)


async def test_the_usage_of_a_superseded_run_is_in_the_totals(stage: Any) -> None:
    def script(recorded: Recorded) -> Reply:
        asked = Reply(tool_calls=[ToolCall("shell", {"command": "true"})], usage={"input": 100, "output": 10})
        return asked if recorded.user_text == "one" else Reply(text="fresh", usage={"input": 1, "output": 2})

    async with stage(script, mode="ask") as on:
        waiting = await on.follow(await on.submit("one"))
        await on.ask("two", conversation=waiting.conversation)
        old = await on.engine.store.records.run(waiting.id)
        assert (old.status, old.usage.input, old.usage.output) == ("cancelled", 100, 10)
        usage = (await on.engine.store.conversations.get(waiting.conversation)).usage
        assert (usage.input, usage.output) == (101, 12)


async def test_a_model_call_interrupted_by_a_crash_is_closed_by_the_next_prompt(stage: Any) -> None:
    async with stage([Reply(text="fresh", times=0)]) as on:
        dead = await orphan(on)
        translator = DIALECTS.make("openai-chat").translator
        pieces = await on.engine.store.blobs.stage((b"{}",), "application/json")
        exchange = Exchange(
            *(exchange_id(dead.run.id, 1, 0), dead.run.id, dead.conversation.id, "answer", "openai-chat"),
            *(f"{translator.name}/{translator.version}", "mine", "scripted", ExchangeOptions("1.0", 1), {"pieces": pieces.hashes}),
        )
        head = Event("exchange", exchange=exchange.id, phase="start", key=llm_key(1, 0), body=start_body(exchange, "scripted@mine"))
        raw = b'data: {"choices":[{"index":0,"delta":{"content":"Half of"}}]}\n\n'
        _, chunks = translator.feed(translator.open(exchange.options), raw)
        border = Event("chunks", ({"type": "start", "messageId": dead.run.message},), phase="start", key="run")
        said = Event("raw", chunks, raw, exchange=exchange.id)
        await on.engine.store.log.append(
            dead.conversation.id,
            [event._replace(run=dead.run.id) for event in (border, head, said)],
            fence=dead.fence,
            changes=[OpenExchange(exchange, pieces)],
        )
        await on.ask("go on", conversation=dead.conversation.id)
        stored = await on.engine.store.records.exchange(exchange.id)
        assert stored is not None and stored.ended == "cut"
        old = await on.engine.store.records.run(dead.run.id)
        message = await on.engine.store.conversations.message(dead.run.message)
        assert (old.status, old.cost, message.status, text_of(message.parts)) == ("cancelled", None, "cancelled", "Half of")
        assert all(part.get("state") != "streaming" for part in message.parts)


class _CancelledAtItsEnd:
    """A provider whose last chunk arrives at the moment of a cancel."""

    name = "mine"

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[bytes, ...], None]:
        yield (b'data: {"choices":[{"index":0,"delta":{"content":"All of it."},"finish_reason":"stop"}]}\n\n',)
        self._scope.cancel()


async def test_a_model_call_that_ends_during_a_cancel_is_logged_with_its_end(stage: Any) -> None:
    async with stage([]) as on:
        on.engine.settings.agents["tried"] = Agent()
        leg = await services.leg_of(services.Stage(on.engine, on.directory), "go")
        pieces = await on.engine.store.blobs.stage((b"{}",), "application/json")
        scope = anyio.CancelScope()
        choice: Any = replace(await on.engine.providers.choice("main"), provider=_CancelledAtItsEnd(scope))
        id = exchange_id(leg.fence.run, 1, 0)
        wanted = Request(id, ModelRequest(b"{}", "scripted"), pieces, 1)
        with scope:
            await converse(leg, Position(), choice, wanted, run=leg.fence.run, conversation=leg.fence.conversation, number=0)
        stored = await on.engine.store.records.exchange(id)
        assert stored is not None and stored.ended == "eof"


async def test_a_cancelled_queued_run_ends_at_once_and_the_live_run_continues(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=3)]) as on:
        first = await on.submit("one")
        second = await on.submit("two", conversation=first.conversation.id, on_busy="queue")
        await on.engine.runs.cancel(second.run.id)
        with anyio.fail_after(60):
            assert (await on.engine.runs.wait(second.run.id)).status == "cancelled"
        assert (await on.engine.store.records.run(first.run.id)).status == "running"
        assert (await on.engine.store.conversations.message(second.run.message)).status == "cancelled"
        with anyio.fail_after(60):
            while not on.server.requests:
                await anyio.sleep(0.01)
        await on.engine.runs.cancel(first.run.id)
        assert (await on.engine.runs.wait(first.run.id)).status == "cancelled"
        assert len(await on.engine.store.records.runs()) == 2
        assert (await on.engine.store.conversations.get(first.conversation.id)).unpriced_runs == 1  # the other one asked no questions


async def test_waiting_for_a_run_ends_if_its_owner_dies(stage: Any) -> None:
    async with stage([]) as on:
        dead = await orphan(on)
        with anyio.fail_after(60):
            assert (await on.engine.runs.wait(dead.run.id)).status == "interrupted"


async def test_waiting_for_a_run_ends_if_the_engine_closes(stage: Any) -> None:
    async with stage([Reply(text="never", hang_at=0)]) as on:
        run = (await on.submit("go")).run
        while not on.server.requests:
            await anyio.sleep(0.01)
        waiting = asyncio.create_task(on.engine.runs.wait(run.id))
        await anyio.lowlevel.checkpoint()
    with anyio.fail_after(60):
        assert (await waiting).status == "interrupted"


async def test_a_run_of_a_dead_owner_does_not_block_the_conversation(stage: Any) -> None:
    async with stage([Reply(text="fresh")]) as on:
        dead = await orphan(on)
        run, message = await on.ask("again", conversation=dead.conversation.id)
        assert run.status == "finished" and text_of(message.parts) == "fresh"
        assert (await on.engine.store.records.run(dead.run.id)).status == "cancelled"


async def test_a_resumable_run_is_resumed_even_if_another_process_found_it_first(stage: Any) -> None:
    async with stage([Reply(text="hello")]) as on:
        may, asks = await orphan(on, "resume"), await orphan(on)
        assert len(await on.engine.runs.sweep(resume=False)) == 2
        await on.engine.runs.sweep(resume=True)
        assert (await reach(on, may.run.id, "finished")).error is None
        assert (await on.engine.store.records.run(asks.run.id)).status == "interrupted"


async def test_a_second_engine_watches_answers_and_cancels(stage: Any, directory: Path) -> None:
    async with stage(calling("touch made"), mode="ask") as on, open_engine(on.engine.settings) as second:
        submitted = await on.submit("go")
        other = replace(on, engine=second, seen=[])
        waiting = await other.follow(submitted)
        assert waiting.status == "waiting"
        [asked] = await second.store.records.approvals(run=waiting.id)
        await second.runs.answer(asked.id, Answer(True))
        await reach(on, waiting.id, "finished")
        assert (directory / "made").exists()
    async with stage([Reply(text="never ends", hang_at=3)]) as on, open_engine(on.engine.settings) as second:
        submitted = await on.submit("go")
        await begun(on, submitted.conversation.id, "llm:")
        await second.runs.cancel(submitted.run.id)
        with anyio.fail_after(60):
            assert (await second.runs.wait(submitted.run.id)).status == "cancelled"


async def test_a_cancel_while_a_run_parks_is_not_lost(stage: Any) -> None:
    async with stage(calling("true"), mode="ask") as on:
        for later in range(0, 24, 3):
            submitted = await on.submit("go")
            async with aclosing(on.engine.tail.watch(submitted.conversation.id)) as batches:
                async for events in batches:
                    if any(chunk["type"] == "tool-approval-request" for event in events for chunk in event.chunks):
                        break
            for _ in range(later):
                await anyio.lowlevel.checkpoint()
            await on.engine.runs.cancel(submitted.run.id)
            await reach(on, submitted.run.id, "cancelled")


async def test_a_steering_message_keeps_an_earlier_cancel_in_the_inbox(stage: Any) -> None:
    async with stage([]) as on:
        dead = await orphan(on)
        records = on.engine.store.records
        await records.post(dead.run.id, InboxItem("cancel"))
        last = await records.post(dead.run.id, InboxItem("steer", {"parts": []}))
        await on.engine.store.log.append(dead.conversation.id, (), fence=dead.fence, changes=(HandleInbox(last),))
        assert [item.kind for item in await records.inbox(dead.run.id)] == ["cancel"]


async def test_a_steering_message_to_a_stopped_run_is_stored_and_starts_no_run(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=3), Reply(text="unasked")]) as on:
        submitted = await on.submit("go")
        await begun(on, submitted.conversation.id, "llm:")
        await on.submit("be brief", conversation=submitted.conversation.id, on_busy="steer")
        await on.engine.runs.cancel(submitted.run.id)
        assert (await on.engine.runs.wait(submitted.run.id)).status == "cancelled"
        branch = await on.engine.store.conversations.branch(submitted.conversation.id)
        assert [message.role for message in branch] == ["user", "assistant", "user"]
        assert text_of(branch[-1].parts) == "be brief"
        assert len(on.server.requests) == 1 and len(await on.engine.store.records.runs()) == 1


def steering(text: str) -> InboxItem:
    return InboxItem("steer", {"id": new_id(), "parts": [text_part(text)]})  # type: ignore[dict-item]


async def spoken(on: Any, conversation: str) -> list[str]:
    """Return the texts of the users' messages on the current branch."""
    return [text_of(message.parts) for message in await on.engine.store.conversations.branch(conversation) if message.role == "user"]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_unread_messages_are_stored_in_the_transaction_that_ends_the_run(stage: Any, status: Any) -> None:
    async with stage([]) as on:
        dead = await orphan(on)
        for text in ("be brief", "and kind"):
            await on.engine.store.records.post(dead.run.id, steering(text))
        ending = Event("chunks", (finish("other"),), run=dead.run.id, phase="end", key="run", body={"status": status})
        changes = (Fold((), {}, status), End(status))
        await on.engine.store.log.append(dead.conversation.id, (ending,), fence=dead.fence, changes=changes)
        assert await spoken(on, dead.conversation.id) == ["hello", "be brief", "and kind"]
        assert await on.engine.store.records.inbox(dead.run.id) == []


async def test_a_prompt_after_an_interrupted_run_follows_the_messages_that_the_run_did_not_read(stage: Any) -> None:
    async with stage([Reply(text="fine")]) as on:
        dead = await orphan(on)
        await on.engine.store.records.post(dead.run.id, steering("be brief"))
        await on.engine.runs.current(dead.run.id)  # marks it as interrupted
        run, _ = await on.ask("next", conversation=dead.conversation.id)
        assert run.status == "finished"
        assert await spoken(on, dead.conversation.id) == ["hello", "be brief", "next"]


async def test_unread_messages_of_a_stopped_run_and_its_queue_are_on_one_branch(stage: Any) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(text="never ends", hang_at=3) if recorded.user_text == "go" else Reply(text="fine")

    async with stage(script) as on:
        submitted = await on.submit("go")
        same = {"conversation": submitted.conversation.id}
        await begun(on, submitted.conversation.id, "llm:")
        await on.submit("queued", **same, on_busy="queue")
        await on.submit("be brief", **same, on_busy="steer")
        await on.engine.runs.cancel(submitted.run.id)
        await on.engine.runs.wait(submitted.run.id)
        last = await on.submit("last", **same, on_busy="queue")
        assert (await on.engine.runs.wait(last.run.id)).status == "finished"
        assert await spoken(on, submitted.conversation.id) == ["go", "queued", "be brief", "last"]


class LateWord:
    """A store in which another message arrives just after the run has checked for the last time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.records = self
        self.said = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name, None) or getattr(self._store.records, name)

    async def inbox(self, run: str) -> list[InboxItem]:
        found = await self._store.records.inbox(run)
        conversation = (await self._store.records.run(run)).conversation
        over = any(event.key == "step:1" and event.phase == "end" for event in await self._store.log.read(conversation))
        if over and not self.said:
            self.said = True
            await self._store.records.post(run, InboxItem("steer", {"id": "late", "parts": [text_part("and more")]}))  # type: ignore[dict-item]
        return found


async def test_a_steering_message_at_the_end_of_a_run_is_still_answered(stage: Any) -> None:
    async with stage([Reply(text="one"), Reply(text="two")]) as on:
        late = on.engine.runtime.store = LateWord(on.engine.store)
        run, message = await on.ask("go")
        assert late.said
        assert (run.status, run.error) == ("finished", None)
        assert [part["type"] for part in message.parts] == ["step-start", "text", "steering-message", "step-start", "text"]
        assert "and more" in str(on.server.requests[1].json)
        assert await on.engine.store.records.inbox(run.id) == []


async def test_an_unanswered_question_is_denied_in_time_and_the_run_continues(stage: Any, directory: Path) -> None:
    async with stage(calling("touch made"), permissions=Permissions(mode="ask", timeout=0.3)) as on:
        run = await on.follow(await on.submit("go"))
        assert run.status == "waiting"
        await reach(on, run.id, "finished")
        assert not (directory / "made").exists()
        [asked] = await on.engine.store.records.approvals(run=run.id, open_only=False)
        assert asked.answer is not None and (asked.answer.approved, asked.answer.answered_by) == (False, "moot")
        assert "in time" in asked.answer.reason
        responses = [chunk for event in await on.engine.store.log.read(run.conversation) for chunk in event.chunks if "approved" in chunk]
        assert [chunk["approved"] for chunk in responses] == [False]


async def test_an_approval_that_expired_unused_is_requested_again(stage: Any, directory: Path) -> None:
    timed = Permissions(mode="ask", timeout=0.5)
    async with stage(calling("touch made"), permissions=timed) as on:
        run = await on.follow(await on.submit("go"))
        [asked] = await on.engine.store.records.approvals(run=run.id)
        await on.engine.store.records.answer(asked.id, Answer(True))  # and the process dies before it continues
    await anyio.sleep(0.6)
    async with stage(calling("touch made"), permissions=timed) as on:
        await on.engine.runs.resume(run.id)
        with anyio.fail_after(60):
            while not (again := await on.engine.store.records.approvals(run=run.id)):
                await anyio.sleep(0.01)
        assert not (directory / "made").exists()
        await on.engine.runs.answer(again[0].id, Answer(True))
        await reach(on, run.id, "finished")
        assert (directory / "made").exists()


async def test_a_leg_may_start_before_the_previous_one_is_cleaned_up(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned, ended = anyio.Event(), anyio.Event()

    async def drive_slowly(*arguments: Any) -> Run:
        run = await drive(*arguments)
        if run.status == "waiting":
            await cleaned.wait()
            ended.set()
        return run

    monkeypatch.setattr("moot.runtime.drive.drive", drive_slowly)
    asks = Reply(tool_calls=[ToolCall("shell", {"command": "true"})])
    async with stage([asks, Reply(text="never ends", hang_at=3)], mode="ask") as on:
        submitted = await on.submit("go")
        await reach(on, submitted.run.id, "waiting")
        [approval] = await on.engine.store.records.approvals(run=submitted.run.id)
        await on.engine.runs.answer(approval.id, Answer(True))
        await begun(on, submitted.conversation.id, "llm:2")
        cleaned.set()
        await ended.wait()
        assert [run.status for run in await on.engine.runs.here()] == ["running"]
        await on.engine.runs.cancel(submitted.run.id)
        assert (await on.engine.runs.wait(submitted.run.id)).status == "cancelled"


async def test_a_resumed_call_of_a_missing_tool_has_an_unknown_outcome(stage: Any) -> None:
    async with stage(calling("sleep 30")) as on:
        submitted = await on.submit("go")
        await begun(on, submitted.conversation.id, "tool:")
    async with stage(calling("sleep 30"), agents={"default": Agent(tools=())}) as on:
        await on.engine.runs.resume(submitted.run.id)
        run = await reach(on, submitted.run.id, "finished")
        [part] = [part for part in (await on.engine.store.conversations.message(run.message)).parts if is_tool(part)]
        assert part["state"] in TOOL_DONE and "is unknown" in str(part["errorText"])


async def test_processes_of_a_killed_moot_end_when_its_run_is_cancelled(stage: Any) -> None:
    async with stage([]) as on:
        dead = await orphan(on)
        with subprocess.Popen(["sleep", "600"], start_new_session=True) as left:
            begun = Event("journal", run=dead.run.id, phase="start", key="tool:1.0.0", body={"tool": "shell"})
            fact = Event("journal", run=dead.run.id, key="tool:1.0.0", body={"pgid": left.pid, "started": process_started(left.pid)})
            await on.engine.store.log.append(dead.conversation.id, (begun, fact), fence=dead.fence)
            await on.engine.runs.cancel(dead.run.id)
            await reach(on, dead.run.id, "cancelled")
            with anyio.fail_after(60):
                while left.poll() is None:
                    await anyio.sleep(0.01)


async def test_lock_files_of_dead_processes_are_removed_and_live_ones_stay(stage: Any) -> None:
    async with stage([Reply(text="hi", times=0)]) as on:
        owners = on.engine.settings.owners
        assert not owners.exists()  # a process that only reads leaves nothing
        await on.ask("go")
        (owners / "dead.lock").touch()
        mine = {path.name for path in owners.iterdir()} - {"dead.lock"}
        async with open_engine(on.engine.settings) as engine:
            await Stage(engine, on.server, on.directory).ask("go")
            now = {path.name for path in owners.iterdir()}
        assert len(mine) == 1 and mine < now and "dead.lock" not in now


async def test_concurrent_calls_to_a_provider_respect_the_limit(stage: Any) -> None:
    async def most_at_once(on: Any, requests: int) -> int:
        submitted = [await on.submit(f"number {number}") for number in range(3)]
        for count in range(requests, 4):
            await on.called(count)
            on.server.release()
        for one in submitted:
            await reach(on, one.run.id, "finished")
        open_now = highest = 0
        events = [event for one in submitted for event in await on.engine.store.log.read(one.conversation.id) if event.kind == "exchange"]
        for event in sorted(events, key=lambda event: event.at):
            open_now += 1 if event.phase == "start" else -1
            highest = max(highest, open_now)
        return highest

    async with stage(lambda _: Reply(text="some words", hang_at=1), limits=Limits(per_provider=1)) as on:
        assert await most_at_once(on, 1) == 1
    async with stage(lambda _: Reply(text="some words", hang_at=1)) as on:
        assert await most_at_once(on, 3) == 3
