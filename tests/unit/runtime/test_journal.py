"""The times in a run's journal."""

from __future__ import annotations

from moot.runtime.journal import LEG, PARKED, worked
from moot.types.event import Event


def at(seconds: float, body: object = None) -> Event:
    return Event("chunks" if body is None else "meta", body=body, at=int(seconds * 1_000_000))  # type: ignore[arg-type]


def test_a_run_works_from_its_first_event_to_its_last() -> None:
    assert worked([]) == worked([at(100)]) == 0
    assert worked([at(100), at(101), at(105.5)]) == 5.5


def test_waiting_for_a_person_does_not_count() -> None:
    assert worked([at(100), at(103, PARKED), at(500, LEG), at(502)]) == 5
    assert worked([at(100), at(103, PARKED), at(500), at(502)]) == 5


def test_the_time_between_a_crash_and_its_resumption_does_not_count() -> None:
    assert worked([at(100), at(103), at(500, LEG), at(502), at(900, LEG)]) == 5


def test_a_clock_set_back_does_not_reduce_the_time() -> None:
    assert worked([at(100), at(50), at(60)]) == 10
