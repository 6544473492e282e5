"""Cron jobs with faults: several processes, clocks that jump, full stores, revoked rights, deliveries that hang."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cron_stage import HOUR, Jobs, opener
from moot.config.trust import trust_file
from moot.engine import open_engine
from moot.engine.cron import CronJobs
from moot.errors import LimitReached, UsageError
from moot.plugins import DELIVERIES
from moot.runtime.cron import MOST_ADDED
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.conversation import Project
from moot.types.cron import Job, JobReport
from moot.types.message import text_of
from moot.types.token import Token

pytestmark = pytest.mark.anyio

YEAR = 366 * 24 * HOUR


@pytest.fixture
def jobs(stage: Any) -> Any:
    return opener(stage)


async def until(claim: Callable[[], Awaitable[Any]]) -> Any:
    """Return the first true value of the function."""
    with anyio.fail_after(60):
        while not (found := await claim()):
            await anyio.sleep(0.01)
    return found


class Delivered:
    """A delivery that keeps the reports."""

    name = "kept"
    reports: list[JobReport]
    hangs = False
    fails = False

    async def deliver(self, target: str, report: JobReport) -> None:
        if self.fails:
            raise OSError("no way there")
        if self.hangs:
            await anyio.sleep_forever()
        self.reports.append(report)


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> type[Delivered]:
    class Kept(Delivered):
        reports: list[JobReport] = []  # noqa: RUF012

    class Point:
        dist = None

        def load(self) -> type[Delivered]:
            return Kept

    monkeypatch.setitem(DELIVERIES._outside, "kept", Point())  # pyright: ignore[reportPrivateUsage]
    return Kept


async def test_two_processes_repeat_a_failed_run_once_and_deliver_its_answer(jobs: Any, delivered: type[Delivered]) -> None:
    script = [Reply(status=400, error="broken"), Reply(text="Now it works.", times=0)]
    async with jobs(script) as at, open_engine(at.on.engine.settings, clock=at.time) as second:
        await at.add(every=HOUR, retries=1, deliver="kept:there")
        await second.cron.refresh()
        other = Jobs(replace(at.on, engine=second), at.time)
        await at.move(HOUR)
        await at.history(1)
        await other.cron.settle()
        at.time.seconds += 30
        await asyncio.gather(at.tick(), other.tick())

        async def ended() -> bool:
            await at.cron.settle()
            await other.cron.settle()
            return [one.due.attempt for one in await at.cron.of("local").history("job") if one.settled] == [2]

        await until(ended)
        await at.tick()
        await other.tick()
        assert [(report.status, report.text) for report in delivered.reports] == [("finished", "Now it works.")]
        assert len(at.on.server.requests) == 2


@pytest.mark.parametrize("change", ["remove", "pause"])
async def test_a_failed_run_of_a_job_that_may_not_run_any_more_is_not_repeated(jobs: Any, change: str) -> None:
    async with jobs([Reply(status=400, error="broken", times=0)]) as at:
        await at.add(every=HOUR, retries=3)
        await at.move(HOUR)
        await at.history(1)
        await getattr(at.cron.of("local"), change)("job")
        await at.cron.refresh()
        await at.move(30)
        (record,) = await at.history(1)
        assert await until(lambda: at.history(1)) and record.due.attempt == 1 and len(at.on.server.requests) == 1


async def test_a_job_that_was_paused_a_moment_ago_does_not_start(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        await at.cron.of("local").pause("job")  # this process has not noticed it
        await at.move(HOUR)
        (record,) = await at.history(1)
        assert (record.outcome, record.reason) == ("skipped", "The job 'job' was paused.") and not at.on.server.requests


async def test_a_clock_that_was_a_year_ahead_does_not_stop_a_running_server(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        at.time.wrong = YEAR
        at.cron.adjust()
        await at.move(HOUR)
        await at.history(1)
        at.time.wrong = 0
        at.cron.adjust()
        await at.move(HOUR)
        assert [entry[:2] for entry in await at.outcomes(2)] == [(2 * HOUR, "finished"), (YEAR + HOUR, "finished")]


async def test_a_time_that_could_not_be_stored_is_tried_again(jobs: Any) -> None:
    async with jobs() as at:
        await at.add(every=HOUR)
        write = at.on.engine.store.jobs._writer.write
        await write(lambda transaction: transaction.execute("ALTER TABLE cron_run RENAME TO away"))
        await at.move(HOUR)
        await until(lambda: _is_in(at.on.engine.runs.clock, at.time.now() // 1000 + 30_000))
        await write(lambda transaction: transaction.execute("ALTER TABLE away RENAME TO cron_run"))
        await at.move(30)
        assert await at.outcomes(1) == [(HOUR, "finished", 0)]


async def _is_in(clock: Any, due: int) -> bool:
    return clock.due("cron:local:job") == due


async def test_a_changed_or_new_schedule_of_the_configuration_misses_nothing(jobs: Any) -> None:
    async with jobs() as at:
        runtime = at.on.engine.runtime

        async def configure(**schedule: Any) -> None:
            job = Job("job", "go", directory=str(at.on.directory), configured=True, **schedule)
            runtime.settings = replace(runtime.settings, cron={"job": job} if schedule else {})
            await CronJobs(runtime, at.on.engine.runs).refresh()  # as after a restart
            await at.cron.refresh()

        await configure(every=2 * HOUR)
        at.time.seconds += 90 * 60
        await configure(every=HOUR)
        await at.tick()
        assert await at.history(0) == [], "the time an hour after the first start was not missed"
        await at.move(30 * 60)
        assert await at.outcomes(1) == [(2 * HOUR, "finished", 0)]
        await configure()
        at.time.seconds += 10 * HOUR
        await configure(every=HOUR)
        await at.tick()
        assert len(await at.history(1)) == 1, "a job that was not in the configuration misses nothing"


async def test_a_user_without_a_valid_token_runs_no_jobs(jobs: Any) -> None:
    async with jobs() as at:
        tokens = at.on.engine.store.tokens
        mara = (await tokens.user("mara")).id
        await tokens.create(Token("hers", mara, "mara", ("admin",)), b"1")
        await at.add(owner=mara, every=HOUR, directory="")
        await at.move(HOUR)
        await at.history(1, owner=mara)
        await tokens.revoke("hers")
        await tokens.create(Token("other", mara, "reads", ("chat",)), b"2")
        await at.move(HOUR)
        record = (await at.history(2, owner=mara))[1]
        assert record.outcome == "failed" and "no valid token with the scope 'tools'" in record.reason
        assert len(at.on.server.requests) == 1


async def test_a_job_of_a_deleted_project_or_conversation_says_so(jobs: Any) -> None:
    async with jobs() as at:
        store = at.on.engine.store
        project = await store.projects.create(Project("shop-1", "shop"))
        await at.add("in-project", every=HOUR, project=project.id)
        _, message = await at.on.ask("hello")
        await at.add("in-conversation", every=HOUR, conversation=message.conversation)
        await store.projects.remove(project.id)
        await store.conversations.delete(message.conversation)
        await at.move(HOUR)
        for name, words in (("in-project", "No project"), ("in-conversation", "is deleted")):
            (record,) = await at.history(1, name)
            assert record.outcome == "failed" and words in record.reason, record


async def test_a_delivery_that_hangs_stops_no_other_job_and_one_that_fails_is_named(jobs: Any, delivered: type[Delivered]) -> None:
    async with jobs() as at:
        await at.add("first", every=HOUR, deliver="kept")
        await at.add("second", every=HOUR)
        delivered.hangs = True
        await at.move(HOUR)
        (record,) = await at.history(1, "first")
        assert record.reason == "The answer was not delivered: moot was stopped."
        await at.history(1, "second")
        delivered.hangs, delivered.fails = False, True
        await at.move(HOUR)
        await at.history(2, "first")

        async def noted() -> bool:
            return "no way there" in (await at.history(2, "first"))[1].reason

        await until(noted)
        delivered.fails = False
        await at.move(HOUR)
        await at.history(3, "first")

        async def received() -> bool:
            return len(delivered.reports) == 1

        await until(received)
        await until(lambda: _without_reason(at))


async def _without_reason(at: Jobs) -> bool:
    return (await at.history(3, "first"))[2].reason == ""


async def test_hooks_of_a_job_run_after_those_of_the_agent_and_know_its_last_run(jobs: Any) -> None:
    hooks = {
        "before_run": [{"tool": "shell", "arguments": {"command": "echo last was {{last_response}} >> seen"}}],
        "after_run": [{"tool": "shell", "arguments": {"command": "echo said {{response}} >> seen"}}],
    }
    hostile = "x; touch owned; $(touch owned) `touch owned`\n' \" && touch owned"
    async with jobs([Reply(text=hostile, times=0)]) as at:
        await at.add(every=HOUR, fresh=True, hooks=hooks)
        for count in (1, 2):
            await at.move(HOUR)
            await at.history(count)
        first, second = [record.conversation for record in await at.history(2)]
        assert first != second, "each run has a conversation of its own"
        assert not (at.on.directory / "owned").exists()
        seen = (at.on.directory / "seen").read_text()
        assert seen.startswith("last was \nsaid x; touch owned;") and f"last was {hostile}" in seen


async def test_hooks_and_agents_of_jobs_are_checked(jobs: Any, tmp_path: Path) -> None:
    async with jobs(agents={"default": Agent(), "program": Agent("program", agent_type="claude-code")}) as at:
        with pytest.raises(UsageError, match="can't call the tool 'deliver'"):
            await at.add(every=HOUR, agent="program", delivery="tool")
        file = at.on.directory / ".moot" / "agents" / "clerk.md"
        file.parent.mkdir(parents=True)
        file.write_text("---\ndescription: Keeps the books\n---\nCount.\n")
        trust_file(at.on.engine.settings.home, file, file.read_text())
        await at.add(every=HOUR, agent="clerk")
        with pytest.raises(UsageError, match="'clerk' not found"):
            await at.cron.of("local").add("elsewhere", {"prompt": "x", "every": 60, "agent": "clerk", "directory": str(tmp_path)})
        with pytest.raises(UsageError, match="before_run"):
            await at.cron.of("local").add("job", {"prompt": "x", "every": 60, "hooks": {"before_run": [{"arguments": {}}]}})


async def test_an_agent_adds_a_limited_number_of_jobs(jobs: Any) -> None:
    call = ToolCall("cron", {"action": "add", "name": "more", "prompt": "go", "every": "1h"})
    async with jobs([Reply(tool_calls=[call]), Reply(text="No.")], agents={"default": Agent(tools=("cron",))}) as at:
        for number in range(MOST_ADDED):
            await at.cron.of("local").add(f"job-{number}", {"prompt": "go", "cron": "0 9 * * *"})
        _, message = await at.on.ask("plan it")
        assert f"There are already {MOST_ADDED} jobs" in str(message.parts)
        assert len(await at.cron.of("local").list()) == MOST_ADDED
        assert text_of(message.parts) == "No." and LimitReached.code == "limit"


async def test_an_agent_without_network_adds_no_job_with_it(jobs: Any) -> None:
    call = ToolCall("cron", {"action": "add", "name": "online", "prompt": "go", "every": "1h"})
    script = [Reply(text="Hello."), Reply(tool_calls=[call]), Reply(text="No.")]
    async with jobs(script, agents={"default": Agent(tools=("cron",))}) as at:
        _, message = await at.on.ask("hello")
        await at.on.engine.store.conversations.update(message.conversation, settings={"network": False})
        _, message = await at.on.ask("plan it", conversation=message.conversation)
        assert "in this conversation" in str(message.parts) and await at.cron.of("local").list() == []


@pytest.mark.slow
async def test_many_jobs_at_one_time_take_turns_and_try_rarely(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: Counter[str] = Counter()
    async with jobs([Reply(text="slow answer", hang_at=1, times=0)]) as at:
        records = at.on.engine.store.records
        claim = records.claim

        async def counted(run: str, *arguments: Any, **more: Any) -> Any:
            tries[run] += 1
            return await claim(run, *arguments, **more)

        monkeypatch.setattr(records, "claim", counted)
        for number in range(40):
            await at.cron.of("local").add(f"job-{number}", {"prompt": "go", "every": HOUR, "directory": str(at.on.directory)})
        await at.cron.refresh()
        await at.move(HOUR)

        async def tried() -> bool:
            return len(tries) == 37 and max(tries.values()) >= 12

        await until(tried)
        assert sum(tries.values()) < 37 * 5, "the others wait longer, the more runs are ahead of them"
        assert len([run for run in await records.runs() if run.status == "running"]) == 3
