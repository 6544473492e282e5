"""Cron jobs in one process, on a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from moot.engine.cron import CronJobs
from moot.testing.script import Reply
from moot.types.cron import JobRun

HOUR, MINUTE = 3600, 60
START = 1_790_000_000


class Time:
    """A clock that moves only when the test moves it."""

    def __init__(self) -> None:
        self.seconds: float = START
        self.wrong: float = 0
        """Seconds by which the clock of the machine is ahead."""

    def now(self) -> int:
        return int((self.seconds + self.wrong) * 1_000_000)

    def monotonic(self) -> float:
        return self.seconds


class Jobs:
    """The jobs of a stage, and its time."""

    def __init__(self, on: Any, time: Time) -> None:
        self.on, self.time = on, time
        self.cron: CronJobs = on.engine.cron

    async def add(self, name: str = "job", *, owner: str = "local", prompt: str = "go", **values: Any) -> None:
        await self.cron.of(owner).add(name, {"prompt": prompt, "directory": str(self.on.directory), **values})
        await self.cron.refresh()

    async def move(self, seconds: float) -> None:
        """Move the time, and do what is due."""
        self.time.seconds += seconds
        await self.tick()

    async def tick(self) -> None:
        done = anyio.Event()

        async def last() -> None:
            done.set()

        # its loop sleeps in real time, and an entry that is due at once wakes it
        self.on.engine.runs.clock.at("test", 0, last)
        await done.wait()

    async def history(self, count: int, name: str = "job", owner: str = "local") -> list[JobRun]:
        """Return the history, oldest first, once it has this many entries and none of them is open."""
        with anyio.fail_after(60):
            while True:
                await self.cron.settle()
                found = await self.cron.of(owner).history(name) if count else []
                if len(found) >= count and all(record.outcome not in ("running", "queued") for record in found):
                    await self.cron.settle()  # a run may have ended after the last time
                    return (await self.cron.of(owner).history(name))[::-1] if count else []
                await anyio.sleep(0.01)

    async def outcomes(self, count: int, **more: Any) -> list[tuple[int, str, int]]:
        return [(record.due.at // 1000 - START, record.outcome, record.due.missed) for record in await self.history(count, **more)]


def opener(stage: Any) -> Callable[..., Any]:
    """Return a function that opens the jobs of a stage with this script."""

    @asynccontextmanager
    async def opened(script: Any = None, **changes: Any) -> AsyncGenerator[Jobs, None]:
        time = Time()
        async with stage(script if script is not None else [Reply(text="Done.", times=0)], clock=time, **changes) as on:
            yield Jobs(on, time)

    return opened
