"""Sub-agents and several processes: they continue wherever their processes end, and stop with their parents."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from moot.config.settings import Permissions, Rule
from moot.engine import Engine, open_engine
from moot.errors import Busy
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.chunk import finish
from moot.types.event import Event
from moot.types.message import text_of, text_part
from moot.types.run import Prompt, Run, RunStatus
from moot.types.store import End

pytestmark = pytest.mark.anyio

AGENTS = {"default": Agent(agents=("explorer",)), "explorer": Agent("explorer")}
ASKING = Permissions(mode="auto", rules=(Rule("shell", "ask", "*"),))
ASKS = [
    Reply(when="go", tool_calls=[ToolCall("delegate", {"agent": "explorer", "prompt": "look around"})]),
    Reply(when="look around", tool_calls=[ToolCall("shell", {"command": "echo looked"})]),
]


def starts(prompt: str, **arguments: Any) -> Reply:
    return Reply(when="go", tool_calls=[ToolCall("delegate", {"agent": "explorer", "prompt": prompt, **arguments})])


def go(on: Any, **more: Any) -> Prompt:
    return Prompt((text_part("go"),), directory=str(on.directory), **more)


async def reach(engine: Engine, run: str, status: RunStatus) -> Run:
    """Wait until the stored run has this status."""
    with anyio.fail_after(60):
        while (found := await engine.store.records.run(run)).status != status:
            await anyio.sleep(0.01)
    return found


async def child_of(engine: Engine, run: str) -> Run:
    with anyio.fail_after(60):
        while not (found := await engine.store.records.children(run)):
            await anyio.sleep(0.01)
    return found[0]


async def outputs(engine: Engine, run: Run) -> str:
    parts = (await engine.store.conversations.message(run.message)).parts
    return " ".join(str(part.get("output") or part.get("errorText")) for part in parts if str(part["type"]).startswith("tool-"))


@pytest.mark.parametrize("does", ["cancels", "answers"])
@pytest.mark.slow
async def test_a_parent_continues_when_another_process_ends_its_child(stage: Any, does: str) -> None:
    script = [*ASKS, Reply(when="look around", text="Seen."), Reply(when="go", text="Good.")]
    async with stage(script, agents=AGENTS, permissions=ASKING) as on:
        submitted = await on.submit("go")
        assert (await on.engine.runs.wait(submitted.run.id)).awaits == "run"
        child = await child_of(on.engine, submitted.run.id)
        async with open_engine(on.engine.settings) as other:
            if does == "cancels":
                await other.runs.cancel(child.id)
            else:
                (asked,) = await other.store.records.approvals(run=child.id)
                await other.runs.answer(asked.id, Answer(True))
                await other.runs.wait(child.id)
        ended = await on.engine.store.records.run(child.id)
        assert ended.status == ("cancelled" if does == "cancels" else "finished")
        final = await reach(on.engine, submitted.run.id, "finished")
        assert await outputs(on.engine, final) == ("explorer cancelled: It was stopped." if does == "cancels" else "Seen.")


async def test_the_process_of_a_parked_parent_resumes_a_child_whose_process_died(stage: Any) -> None:
    script = [
        *ASKS,
        Reply(when="look around", text="never ends", hang_at=3),
        Reply(when="look around", text="Seen."),
        Reply(when="go", text="Good."),
    ]
    async with stage(script, agents=AGENTS, permissions=ASKING) as on:
        submitted = await on.submit("go")
        await on.engine.runs.wait(submitted.run.id)
        child = await child_of(on.engine, submitted.run.id)
        async with open_engine(on.engine.settings) as other:
            (asked,) = await other.store.records.approvals(run=child.id)
            await other.runs.answer(asked.id, Answer(True))
            await on.called(3)
        final = await reach(on.engine, submitted.run.id, "finished")
        assert await outputs(on.engine, final) == "Seen."


async def test_an_engine_that_closes_after_a_cancel_leaves_no_child_interrupted(stage: Any) -> None:
    async with stage(HANGS, agents=AGENTS) as on:
        async with open_engine(on.engine.settings) as first:
            submitted = await first.runs.submit(go(on))
            child = await child_of(first, submitted.run.id)
            await reach(first, submitted.run.id, "waiting")
            await on.called(2)
            await first.runs.cancel(submitted.run.id)
        assert [(await on.engine.store.records.run(id)).status for id in (submitted.run.id, child.id)] == ["cancelled", "cancelled"]


HANGS = [starts("hang"), Reply(when="hang", text="never ends", hang_at=3)]


async def test_a_prompt_does_not_replace_a_run_that_waits_for_its_sub_agents(stage: Any) -> None:
    script = [*HANGS, Reply(when="go", text="Good."), Reply(when="more", text="Here."), Reply(text="After that.")]
    async with stage(script, agents=AGENTS) as on:
        first = await on.submit("go")
        await reach(on.engine, first.run.id, "waiting")
        await on.called(2)
        async with open_engine(on.engine.settings) as other:
            with pytest.raises(Busy, match="unfinished run"):
                await other.runs.submit(go(on, conversation=first.conversation.id))
        steered = await on.submit("more", conversation=first.conversation.id, on_busy="steer")
        assert steered.steered and steered.run.id == first.run.id
        queued = await on.submit("after", conversation=first.conversation.id, on_busy="queue")
        assert queued.run.status == "queued"
        on.server.release()
        assert [(await on.engine.runs.wait(run.id)).status for run in (first.run, queued.run)] == ["finished", "finished"]
        sent = [str(request.json["messages"]) for request in on.server.requests]
        assert "more" in sent[2] and "after" not in sent[2]


async def test_an_interrupting_prompt_stops_a_run_and_the_sub_agents_that_it_waits_for(stage: Any) -> None:
    async with stage([*HANGS, Reply(text="Now this.")], agents=AGENTS) as on:
        first = await on.submit("go")
        await reach(on.engine, first.run.id, "waiting")
        await on.called(2)
        second = await on.submit("something else", conversation=first.conversation.id, on_busy="interrupt")
        child = await child_of(on.engine, first.run.id)
        statuses = [(await on.engine.runs.wait(run.id)).status for run in (first.run, child, second.run)]
        assert statuses == ["cancelled", "cancelled", "finished"]


async def test_a_run_whose_sub_agents_died_with_it_is_replaced(stage: Any) -> None:
    async with stage([*HANGS, Reply(text="Instead.")], agents=AGENTS) as on:
        async with open_engine(on.engine.settings) as dead:
            first = await dead.runs.submit(go(on))
            await reach(dead, first.run.id, "waiting")
            await on.called(2)
        with anyio.fail_after(60):
            assert (await on.engine.runs.wait(first.run.id)).awaits == "run"
        run, _ = await on.ask("something else", conversation=first.conversation.id)
        child = await child_of(on.engine, first.run.id)
        assert [run.status, *[(await on.engine.store.records.run(id)).status for id in (first.run.id, child.id)]] == [
            "finished",
            "cancelled",
            "cancelled",
        ]


BACKGROUND = [
    starts("slow", background=True),
    Reply(when="slow", text="never ends", hang_at=3),
    Reply(when="slow", text="the result"),
]


async def test_a_server_resumes_what_a_dead_process_left_in_the_background(stage: Any) -> None:
    async with stage([*BACKGROUND, Reply(when="go", text="Started.")], agents=AGENTS) as on:
        async with open_engine(on.engine.settings) as first:
            submitted = await first.runs.submit(go(on))
            await reach(first, submitted.run.id, "finished")
            await on.called(3)
        async with open_engine(on.engine.settings, resume=True) as server:
            child = await child_of(server, submitted.run.id)
            assert (await server.runs.wait(child.id)).status == "finished"


async def test_the_next_run_of_the_conversation_resumes_and_reports_a_background_child(stage: Any) -> None:
    script = [
        *BACKGROUND,
        Reply(when="go", text="Started."),
        Reply(when="and", tool_calls=[ToolCall("run_status", {})], hang_at=0),
        Reply(when="and", text="Fine."),
        Reply(when="later", text="Yes."),
        Reply(when="latest", text="No."),
    ]
    async with stage(script, agents=AGENTS) as on:
        async with open_engine(on.engine.settings) as first:
            submitted = await first.runs.submit(go(on))
            await reach(first, submitted.run.id, "finished")
            await on.called(3)
        conversation = submitted.conversation.id
        second = await on.submit("and", conversation=conversation)
        child = await child_of(on.engine, submitted.run.id)
        assert (await on.engine.runs.wait(child.id)).status == "finished"
        await on.called(5)
        on.server.release()
        final = await on.engine.runs.wait(second.run.id)
        assert "the result" in await outputs(on.engine, final)
        for text in ("later", "latest"):
            await on.ask(text, conversation=conversation)
        line = f"The background agent explorer ({child.id}) has ended: finished."
        told = {
            request.user_text: line in str(request.json["messages"][0]["content"])
            for request in on.server.requests
            if request.user_text != "slow"
        }
        assert told == {"go": False, "and": True, "later": True, "latest": False}, "it ended while `and` ran"


async def test_resuming_a_run_resumes_its_background_children(stage: Any) -> None:
    script = [*BACKGROUND, Reply(when="go", text="never ends", hang_at=3), Reply(when="go", text="Done.")]
    async with stage(script, agents=AGENTS) as on:
        async with open_engine(on.engine.settings) as first:
            submitted = await first.runs.submit(go(on))
            await on.called(3)
        assert (await on.engine.runs.current(submitted.run.id)).status == "interrupted"
        await on.engine.runs.resume(submitted.run.id)
        child = await child_of(on.engine, submitted.run.id)
        for run in (submitted.run, child):
            assert (await on.engine.runs.wait(run.id)).status == "finished"
        assert text_of((await on.engine.store.conversations.message(child.message)).parts).endswith("the result")


@pytest.mark.damaged  # the end of the parent is written directly, as a process does that dies right after it
async def test_a_server_stops_children_whose_parent_was_stopped_by_a_dead_process(stage: Any) -> None:
    async with stage(HANGS, agents=AGENTS) as on:
        async with open_engine(on.engine.settings) as first:
            submitted = await first.runs.submit(go(on, on_crash="resume"))
            await reach(first, submitted.run.id, "waiting")
            await on.called(2)
        store = on.engine.store
        fence = await store.records.claim(submitted.run.id, "dead", statuses=frozenset({"waiting"}))
        end = Event("chunks", (finish("other"),), run=submitted.run.id, phase="end", key="run")
        await store.log.append(fence.conversation, [end], fence=fence, changes=[End("cancelled")])
        child = await child_of(on.engine, submitted.run.id)
        async with open_engine(on.engine.settings, resume=True) as server:
            assert (await server.runs.wait(child.id)).status == "cancelled"
        assert len(on.server.requests) == 2


async def test_asking_for_the_status_resumes_a_background_child_whose_process_died(stage: Any) -> None:
    script = [
        starts("look around", background=True),
        ASKS[1],
        Reply(when="go", tool_calls=[ToolCall("run_status", {})], hang_at=0),
        Reply(when="look around", text="never ends", hang_at=3),
        Reply(when="look around", text="Seen."),
        Reply(when="go", text="Done."),
    ]
    async with stage(script, agents=AGENTS, permissions=ASKING) as on:
        submitted = await on.submit("go")
        child = await child_of(on.engine, submitted.run.id)
        await reach(on.engine, child.id, "waiting")
        await on.called(3)
        async with open_engine(on.engine.settings) as other:
            (asked,) = await other.store.records.approvals(run=child.id)
            await other.runs.answer(asked.id, Answer(True))
            await on.called(4)
        on.server.release()
        assert [(await on.engine.runs.wait(run.id)).status for run in (submitted.run, child)] == ["finished", "finished"]
