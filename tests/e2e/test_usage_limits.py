"""Runs that wait until a provider's usage limit resets: on time, with several processes, after crashes and when they are cancelled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import anyio
import pytest

from e2e.cron_stage import HOUR, START, Jobs, opener
from moot.cli.commands.chat.runs import waits_for
from moot.engine import open_engine
from moot.testing.script import Reply
from moot.types.limits import Limits
from moot.types.message import text_of

pytestmark = pytest.mark.anyio

LIMITED = [Reply(status=429, retry_after=1800, error="usage limit reached"), Reply(text="Now it works.", times=0)]


@pytest.fixture
def jobs(stage: Any) -> Any:
    return opener(stage)


async def waiting(on: Any, run: str) -> Any:
    with anyio.fail_after(60):
        while (found := await on.engine.store.records.run(run)).status not in ("waiting", "failed", "finished"):
            await anyio.sleep(0.01)
    return found


async def test_a_run_waits_for_the_reset_of_a_usage_limit_and_continues(jobs: Any) -> None:
    script = [Reply(status=429, retry_after=1800, error="usage limit reached"), Reply(text="Now it works.")]
    async with jobs(script, limits=Limits(wait_for_reset=HOUR)) as at:
        submitted = await at.on.submit("go")
        run = await waiting(at.on, submitted.run.id)
        assert (run.status, run.awaits, run.wake_at, run.owner) == ("waiting", "time", (START + 1800) * 1000, None)
        await at.move(1799)
        assert (await at.on.engine.store.records.run(run.id)).status == "waiting"
        await at.move(1)
        assert (await at.on.engine.runs.wait(run.id)).status == "finished"
        message = await at.on.engine.store.conversations.message(run.message)
        (note,) = (part["data"] for part in message.parts if part["type"] == "data-note")
        assert note["until"] == (START + 1800) * 1000 and "The run continues at" in note["text"]
        assert text_of(message.parts) == "Now it works."


@pytest.mark.parametrize("limit", [0, 600])
async def test_a_run_does_not_wait_longer_than_its_limit(jobs: Any, limit: float) -> None:
    async with jobs([Reply(status=429, retry_after=1800)], limits=Limits(wait_for_reset=limit)) as at:
        run, _ = await at.on.ask("go")
        assert run.status == "failed"


async def test_a_provider_that_keeps_postponing_its_reset_is_given_up(jobs: Any) -> None:
    async with jobs([Reply(status=429, retry_after=1800, times=0)], limits=Limits(wait_for_reset=HOUR)) as at:
        submitted = await at.on.submit("go")
        for requests in (1, 2):
            await at.on.called(requests)
            assert (await waiting(at.on, submitted.run.id)).awaits == "time"
            await at.move(1800)
        assert (await at.on.engine.runs.wait(submitted.run.id)).status == "failed"
        assert len(at.on.server.requests) == 3


@pytest.mark.parametrize("restarts", [False, True])
async def test_another_process_continues_a_run_whose_process_is_gone(jobs: Any, restarts: bool) -> None:
    async with jobs(LIMITED, limits=Limits(wait_for_reset=HOUR)) as at:
        if restarts:
            run = await parked(at)
        async with open_engine(at.on.engine.settings, clock=at.time, resume=True) as second:
            if not restarts:
                run = await parked(at)
                await second.runs.sweep(resume=True)  # as a server does all the time
            at.on.engine.runs.clock.cancel(f"run:{run.id}")  # the first process was killed
            other = Jobs(replace(at.on, engine=second), at.time)
            await other.move(1799)
            assert (await second.store.records.run(run.id)).status == "waiting"
            await other.move(1)
            assert (await second.runs.wait(run.id)).status == "finished"
        assert len(at.on.server.requests) == 2


async def test_of_several_processes_one_continues_a_run(jobs: Any) -> None:
    async with jobs(LIMITED, limits=Limits(wait_for_reset=HOUR)) as at:
        run = await parked(at)
        async with open_engine(at.on.engine.settings, clock=at.time, resume=True) as second:
            other = Jobs(replace(at.on, engine=second), at.time)
            at.time.seconds += 1800
            await asyncio.gather(at.tick(), other.tick())
            assert (await at.on.engine.runs.wait(run.id)).status == "finished"
            await second.runs.sweep(resume=True)
        assert len(at.on.server.requests) == 2


async def test_a_waiting_run_is_cancelled_from_another_process(jobs: Any) -> None:
    async with jobs(LIMITED, limits=Limits(wait_for_reset=HOUR)) as at:
        run = await parked(at)
        async with open_engine(at.on.engine.settings, clock=at.time) as second:
            await second.runs.cancel(run.id)
            assert (await second.runs.wait(run.id)).status == "cancelled"
        await at.move(1800)
        assert (await at.on.engine.runs.wait(run.id)).status == "cancelled" and len(at.on.server.requests) == 1


async def test_the_list_of_runs_says_how_to_continue_one_that_no_process_continues(jobs: Any) -> None:
    async with jobs(LIMITED, limits=Limits(wait_for_reset=HOUR)) as at:
        run = await parked(at)  # in the past, by the clock of the machine
        assert await waits_for(at.on.engine, run) == f"moot chat resume {run.conversation[:13]}"


async def parked(at: Jobs) -> Any:
    submitted = await at.on.submit("go", on_crash="resume")
    run = await waiting(at.on, submitted.run.id)
    assert run.awaits == "time"
    return run
