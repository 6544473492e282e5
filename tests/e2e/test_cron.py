"""Cron jobs in one process, on a clock that the test sets."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import anyio
import pytest

from e2e.cron_stage import HOUR, MINUTE, START, Jobs, opener
from moot.engine import open_engine
from moot.engine.cron import CronJobs
from moot.errors import Busy, NotFound, UsageError
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.conversation import DEFAULT_PROJECT
from moot.types.cron import STOPPED, Due, Job
from moot.types.message import text_of, text_part
from moot.types.run import Prompt
from moot.types.task import TaskFilter
from moot.types.token import Token

pytestmark = pytest.mark.anyio


@pytest.fixture
def jobs(stage: Any) -> Any:
    return opener(stage)


async def test_a_job_runs_at_its_time_in_a_conversation_of_its_own(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR, model="scripted@mine")
        await at.move(HOUR)
        (record,) = await at.history(1)
        assert (record.due.at, record.outcome) == ((START + HOUR) * 1000, "finished")
        run = await at.on.engine.store.records.run(record.run)
        assert (run.trigger, run.on_crash, run.settings["unattended"]) == ("cron", "resume", "deny")
        await at.move(HOUR)
        await at.history(2)
        (conversation,) = (await at.on.engine.store.conversations.list()).items
        branch = await at.on.engine.store.conversations.branch(conversation.id)
        assert (conversation.key, [text_of(message.parts) for message in branch]) == ("cron:job", ["go", "Done."] * 2)


async def test_after_a_sleep_only_the_last_missed_time_runs(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.move(5 * HOUR + MINUTE)
        assert await at.outcomes(1) == [(5 * HOUR, "finished", 4)]
        await at.move(59 * MINUTE)
        assert await at.outcomes(2) == [(5 * HOUR, "finished", 4), (6 * HOUR, "finished", 0)]


async def test_without_catch_up_missed_times_are_only_recorded(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR, catch_up=False)
        await at.move(5 * HOUR + 2 * MINUTE)
        await at.move(58 * MINUTE)
        assert await at.outcomes(2) == [(5 * HOUR, "skipped", 5), (6 * HOUR, "finished", 0)]


async def test_a_clock_that_is_set_back_runs_no_time_again(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.move(HOUR)
        await at.move(HOUR)
        await at.history(2)
        at.time.seconds -= HOUR + 30 * MINUTE
        await at.cron.refresh()
        for _ in range(4):
            await at.move(30 * MINUTE)
        assert [entry[0] for entry in await at.outcomes(2)] == [HOUR, 2 * HOUR]
        await at.move(30 * MINUTE)
        assert [entry[0] for entry in await at.outcomes(3)] == [HOUR, 2 * HOUR, 3 * HOUR]


async def test_a_clock_that_was_a_year_ahead_does_not_stop_the_job(jobs: Any) -> None:
    year = 366 * 24 * HOUR
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.move(year)
        await at.history(1)
        other = CronJobs(at.on.engine.runtime, at.on.engine.runs)  # as after a restart
        at.time.seconds -= year
        await other.refresh()
        await at.move(HOUR)
        assert [entry[:2] for entry in await at.outcomes(2)] == [(HOUR, "finished"), (year, "finished")]


async def test_a_job_whose_last_run_is_open_is_skipped(jobs: Any) -> None:
    async with jobs([Reply(text="slow answer", hang_at=1), Reply(text="Done.", times=0)]) as at:
        await at.add(every=HOUR)
        await at.move(HOUR)
        await at.on.called()
        await at.move(HOUR)
        with anyio.fail_after(60):
            while len(found := await at.cron.of("local").history("job")) < 2:
                await anyio.sleep(0.01)
        assert [record.outcome for record in found] == ["skipped", "running"] and "has not ended" in found[0].reason
        await at.on.engine.runs.cancel(found[1].run)
        await at.history(2)
        await at.move(HOUR)
        assert [entry[1] for entry in await at.outcomes(3)] == ["cancelled", "skipped", "finished"]


async def test_two_processes_on_one_home_run_each_time_once(jobs: Any) -> None:
    async with jobs() as at, open_engine(at.on.engine.settings, clock=at.time) as second:
        await at.add(every=HOUR)
        await second.cron.refresh()
        other = Jobs(replace(at.on, engine=second), at.time)
        for hour in range(1, 4):
            at.time.seconds += HOUR
            await asyncio.gather(at.tick(), other.tick())
            await at.history(hour)
        assert await at.outcomes(3) == [(hour * HOUR, "finished", 0) for hour in (1, 2, 3)]
        assert len(at.on.server.requests) == 3


async def test_a_restart_catches_up_once_and_repeats_nothing(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.move(HOUR)
        await at.history(1)
        at.on.engine.runs.clock.cancel("cron:local:job")  # the first process is gone
        at.time.seconds += 3 * HOUR
        await CronJobs(at.on.engine.runtime, at.on.engine.runs).refresh()
        await at.tick()
        assert await at.outcomes(2) == [(HOUR, "finished", 0), (4 * HOUR, "finished", 2)]
        await CronJobs(at.on.engine.runtime, at.on.engine.runs).refresh()
        await at.tick()
        assert len(await at.history(2)) == 2


async def test_a_failed_run_is_repeated_with_growing_pauses(jobs: Any) -> None:
    script = [Reply(status=400, error="broken", times=2), Reply(text="Done.", times=0)]
    async with jobs(script) as at:
        await at.add(every=HOUR, retries=2)
        await at.move(HOUR)
        (record,) = await at.history(1)
        assert (record.outcome, record.settled) == ("failed", False)
        assert at.on.engine.runs.clock.due(f"cron-retry:{record.no}") == at.time.now() // 1000 + 30_000
        await at.move(30)
        with anyio.fail_after(60):
            while (record := (await at.history(1))[0]).due.attempt < 2 or record.outcome != "failed":
                await anyio.sleep(0.01)
        assert at.on.engine.runs.clock.due(f"cron-retry:{record.no}") == at.time.now() // 1000 + 60_000
        await at.move(60)
        with anyio.fail_after(60):
            while not (record := (await at.history(1))[0]).settled:
                await anyio.sleep(0.01)
        assert (record.outcome, record.due.attempt) == ("finished", 3)
        branch = await at.on.engine.store.conversations.branch(record.conversation)
        assert [message.role for message in branch] == ["user", "assistant"], "a retry answers the same prompt"


async def test_answers_are_delivered_always_or_by_the_tool_or_never(jobs: Any, caplog: pytest.LogCaptureFixture) -> None:
    script = [
        Reply(when="plain", text="All is well."),
        Reply(when="by tool", text="Thinking.", tool_calls=[ToolCall("deliver", {"text": "The build is red."})]),
        Reply(when="by tool", text="Private words."),
        Reply(when="silent", text="Nobody hears this."),
    ]
    caplog.set_level(logging.INFO, "moot.cron")
    async with jobs(script) as at:
        await at.add("plain", prompt="plain", every=HOUR)
        await at.add("tool", prompt="by tool", every=HOUR, delivery="tool")
        await at.add("silent", prompt="silent", every=HOUR, delivery="never")
        await at.move(HOUR)
        for name in ("plain", "tool", "silent"):
            (record,) = await at.history(1, name=name)
            assert record.settled
        await at.tick()  # deliveries are tasks of their own
        logged = [record.getMessage() for record in caplog.records if record.name == "moot.cron"]
        assert sorted(logged) == ["plain finished: All is well.", "tool finished: The build is red."]
        offered = [[tool["function"]["name"] for tool in request.json.get("tools", [])] for request in at.on.server.requests]
        assert ["deliver" in names for names in offered].count(True) == 2


async def test_without_wake_the_prompt_is_only_stored(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR, wake=False)
        await at.move(HOUR)
        (record,) = await at.history(1)
        branch = await at.on.engine.store.conversations.branch(record.conversation)
        assert (record.outcome, record.run, [text_of(message.parts) for message in branch]) == ("stored", None, ["go"])
        await at.move(HOUR)
        await at.history(2)
        assert len(await at.on.engine.store.conversations.branch(record.conversation)) == 2 and not at.on.server.requests


async def test_a_paused_job_does_not_run_and_does_not_catch_up(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.cron.of("local").pause("job")
        await at.cron.refresh()
        await at.move(3 * HOUR)
        await at.cron.of("local").pause("job", paused=False)
        await at.cron.refresh()
        await at.move(HOUR)
        assert await at.outcomes(1) == [(4 * HOUR, "finished", 0)]


async def test_a_removed_job_does_not_run_and_keeps_its_history(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.move(HOUR)
        await at.history(1)
        await at.cron.of("local").remove("job")
        await at.cron.refresh()
        await at.move(5 * HOUR)
        assert len(await at.history(1)) == 1 and await at.cron.of("local").list() == []


async def test_jobs_of_the_configuration_run_and_can_be_paused_but_not_replaced(jobs: Any) -> None:
    async with jobs() as at:
        runtime = at.on.engine.runtime
        job = Job("job", "from the file", every=HOUR, directory=str(at.on.directory), configured=True)
        runtime.settings = replace(runtime.settings, cron={"job": job})
        await at.cron.refresh()
        await at.move(HOUR)
        await at.history(1)
        mine = at.cron.of("local")
        with pytest.raises(UsageError, match="defined in the configuration"):
            await mine.add("job", {"prompt": "x", "every": 60})
        with pytest.raises(UsageError, match="defined in the configuration"):
            await mine.remove("job")
        await mine.pause("job")
        await at.cron.refresh()
        await at.move(HOUR)
        assert len(await at.history(1)) == 1
        await mine.pause("job", paused=False)
        runtime.settings = replace(runtime.settings, cron={})
        await at.cron.refresh()
        await at.move(5 * HOUR)
        assert len(await at.history(1)) == 1 and await mine.list() == []


async def test_a_job_of_the_configuration_with_a_used_name_is_ignored_and_says_why(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR, prompt="stored")
        runtime = at.on.engine.runtime
        runtime.settings = replace(runtime.settings, cron={"job": Job("job", "from the file", every=HOUR, configured=True)})
        await at.cron.refresh()
        first, second = await at.cron.of("local").list()
        assert (first.job.prompt, first.error, second.job.prompt) == ("stored", "", "from the file") and "already added" in second.error
        await at.move(HOUR)
        await at.history(1)
        assert at.on.server.requests[0].user_text == "stored" and len(at.on.server.requests) == 1


async def test_a_job_that_can_not_start_is_recorded_with_the_reason(jobs: Any) -> None:
    async with jobs(agents={"default": Agent(), "clerk": Agent("clerk")}) as at:
        await at.add(every=HOUR, agent="clerk")
        runtime = at.on.engine.runtime
        runtime.settings = replace(runtime.settings, agents={"default": Agent()})
        await at.move(HOUR)
        (record,) = await at.history(1)
        assert record.outcome == "failed" and "'clerk' not found" in record.reason


async def test_a_thousand_jobs_cost_no_task_each(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        before = len(asyncio.all_tasks())
        for number in range(1000):
            await at.cron.of("local").add(f"job-{number}", {"prompt": "go", "cron": "0 9 * * *"})
        await at.cron.refresh()
        assert len(at.on.engine.runs.clock) == 1001 and len(asyncio.all_tasks()) == before


async def test_jobs_belong_to_their_owner(jobs: Any) -> None:
    async with jobs() as at:
        mara = (await at.on.engine.store.tokens.user("mara")).id
        await at.on.engine.store.tokens.create(Token("hers", mara, "mara", ("tools",)), b"digest")
        await at.cron.of(mara).add("job", {"prompt": "hers", "every": HOUR, "directory": "/"})
        with pytest.raises(NotFound):
            await at.cron.of("local").get("job")
        await at.cron.refresh()
        await at.move(HOUR)
        (record,) = await at.history(1, owner=mara)
        conversation = await at.on.engine.store.conversations.get(record.conversation)
        assert conversation.owner == mara and await at.cron.of("local").history() == []
        system = str(at.on.server.requests[0].json["messages"][0]["content"])
        assert "Directory: none" in system, "another user gets no folder without a project"


async def test_an_unattended_job_denies_what_needs_approval(jobs: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "echo yes > effect"})]), Reply(text="It was denied.")]
    async with jobs(script, mode="ask") as at:
        await at.add(every=HOUR)
        await at.move(HOUR)
        (record,) = await at.history(1)
        assert record.outcome == "finished" and not (at.on.directory / "effect").exists()


async def test_a_job_that_an_agent_adds_has_no_more_rights_than_its_run(jobs: Any) -> None:
    call = ToolCall("cron", {"action": "add", "name": "later", "prompt": "go", "every": "1h"})
    fast = ToolCall("cron", {"action": "add", "name": "fast", "prompt": "go", "every": "1s"})
    listed = ToolCall("cron", {"action": "list"})
    script = [Reply(when="plan it", tool_calls=[call, fast, listed]), Reply(text="Planned.", times=0)]
    agents = {"default": Agent(), "narrow": Agent("narrow", tools=("cron", "shell"))}
    async with jobs(script, agents=agents) as at:
        _, message = await at.on.ask("plan it", agent="narrow", settings={"tools": ["cron"], "max_cost": 5})
        outputs = [str(part.get("output") or part.get("errorText")) for part in message.parts if part["type"] == "tool-cron"]
        assert "at least 60 seconds" in outputs[1] and "later" in outputs[2]
        (state,) = await at.cron.of("local").list()
        job = state.job
        assert (job.agent, job.mode, job.unattended) == ("narrow", "auto", "deny")
        assert (job.directory, job.options) == (str(at.on.directory), {"tools": ["cron"], "max_cost": 5})
        await at.cron.refresh()
        await at.move(HOUR)
        await at.history(1, name="later")
        offered = at.on.server.requests[-1].json["tools"]
        assert [tool["function"]["name"] for tool in offered] == ["cron"]


@pytest.mark.parametrize(("mode", "outcome"), [("ask", "needs a person"), ("edits", "needs a person"), ("plan", "Not allowed")])
async def test_an_agent_adds_jobs_only_with_approval(jobs: Any, mode: str, outcome: str) -> None:
    call = ToolCall("cron", {"action": "add", "name": "later", "prompt": "go", "every": "1h"})
    async with jobs([Reply(tool_calls=[call]), Reply(text="No.")], mode=mode, agents={"default": Agent(tools=("cron",))}) as at:
        _, message = await at.on.ask("plan it", settings={"unattended": "deny"})
        assert outcome in str(message.parts) and await at.cron.of("local").list() == []


async def test_a_prompt_whose_time_is_recorded_is_refused(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.move(HOUR)
        (record,) = await at.history(1)
        with pytest.raises(Busy, match="has already run for this time"):
            await at.on.engine.runs.submit(Prompt(({"type": "text", "text": "again"},), key="cron:other", due=record.due))
        assert len((await at.on.engine.store.conversations.list()).items) == 1, "nothing of it is stored"


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("/share", "The command /share can't be used here, because it doesn't send a prompt."),
        ("/comit all", "Did you mean 'commit'?"),
        ("/compact", "There is no conversation yet. Add the job with --conversation ID"),
    ],
)
async def test_a_command_that_sends_no_prompt_is_not_sent_to_a_model(jobs: Any, prompt: str, reason: str) -> None:
    async with jobs() as at:
        await at.add(every=HOUR, prompt=prompt)
        await at.move(HOUR)
        (record,) = await at.history(1)
        assert record.outcome == "failed" and reason in record.reason and not at.on.server.requests


async def test_a_job_compacts_a_conversation(jobs: Any) -> None:
    async with jobs() as at:
        prompts = ["Count the gulls. " * 200, "And the terns?", "And the puffins?", "Thanks."]
        conversation = ""
        for prompt in prompts:
            submitted = await at.on.engine.runs.submit(Prompt((text_part(prompt),), conversation=conversation or None))
            conversation = submitted.conversation.id
            await at.on.engine.runs.wait(submitted.run.id)
        await at.add(every=HOUR, prompt="/compact the gulls", conversation=conversation)
        await at.move(HOUR)
        (record,) = await at.history(1)
        assert (record.outcome, record.run) == ("finished", None) and record.reason.startswith("Compacted: about ")
        compactions = await at.on.engine.store.tree.compactions(conversation)
        assert len(compactions) == 1
        await at.move(HOUR)
        assert len(await at.history(2)) == 2


async def test_the_reply_of_a_command_is_delivered(jobs: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with jobs() as at:
        await at.add(every=HOUR, prompt="/tasks add Feed the cat")
        with caplog.at_level(logging.INFO, "moot.cron"):
            await at.move(HOUR)
            (record,) = await at.history(1)
        assert (record.outcome, record.reason) == ("finished", "Added task #1: Feed the cat")
        assert "job finished: Added task #1: Feed the cat" in caplog.text and not at.on.server.requests
        (task,) = (await at.on.engine.store.of("local").tasks.list(DEFAULT_PROJECT, TaskFilter())).items
        assert task.title == "Feed the cat"


async def test_a_command_that_did_not_end_is_marked_as_failed_by_the_next_time(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR, prompt="/title Birds")
        assert await at.on.engine.store.jobs.record(Due("local", "job", START * 1000), "running", "")
        await at.move(HOUR)
        with anyio.fail_after(60):
            while [record.outcome for record in await at.history(1)] != ["failed", "failed"]:
                await anyio.sleep(0.01)
        stopped, current = await at.history(2)
        assert stopped.reason == STOPPED and current.reason.startswith("There is no conversation yet.")


async def test_a_slash_command_as_the_prompt_is_expanded_when_it_is_due(jobs: Any) -> None:
    async with jobs() as at:
        path = at.on.engine.settings.home / "commands/report.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Report about $1. !`echo $1`")
        await at.add(every=HOUR, prompt="/report birds", mode="auto")
        await at.move(HOUR)
        (record,) = await at.history(1)
        branch = await at.on.engine.store.conversations.branch(record.conversation)
        assert text_of(branch[0].parts).startswith("Report about birds. `echo birds`")
        assert [part.get("input") for part in branch[1].parts if part["type"] == "tool-shell"] == [{"command": "echo birds"}]
        path.write_text("---\nparameters: [{name: what, required: true}, {name: how, required: true}]\n---\n$what $how")
        await at.move(HOUR)
        (_, failed) = await at.history(2)
        assert (failed.outcome, failed.reason.startswith("The argument 'how' is missing.")) == ("failed", True)
