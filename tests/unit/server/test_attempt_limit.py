from __future__ import annotations

import pytest

from moot.server.credentials import ADDRESSES, SECONDS, AttemptLimit
from moot.server.problems import Problem


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_a_throttled_address_is_served_again_later_and_others_always() -> None:
    clock = Clock()
    limit = AttemptLimit(2, now=clock)
    for _ in range(2):
        limit.check("a")
        limit.record("a")
    with pytest.raises(Problem, match="from a"):
        limit.check("a")
    limit.check("b")
    clock.time += SECONDS + 1
    limit.check("a")
    limit.record("a")
    limit.check("a")


def test_memory_is_bounded_for_any_number_of_addresses() -> None:
    limit = AttemptLimit(1)
    for number in range(ADDRESSES + 5):
        limit.record(str(number))
    limit.check("0")
    with pytest.raises(Problem):
        limit.check(str(ADDRESSES))
