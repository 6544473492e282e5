"""Sub-agents: a run starts others, waits for them, without a task if it takes long, and continues with their results."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from moot.engine import open_engine
from moot.errors import StoreError
from moot.runtime.children import committed
from moot.runtime.journal import LEG, PARKED
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.limits import Limits
from moot.types.message import text_of, text_part
from moot.types.run import Prompt, Run, RunStatus

pytestmark = pytest.mark.anyio

AGENTS = {
    "default": Agent(agents=("explorer",)),
    "explorer": Agent("explorer", tools=("read_file", "shell"), agents=("explorer",)),
}


def delegates(prompt: str, **arguments: Any) -> ToolCall:
    return ToolCall("delegate", {"agent": "explorer", "prompt": prompt, **arguments})


def output_of(message: Any, tool: str = "delegate") -> str:
    (part,) = (part for part in message.parts if part["type"] == f"tool-{tool}")
    return str(part.get("output") or part.get("errorText"))


async def children(on: Any, run: Run) -> list[Run]:
    return await on.engine.store.records.children(run.id)


async def until(on: Any, parent: Run, awaits: str | None, status: str = "waiting") -> Run:
    with anyio.fail_after(60):
        while (run := await on.engine.store.records.run(parent.id)).status != status or run.awaits != awaits:
            await anyio.sleep(0.01)
    return run


async def test_the_parent_continues_with_the_last_text_of_its_child(stage: Any) -> None:
    script = [
        Reply(when="count the files", tool_calls=[delegates("list them")]),
        Reply(when="list them", text="There are 3."),
        Reply(when="count the files", text="Three."),
    ]
    async with stage(script, agents=AGENTS) as on:
        run, message = await on.ask("count the files")
        assert (run.status, text_of(message.parts), output_of(message)) == ("finished", "Three.", "There are 3.")
        (child,) = await children(on, run)
        conversation = await on.engine.store.conversations.get(child.conversation)
        assert (child.trigger, child.agent, conversation.parent) == ("delegate", "explorer", run.conversation)
        listed = await on.engine.store.conversations.list()
        assert [one.id for one in listed.items] == [run.conversation]
        below = await on.engine.store.conversations.list(parent=run.conversation)
        assert [one.id for one in below.items] == [child.conversation]


async def test_a_run_is_parked_only_for_a_child_that_takes_long(stage: Any) -> None:
    script = [
        Reply(when="go", tool_calls=[delegates("first")]),
        Reply(when="first", text="At once."),
        Reply(when="go", tool_calls=[delegates("second")]),
        Reply(when="second", text="Later.", hang_at=1),
        Reply(when="go", text="Done."),
    ]
    async with stage(script, agents=AGENTS) as on:
        submitted = await on.submit("go")
        assert not (await until(on, submitted.run, "run")).held
        on.server.release()
        await on.engine.runs.wait(submitted.run.id)
        events = await on.engine.store.log.read(submitted.conversation.id, run=submitted.run.id)
        assert [event.body for event in events if event.kind == "meta"] == [PARKED, LEG]
        assert len(await children(on, submitted.run)) == 2


async def test_a_store_error_of_a_child_does_not_fail_its_parent(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [
        Reply(when="count", tool_calls=[delegates("list")]),
        Reply(when="list", text="There are 3."),
        Reply(when="count", text="Three."),
    ]
    async with stage(script, agents=AGENTS) as on:
        waited: list[str] = []
        wait = on.engine.runs.wait

        async def failing(run: str) -> Run:
            if waited or (await on.engine.store.records.run(run)).parent_run is None:
                return await wait(run)
            waited.append(run)
            raise StoreError("The disk is full.")

        monkeypatch.setattr(on.engine.runs, "wait", failing)
        run, message = await on.ask("count")
        assert (run.status, [child.id for child in await children(on, run)]) == ("finished", waited)
        assert output_of(message) == "There are 3."


async def test_a_summary_ends_the_child_and_is_its_result(stage: Any) -> None:
    script = [
        Reply(when="count", tool_calls=[delegates("list")]),
        Reply(when="list", text="Working.", tool_calls=[ToolCall("finish_task", {"summary": "3 files"})]),
        Reply(when="count", text="Three."),
    ]
    async with stage(script, agents=AGENTS) as on:
        run, message = await on.ask("count")
        assert output_of(message) == "3 files"
        assert (await children(on, run))[0].status == "finished" and len(on.server.requests) == 3


async def test_a_summary_that_was_refused_does_not_end_the_child(stage: Any) -> None:
    script = [
        Reply(when="count", tool_calls=[delegates("list")]),
        Reply(when="list", tool_calls=[ToolCall("finish_task", {"summary": ""})]),
        Reply(when="list", tool_calls=[ToolCall("finish_task", {"summary": "3 files"})]),
        Reply(when="count", text="Three."),
    ]
    async with stage(script, agents=AGENTS) as on:
        _, message = await on.ask("count")
        assert output_of(message) == "3 files" and len(on.server.requests) == 4


async def test_agents_that_are_started_together_share_a_context(stage: Any) -> None:
    call = delegates("first task", context="All paths are relative.", more=[{"agent": "explorer", "prompt": "second task"}])
    script = [
        Reply(when="both", tool_calls=[call]),
        Reply(when="first task", text="one"),
        Reply(when="second task", text="two"),
        Reply(when="both", text="Done."),
    ]
    async with stage(script, agents=AGENTS) as on:
        run, message = await on.ask("both")
        assert output_of(message) == "1. one\n\n2. two"
        for child in await children(on, run):
            branch = await on.engine.store.conversations.branch(child.conversation)
            assert text_of(branch[0].parts).startswith("All paths are relative.")


async def test_cancelling_a_waiting_parent_stops_its_children(stage: Any) -> None:
    script = [Reply(when="go", tool_calls=[delegates("hang")]), Reply(when="hang", text="never ends", hang_at=3)]
    async with stage(script, agents=AGENTS) as on:
        submitted = await on.submit("go")
        run = await until(on, submitted.run, "run")
        assert not run.held
        await on.engine.runs.cancel(run.id)
        (child,) = await children(on, run)
        assert [(await on.engine.runs.wait(one)).status for one in (run.id, child.id)] == ["cancelled", "cancelled"]


async def test_a_question_of_a_child_is_reported_to_followers_of_its_parent(stage: Any) -> None:
    script = [
        Reply(when="go", tool_calls=[delegates("look around")]),
        Reply(when="look around", tool_calls=[ToolCall("shell", {"command": "echo looked > seen"})]),
        Reply(when="look around", text="Seen."),
        Reply(when="go", text="Good."),
    ]
    async with stage(script, mode="ask", agents=AGENTS) as on:
        submitted = await on.submit("go", settings={"attended": True})
        approvals = on.engine.store.records.approvals
        waiting = await on.engine.runs.wait(submitted.run.id)
        (start,) = await approvals(run=waiting.id)
        assert (waiting.awaits, start.tool) == ("person", "delegate")
        await on.engine.runs.answer(start.id, Answer(True))
        waiting = await on.engine.runs.wait(submitted.run.id)
        (asked,) = await approvals(run=waiting.id, tree=True)
        assert (waiting.awaits, asked.tool, await approvals(run=waiting.id)) == ("run", "shell", [])
        assert asked.expires_at is None, "a person at a terminal has started its parent"
        await on.engine.runs.answer(asked.id, Answer(True))
        final = await on.engine.runs.wait(submitted.run.id)
        message = await on.engine.store.conversations.message(final.message)
        assert (final.status, text_of(message.parts), output_of(message)) == ("finished", "Good.", "Seen.")
        assert [one.tool for one in await approvals(run=final.id, open_only=False)] == ["delegate"], "the repeated call asked again"


async def test_an_edited_prompt_is_the_one_that_the_child_gets(stage: Any) -> None:
    script = [
        Reply(when="go", tool_calls=[delegates("too wide")]),
        Reply(when="narrow", text="ok"),
        Reply(when="go", text="Good."),
    ]
    async with stage(script, mode="ask", agents=AGENTS) as on:
        submitted = await on.submit("go")
        await on.engine.runs.wait(submitted.run.id)
        (start,) = await on.engine.store.records.approvals(run=submitted.run.id)
        await on.engine.runs.answer(start.id, Answer(True, arguments=b'{"agent":"explorer","prompt":"narrow"}'))
        final = await on.engine.runs.wait(submitted.run.id)
        (child,) = await children(on, final)
        assert (await on.engine.store.conversations.get(child.conversation)).title == "narrow"
        assert final.status == "finished"


async def test_a_background_child_is_reported_in_the_next_step(stage: Any) -> None:
    script = [
        Reply(when="go", tool_calls=[delegates("slow", background=True)]),
        Reply(when="slow", text="the result"),
        Reply(when="go", tool_calls=[ToolCall("run_status", {})], hang_at=0),
        Reply(when="go", text="Fine."),
    ]
    async with stage(script, agents=AGENTS) as on:
        submitted = await on.submit("go")
        await on.called(3)
        (child,) = await children(on, submitted.run)
        await on.engine.runs.wait(child.id)
        on.server.release()
        final = await on.engine.runs.wait(submitted.run.id)
        message = await on.engine.store.conversations.message(final.message)
        assert final.status == "finished" and "was started" in output_of(message)
        assert "the result" in output_of(message, "run_status")
        line = f"The background agent explorer ({child.id}) has ended: finished."
        told = [line in str(request.json["messages"][0]["content"]) for request in on.server.requests]
        assert (told[0], told[-1]) == (False, True)


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        (Limits(depth=1), "1 levels deep"),
        (Limits(subagents_per_run=1), "has already started 1"),
        (Limits(subagents_per_user=1), "1 sub-agents are"),
    ],
)
async def test_limits_of_depth_and_number_hold(stage: Any, limits: Limits, problem: str) -> None:
    inner = [delegates("innermost"), delegates("innermost too")]
    script = [
        Reply(when="outer", tool_calls=[delegates("inner")]),
        Reply(when="inner", tool_calls=inner, times=1),
        Reply(when="innermost", text="at the bottom", times=0),
        Reply(when="inner", text="the inner text"),
        Reply(when="outer", text="end"),
    ]
    async with stage(script, agents=AGENTS, limits=limits) as on:
        run, _ = await on.ask("outer")
        assert run.status == "finished"
        (child,) = await children(on, run)
        message = await on.engine.store.conversations.message(child.message)
        errors = [str(part.get("errorText")) for part in message.parts if part["type"] == "tool-delegate" and part.get("errorText")]
        assert errors and all(problem in error for error in errors)


async def test_an_agent_that_is_not_listed_cant_be_called(stage: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("delegate", {"agent": "default", "prompt": "x"})]), Reply(text="end")]
    async with stage(script, agents=AGENTS) as on:
        _, message = await on.ask("go")
        assert "The agent 'default' can't be called from here. Available agents: explorer." in output_of(message)


async def test_tools_for_sub_agents_are_offered_only_where_they_work(stage: Any) -> None:
    script = [
        Reply(when="go", tool_calls=[delegates("look")]),
        Reply(when="look", text="ok"),
        Reply(when="go", text="end"),
        Reply(text="alone"),
    ]
    async with stage(script, agents={**AGENTS, "alone": Agent("alone"), "explorer": Agent("explorer")}) as on:
        await on.ask("go")
        await on.ask("by itself", agent="alone")
        offered = [{tool["function"]["name"] for tool in request.json["tools"]} for request in on.server.requests]
        assert [names & {"delegate", "run_status", "finish_task"} for names in offered] == [
            {"delegate", "run_status"},
            {"finish_task"},
            {"delegate", "run_status"},
            set(),
        ]


async def test_a_child_gets_no_folder_and_no_budget_beyond_its_parents(stage: Any, tmp_path: Any) -> None:
    outside = str(tmp_path / "outside")
    agents = {**AGENTS, "explorer": Agent("explorer", allowed_uris=(outside,))}
    priced = {"scripted": {"context": 100_000, "price": {"input": 1.0, "output": 2.0}}}
    script = [Reply(when="go", tool_calls=[delegates("look")]), Reply(when="look", text="ok"), Reply(when="go", text="end")] * 2
    async with stage(script, agents=agents, priced=priced, limits=Limits(cost=1_000_000_000)) as on:
        run, _ = await on.ask("go", allowed_uris=(str(tmp_path),))
        (child,) = await children(on, run)
        conversation = await on.engine.store.conversations.get(child.conversation)
        assert conversation.allowed_uris == (outside,)
        assert child.settings["max_cost"] in range(1, 500_000_000)
        run, _ = await on.ask("go")
        (child,) = await children(on, run)
        assert (await on.engine.store.conversations.get(child.conversation)).allowed_uris == ()


async def test_agents_that_are_started_together_share_the_budget_with_their_parent(stage: Any) -> None:
    priced = {"scripted": {"context": 100_000, "price": {"input": 1.0, "output": 2.0}}}
    call = delegates("first task", more=[{"agent": "explorer", "prompt": "second task"}])
    script = [
        Reply(when="go", tool_calls=[call]),
        Reply(when="task", text="ok", times=2),
        Reply(when="go", text="end"),
    ]
    limit = 1_000_000_000
    async with stage(script, agents=AGENTS, priced=priced, limits=Limits(cost=limit)) as on:
        run, _ = await on.ask("go")
        shares: list[Any] = [child.settings["max_cost"] for child in await children(on, run)]
        assert shares == pytest.approx([limit / 3, limit / 3], rel=0.01)
        assert sum(shares) < limit * 2 / 3


async def test_what_a_child_left_to_its_own_children_counts_for_their_grandparent() -> None:
    def run(id: str, parent: str, status: RunStatus, cost: int | None, promised: int = 0) -> Run:
        return Run(id, id, id, parent_run=parent, status=status, cost=cost, started_at=1, settings={"max_cost": promised})

    ended, inner, left = run("ended", "top", "finished", 5), run("inner", "ended", "failed", 3), run("left", "inner", "running", None, 20)
    assert committed("top", [ended, inner, left]) == 28
    assert committed("top", [run("works", "top", "waiting", None, 50), run("below", "works", "finished", 7)]) == 50, "its limit covers it"
    assert committed("top", [ended, run("unknown", "ended", "cancelled", None)]) is None
    assert committed("top", [Run("never", "c", "m", parent_run="top", status="cancelled")]) == committed("top", []) == 0


async def test_a_run_with_other_tools_is_not_offered_delegate(stage: Any) -> None:
    agents = {"default": Agent(agents=("explorer",)), "none": Agent("none", agents=("explorer",), tools=()), "explorer": Agent("explorer")}
    async with stage([Reply(text="ok", times=0)], agents=agents) as on:
        for tools in (None, ["read_file"], ["delegate", "read_file"], False):
            await on.ask("go", settings={} if tools is None else {"tools": tools})
        await on.ask("go", agent="none")
        offered = [{tool["function"]["name"] for tool in request.json.get("tools", ())} for request in on.server.requests]
        assert ["delegate" in names for names in offered] == [True, False, True, False, False]
        assert offered[1] == {"read_file"}


async def test_a_dead_process_resumes_both_from_either_position(stage: Any) -> None:
    script = [
        Reply(when="go", tool_calls=[delegates("hang")]),
        Reply(when="hang", text="never ends", hang_at=3),
        Reply(when="hang", text="now it ends"),
        Reply(when="go", text="All done."),
    ]
    async with stage(script, agents=AGENTS) as on:
        async with open_engine(on.engine.settings) as first:
            prompt = Prompt((text_part("go"),), directory=str(on.directory), on_crash="resume")
            submitted = await first.runs.submit(prompt)
            await until(on, submitted.run, "run")
            await on.called(2)
        (child,) = await children(on, submitted.run)
        assert (await on.engine.runs.current(child.id)).status == "interrupted"
        await on.engine.runs.resume(submitted.run.id)
        final = await on.engine.runs.wait(submitted.run.id)
        message = await on.engine.store.conversations.message(final.message)
        assert (final.status, text_of(message.parts), output_of(message)) == ("finished", "All done.", "now it ends")
        assert len(await children(on, submitted.run)) == 1


async def test_only_own_children_can_be_stopped(stage: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("run_status", {"run": "other", "cancel": True})]), Reply(text="end")]
    async with stage(script, agents=AGENTS) as on:
        _, message = await on.ask("go")
        assert "no sub-agent with the run id 'other'" in output_of(message, "run_status")
