from __future__ import annotations

import pytest

from moot.server.credentials import ADDRESSES, SECONDS, Tries
from moot.server.problems import Problem


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_an_address_is_heard_again_after_a_while_and_others_always() -> None:
    clock = Clock()
    tries = Tries(2, now=clock)
    for _ in range(2):
        tries.check("a")
        tries.wrong("a")
    with pytest.raises(Problem, match="from a"):
        tries.check("a")
    tries.check("b")
    clock.time += SECONDS + 1
    tries.check("a")
    tries.wrong("a")
    tries.check("a")


def test_no_number_of_addresses_takes_memory_without_end() -> None:
    tries = Tries(1)
    for number in range(ADDRESSES + 5):
        tries.wrong(str(number))
    tries.check("0")
    with pytest.raises(Problem):
        tries.check(str(ADDRESSES))
