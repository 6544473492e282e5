"""Ids: sorted by time, unique, and derived ones the same for the same thing."""

from __future__ import annotations

import re
import threading
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from moot.types.ids import SystemClock, Uuid7, exchange_id, llm_key, new_id, tool_key

MOMENTS = st.integers(min_value=0, max_value=2**48 * 1000 - 1_000_000)


class Hands:
    """A clock that shows a given time."""

    def __init__(self, *moments: int) -> None:
        self.moments = list(moments)

    def now(self) -> int:
        return self.moments.pop(0) if len(self.moments) > 1 else self.moments[0]

    def monotonic(self) -> float:
        return 0.0


@given(st.lists(MOMENTS, min_size=1, max_size=30))
def test_ids_sort_in_creation_order_whatever_the_clock_does(moments: list[int]) -> None:
    make = Uuid7(Hands(*moments))
    made = [make() for _ in moments]
    assert made == sorted(set(made))


@given(MOMENTS)
def test_an_id_is_a_version_seven_uuid_with_its_millisecond(moment: int) -> None:
    id = UUID(Uuid7(Hands(moment))())
    assert (id.version, id.variant) == (7, "specified in RFC 4122")
    assert id.int >> 80 == moment // 1000


def test_a_stopped_clock_gives_ids_in_order() -> None:
    make = Uuid7(Hands(1_700_000_000_000_000))
    made = [make() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_threads_never_share_an_id() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2000


def test_ids_are_lower_case_text() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", new_id())


def test_the_system_clock_counts_microseconds_and_never_goes_back() -> None:
    clock = SystemClock()
    assert 1_700_000_000_000_000 < clock.now() < 10_000_000_000_000_000
    assert clock.monotonic() <= clock.monotonic()


COUNT = st.integers(min_value=0, max_value=10_000)
PURPOSE = st.sampled_from(["answer", "compact", "title", "search", "replay"])


@given(st.lists(st.tuples(COUNT, COUNT, PURPOSE), unique=True, max_size=20))
def test_derived_ids_are_unique(tries: list[tuple[int, int, str]]) -> None:
    assert len({exchange_id("run", step, attempt, purpose) for step, attempt, purpose in tries}) == len(tries)


def test_derived_ids_have_their_stored_form() -> None:
    assert exchange_id("r", 2, 1) == "r:2.1"
    assert exchange_id("r", 0, 0, "title") == "r:title:0.0"
    assert llm_key(2, 1) == "llm:2.1"
    assert tool_key(2, 3) == "tool:2.3"
