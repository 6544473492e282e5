"""One leg of a run: the content of its fold, its time limit, its cost, and processes that outlive it."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from e2e.orphans import is_locked, orphan, reach
from moot.config.settings import Models, ProviderSettings
from moot.engine import open_engine
from moot.errors import Busy, StoreError
from moot.guard.processes import process_started
from moot.runtime.drive import _end  # pyright: ignore[reportPrivateUsage]
from moot.runtime.leg import Leg
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.limits import Limits
from moot.types.message import Message, text_of, text_part
from moot.types.run import Prompt, Run, RunOutcome, RunRequest
from moot.types.store import Accepted, CloseExchange, Submission

pytestmark = pytest.mark.anyio

PRICED = {"scripted": {"context": 100_000, "price": {"input": 1.0, "output": 2.0}}}


async def test_the_time_limit_covers_all_legs_without_the_waits(stage: Any) -> None:
    async with stage([Reply(text="in time")], limits=Limits(seconds=30)) as on:
        for seconds, status in ((20, "finished"), (40, "failed")):
            dead = await orphan(on)
            now = on.engine.runtime.now()
            begun = Event("chunks", run=dead.run.id, phase="start", key="run", at=now - 100_000_000)
            last = Event("meta", run=dead.run.id, at=begun.at + seconds * 1_000_000)
            await on.engine.store.log.append(dead.conversation.id, (begun, last), fence=dead.fence)
            await on.engine.runs.resume(dead.run.id)
            run = await reach(on, dead.run.id, status)  # type: ignore[arg-type]
            assert run.error is None or (run.error.kind, run.error.message) == ("deadline", "The run stopped after 30 s.")
        assert len(on.server.requests) == 1


async def test_a_change_of_tools_during_an_approval_is_announced_once_in_the_next_leg(stage: Any) -> None:
    calls = [ToolCall("shell", {"command": "touch made"}), ToolCall("shell", {"command": "touch more"})]
    script = [*(Reply(tool_calls=[call]) for call in calls), Reply(text="Done.")]
    before, after = ({"default": Agent(tools=tools)} for tools in (("shell",), ("read_file", "shell")))
    async with stage(script, mode="ask", agents=before) as on:
        submitted = await on.submit("go")
        await on.engine.runs.wait(submitted.run.id)
        async with open_engine(replace(on.engine.settings, agents=after)) as later:  # as after a crash
            for number in (1, 2):
                (asked,) = await later.store.records.approvals(run=submitted.run.id)
                await later.runs.answer(asked.id, Answer(True))
                await later.runs.wait(submitted.run.id)
                assert len(on.server.requests) == number + 1
    line = "The available tools have changed. They are now: read_file, shell."
    systems = [str(request.json["messages"][0]["content"]) for request in on.server.requests]
    assert [line in system for system in systems] == [False, True, False]


@pytest.mark.damaged  # its log is written directly, without the exchange's row
async def test_a_model_call_lost_in_a_crash_makes_the_cost_unknown(stage: Any) -> None:
    async with stage([Reply(text="again"), Reply(text="more")], priced=PRICED) as on:
        dead = await orphan(on)
        begun = Event("exchange", run=dead.run.id, exchange=f"{dead.run.id}:1.0", phase="start", key="llm:1.0", body={"model": "m@mine"})
        start = Event("chunks", run=dead.run.id, phase="start", key="run")
        await on.engine.store.log.append(dead.conversation.id, (start, begun), fence=dead.fence)
        await on.engine.runs.resume(dead.run.id)
        run = await reach(on, dead.run.id, "finished")
        assert run.cost is None and run.usage.output == 7
        assert (await on.engine.store.conversations.get(run.conversation)).unpriced_runs == 1
        assert (await on.ask("more"))[0].cost is not None


@pytest.mark.slow
async def test_a_failed_connection_keeps_the_cost_known(stage: Any) -> None:
    nobody = ProviderSettings("nobody", dialect="openai-chat", base_url="http://127.0.0.1:1/v1", api_key="k", models=PRICED)
    fallback = Models(main="scripted@nobody", fallback=("scripted@mine",))
    async with stage([Reply(text="second")], priced=PRICED, others={"nobody": nobody}, models=fallback) as on:
        run, message = await on.ask("go")
        assert text_of(message.parts) == "second" and run.cost is not None


async def queued_orphan(on: Any, before: Accepted, on_crash: Any = "ask") -> Accepted:
    """A queued run whose process has died."""
    run = Run(new_id(), before.conversation.id, new_id(), on_crash=on_crash)
    user = Message(new_id(), "user", (text_part("and then"),))
    return await on.engine.store.records.submit(Submission(run, before.conversation, user, "queue", owner="gone too"))


async def test_a_queued_run_of_a_dead_process_is_interrupted_on_its_turn(stage: Any) -> None:
    async with stage([Reply(text="first"), Reply(text="second")]) as on:
        dead = await orphan(on)
        queued = await queued_orphan(on, dead)
        records = on.engine.store.records
        assert [run.id for run in await on.engine.runs.sweep(resume=False)] == [dead.run.id]
        assert (await records.run(queued.run.id)).status == "queued"
        await on.engine.runs.resume(dead.run.id)
        await reach(on, dead.run.id, "finished")
        assert [run.id for run in await on.engine.runs.sweep(resume=False)] == [queued.run.id]
        assert (await on.engine.store.conversations.message(queued.run.message)).status == "interrupted"
        await on.engine.runs.resume(queued.run.id)
        assert (await reach(on, queued.run.id, "finished")).error is None


async def test_queued_runs_of_dead_processes_do_not_block_the_conversation(stage: Any) -> None:
    async with stage([Reply(text="fresh")]) as on:
        dead = await orphan(on)
        queued = [await queued_orphan(on, dead) for _ in range(2)]
        run, message = await on.ask("again", conversation=dead.conversation.id)
        assert run.status == "finished" and text_of(message.parts) == "fresh"
        assert {(await on.engine.store.records.run(each.run.id)).status for each in (dead, *queued)} == {"cancelled"}
        branch = await on.engine.store.conversations.branch(dead.conversation.id)
        assert [text_of(each.parts) for each in branch if each.role == "user"] == ["hello", "and then", "and then", "again"]


async def test_a_resumable_queued_run_resumes_automatically(stage: Any) -> None:
    async with stage([Reply(text="first"), Reply(text="second")]) as on:
        dead = await orphan(on, "resume")
        queued = await queued_orphan(on, dead, "resume")
        await on.engine.runs.sweep(resume=True)
        assert (await reach(on, queued.run.id, "finished")).error is None


async def test_a_queued_run_of_a_live_process_is_left_alone(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=3)]) as on, open_engine(on.engine.settings) as second:
        first = await on.submit("one")
        queued = await on.submit("two", conversation=first.conversation.id, on_busy="queue")
        assert await second.runs.sweep(resume=False) == []
        with pytest.raises(Busy):
            await second.runs.submit(Prompt((text_part("three"),), conversation=first.conversation.id))
        assert (await on.engine.store.records.run(queued.run.id)).status == "queued"


async def test_processes_of_a_superseded_run_end_before_the_next_run_starts(stage: Any) -> None:
    async with stage([Reply(text="fresh")]) as on:
        dead = await orphan(on)
        with subprocess.Popen(["sleep", "30"], start_new_session=True) as left:
            begun = Event("journal", run=dead.run.id, phase="start", key="tool:1.0.0", body={"tool": "shell"})
            fact = Event("journal", run=dead.run.id, key="tool:1.0.0", body={"pgid": left.pid, "started": process_started(left.pid)})
            await on.engine.store.log.append(dead.conversation.id, (begun, fact), fence=dead.fence)
            submitted = await on.submit("again", conversation=dead.conversation.id)
            assert left.poll() is not None
            await reach(on, submitted.run.id, "finished")


async def leg_of(on: Any, dead: Accepted) -> Leg:
    message = await on.engine.store.conversations.message(dead.run.message)
    assert dead.fence is not None
    return Leg(on.engine.runtime, RunRequest(dead.run, dead.conversation, Agent(), {}), dead.fence, message, [])


async def test_a_fold_stored_after_a_rejected_append_does_not_contain_it(stage: Any) -> None:
    async with stage([]) as on:
        dead = await orphan(on)
        leg = await leg_of(on, dead)

        async def refused() -> None:
            lost = Event("chunks", ({"type": "data-lost", "data": 1},))
            with pytest.raises(StoreError):
                await leg.append(lost, changes=(CloseExchange("never opened", "eof"),))
            assert not leg.message().parts or leg.message().parts[0]["type"] == "data-kept"

        async with anyio.create_task_group() as group:
            group.start_soon(refused)
            await anyio.lowlevel.checkpoint()
            await leg.append(Event("chunks", ({"type": "data-kept", "data": 2},)), fold=True)
        assert [part["type"] for part in leg.message().parts] == ["data-kept"]
        assert [part["type"] for part in (await on.engine.store.conversations.message(dead.run.message)).parts] == ["data-kept"]


async def test_events_committed_for_a_cancelled_task_are_in_the_fold(stage: Any) -> None:
    async with stage([]) as on:
        dead = await orphan(on)
        leg = await leg_of(on, dead)
        task = asyncio.create_task(leg.append(Event("chunks", ({"type": "data-seen", "data": 1},)), fold=True))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await leg.append(Event("chunks", ({"type": "data-next", "data": 2},)), fold=True)
        assert [part["type"] for part in (await on.engine.store.conversations.message(dead.run.message)).parts] == [
            "data-seen",
            "data-next",
        ]


async def test_a_message_never_contains_rejected_events(stage: Any) -> None:
    async with stage([]) as on:
        store = on.engine.store
        dead = await orphan(on)
        leg, message = await leg_of(on, dead), dead.run.message
        await leg.append(Event("chunks", ({"type": "text-start", "id": "a"}, {"type": "text-delta", "id": "a", "delta": "kept"})))
        with pytest.raises(StoreError):
            lost = Event("chunks", ({"type": "text-delta", "id": "a", "delta": " and lost"},))
            await leg.append(lost, changes=(CloseExchange("never opened", "eof"),))
        await _end(leg, RunOutcome("cancelled"))
        assert text_of((await store.conversations.message(message)).parts) == "kept"


async def test_a_background_command_of_a_run_that_waits_is_not_ended_for_lack_of_room(stage: Any, directory: Path) -> None:
    def script(recorded: Recorded) -> Reply:
        said = "'role': 'tool'" in str(recorded.json["messages"])
        if recorded.user_text == "other":
            return Reply(text="ok") if said else Reply(tool_calls=[ToolCall("todo", {"todos": []})])
        if not said:
            command = "exec 9> held; flock 9; echo > locked; while true; do sleep 0.05; done"
            return Reply(tool_calls=[ToolCall("shell", {"command": command, "background": True})])
        return Reply(tool_calls=[ToolCall("ask_user", {"questions": [{"header": "h", "question": "?"}]})])

    async with stage(script, limits=Limits(cached_conversations=1)) as on:
        first = await on.submit("go")
        await reach(on, first.run.id, "waiting")
        with anyio.fail_after(60):
            while not (directory / "locked").exists():
                await anyio.sleep(0.01)
        for _ in range(2):
            other = await on.submit("other")
            await reach(on, other.run.id, "finished")
        await anyio.sleep(0.05)
        assert is_locked(directory / "held")  # ids of processes are other ones in a sandbox
        await on.engine.runs.cancel(first.run.id)
        await reach(on, first.run.id, "cancelled")
        other = await on.submit("other")
        await reach(on, other.run.id, "finished")
        with anyio.fail_after(60):
            while is_locked(directory / "held"):
                await anyio.sleep(0.01)
