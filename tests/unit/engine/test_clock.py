"""The clock of a process, on a time that the test sets."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from moot.engine.clock import SPARE, Clock

pytestmark = pytest.mark.anyio


class Time:
    """A time in seconds, which only the test changes."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> int:
        return int(self.seconds * 1_000_000)

    def monotonic(self) -> float:
        return self.seconds


class Works:
    """A clock and the keys of the work that it has done."""

    def __init__(self, group: Any) -> None:
        self.time = Time()
        self.clock = Clock(self.time, group)
        self.done: list[str] = []

    def at(self, key: str, second: float) -> None:
        async def work() -> None:
            self.done.append(key)

        self.clock.at(key, int(second * 1000), work)

    async def move(self, second: float) -> None:
        self.time.seconds = second
        ticked = anyio.Event()

        async def tick() -> None:
            ticked.set()

        self.clock.at("tick", 0, tick)
        await ticked.wait()


async def test_work_is_done_once_when_it_is_due_and_replaced_work_is_not_done() -> None:
    async with anyio.create_task_group() as group:
        works = Works(group)
        for key, second in (("b", 1_020), ("a", 1_010), ("never", 1_010), ("moved", 1_010)):
            works.at(key, second)
        works.clock.cancel("never")
        works.at("moved", 1_030)
        for second, done in ((1_009, []), (1_010, ["a"]), (1_020, ["a", "b"]), (1_031, ["a", "b", "moved"]), (9_000, ["a", "b", "moved"])):
            await works.move(second)
            assert works.done == done
        assert len(works.clock) == 0
        group.cancel_scope.cancel()


async def test_work_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("broken")

    async with anyio.create_task_group() as group:
        works = Works(group)
        works.clock.at("bad", 1_010_000, fail)
        works.at("good", 1_011)
        await works.move(1_012)
        assert works.done == ["good"] and "bad failed when it was due: broken" in caplog.text
        group.cancel_scope.cancel()


@pytest.mark.parametrize("step", [0, 1])
async def test_entries_that_are_set_again_take_no_memory(step: int) -> None:
    async with anyio.create_task_group() as group:
        works = Works(group)
        for round in range(1_000):
            for number in range(10):
                works.at(str(number), 5_000 + round * step)
        assert len(works.clock) == 10 and len(works.clock._heap) <= 2 * 10 + SPARE  # pyright: ignore[reportPrivateUsage]
        await works.move(7_000)
        assert sorted(works.done) == [str(number) for number in range(10)]
        group.cancel_scope.cancel()
