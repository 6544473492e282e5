"""Instants of cron jobs and periods of budgets, above all around daylight-saving changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from moot.config.schedules import MANY, check_schedule, last_until, next_after, period_of
from moot.errors import UsageError
from moot.types.cron import Job
from moot.types.limits import Period

BERLIN = ZoneInfo("Europe/Berlin")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def job(tz: str = "Europe/Berlin", **schedule: Any) -> Job:
    return Job("a", "prompt", tz=tz, **schedule)


def times(wanted: Job, start: str, count: int) -> list[str]:
    found: list[str] = []
    at: int | None = ms(start)
    while at is not None and len(found) < count:
        at = next_after(wanted, at, ms(start))
        if at is not None:
            found.append(datetime.fromtimestamp(at / 1000, UTC).astimezone(BERLIN).strftime("%m-%d %H:%M %Z"))
    return found


def test_a_time_in_the_skipped_hour_comes_once_at_its_end() -> None:
    found = times(job(cron="30 2 * * *"), "2026-03-28T00:00:00+01:00", 3)
    assert found == ["03-28 02:30 CET", "03-29 03:00 CEST", "03-30 02:30 CEST"]


def test_several_times_in_the_skipped_hour_come_once() -> None:
    assert times(job(cron="15,45 2 * * *"), "2026-03-28T12:00:00+01:00", 2) == ["03-29 03:00 CEST", "03-30 02:15 CEST"]


def test_a_time_in_the_repeated_hour_comes_once() -> None:
    found = times(job(cron="30 2 * * *"), "2026-10-24T12:00:00+02:00", 2)
    assert found == ["10-25 02:30 CEST", "10-26 02:30 CET"]


def test_a_start_within_the_repeated_hour_does_not_go_back() -> None:
    assert times(job(cron="30 2 * * *"), "2026-10-25T00:45:00+00:00", 1) == ["10-26 02:30 CET"]


def test_frequent_jobs_follow_the_real_time_through_both_changes() -> None:
    assert times(job(cron="*/30 * * * *"), "2026-10-25T00:10:00+00:00", 3) == ["10-25 02:30 CEST", "10-25 02:00 CET", "10-25 02:30 CET"]
    assert times(job(cron="*/30 * * * *"), "2026-03-29T00:10:00+00:00", 2) == ["03-29 01:30 CET", "03-29 03:00 CEST"]


def test_intervals_count_from_the_creation_of_the_job() -> None:
    every = job(every=300)
    assert [next_after(every, at, 1000) for at in (0, 1000, 300_999, 301_000)] == [301_000, 301_000, 301_000, 601_000]


def test_a_single_time_without_an_offset_is_local_to_the_zone() -> None:
    once = job(at="2026-12-24T18:00")
    assert next_after(once, ms("2026-12-01T00:00Z"), 0) == ms("2026-12-24T18:00+01:00")
    assert next_after(once, ms("2026-12-24T18:00+01:00"), 0) is None


def test_a_leap_day_comes_every_four_years() -> None:
    assert times(job(cron="0 12 29 2 *"), "2027-01-01T00:00+01:00", 2) == ["02-29 12:00 CET"] * 2


@pytest.mark.parametrize(
    ("schedule", "first", "now", "last", "missed"),
    [
        ({"cron": "0 9 * * *"}, "2026-06-01T09:00+02:00", "2026-06-04T10:00+02:00", "2026-06-04T09:00+02:00", 3),
        ({"cron": "0 0 1 1 *"}, "2016-01-01T00:00+01:00", "2026-06-04T10:00+02:00", "2026-01-01T00:00+01:00", 10),
        ({"cron": "* * * * *"}, "2025-06-01T00:00+02:00", "2026-06-01T00:00:30+02:00", "2026-06-01T00:00+02:00", MANY),
        ({"every": 60}, "2026-06-01T00:01+02:00", "2026-06-01T00:03:59+02:00", "2026-06-01T00:03+02:00", 2),
        ({"at": "2026-06-01T00:01"}, "2026-06-01T00:01+02:00", "2026-06-09T00:01+02:00", "2026-06-01T00:01+02:00", 0),
    ],
)
def test_after_downtime_the_last_instant_and_the_number_of_missed_ones_are_known(
    schedule: dict[str, Any], first: str, now: str, last: str, missed: int
) -> None:
    assert last_until(job(**schedule), ms(first), ms(now), ms("2026-06-01T00:00+02:00")) == (ms(last), missed)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (("61 * * * *", 0, "", "UTC"), "bad minute"),
        (("* * *", 0, "", "UTC"), "five fields"),
        (("0 0 30 2 *", 0, "", "UTC"), "day-of-month"),
        (("", 0, "", "UTC"), "exactly one"),
        (("@daily", 5, "", "UTC"), "exactly one"),
        (("", 0.5, "", "UTC"), "between 1 second"),
        (("", 0, "tomorrow", "UTC"), "Invalid time"),
        (("@daily", 0, "", "Mars/Olympus"), "Unknown time zone"),
        (("@daily", 0, "", "../../etc/passwd"), "Unknown time zone"),
    ],
)
def test_an_invalid_schedule_is_explained(schedule: tuple[str, float, str, str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        check_schedule(*schedule)


@pytest.mark.parametrize(
    ("per", "now", "begin", "end"),
    [
        ("day", "2026-03-29T12:00+02:00", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00"),
        ("day", "2026-10-25T23:59:59.999+01:00", "2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00"),
        ("day", "2026-12-31T23:30Z", "2027-01-01T00:00+01:00", "2027-01-02T00:00+01:00"),
        ("week", "2026-03-29T12:00+02:00", "2026-03-23T00:00+01:00", "2026-03-30T00:00+02:00"),
        ("week", "2026-03-30T00:00+02:00", "2026-03-30T00:00+02:00", "2026-04-06T00:00+02:00"),
        ("month", "2026-02-28T12:00+01:00", "2026-02-01T00:00+01:00", "2026-03-01T00:00+01:00"),
        ("month", "2026-12-01T00:00+01:00", "2026-12-01T00:00+01:00", "2027-01-01T00:00+01:00"),
    ],
)
def test_periods_begin_at_midnight_of_their_time_zone(per: Period, now: str, begin: str, end: str) -> None:
    assert period_of(per, "Europe/Berlin", ms(now)) == (ms(begin), ms(end))


def test_a_run_is_a_period_without_an_end() -> None:
    assert period_of("run", "UTC", ms("2026-02-28T12:00Z")) == (0, None)
