"""Times at which cron jobs run, and the periods of budgets. All times are in ms since the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from tzlocal import get_localzone_name

from moot.errors import UsageError
from moot.types.cron import Job
from moot.types.limits import Period

MANY = 1000
"""Maximum number of missed times to count."""

_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_WINDOWS = tuple(hours * 3_600_000 for hours in (1, 24, 32 * 24, 366 * 24))
"""Lengths of the periods, in ms, in which to search for a job's most recent time. The first period that contains such a time is used."""


def local_zone() -> str:
    """Return the name of this machine's time zone, or UTC if it is unknown."""
    try:
        return get_localzone_name() or "UTC"
    except Exception:  # noqa: BLE001  contradictory settings of the machine raise many kinds of errors
        return "UTC"


def check_schedule(cron: str, every: float, at: str, tz: str) -> None:
    """Raise UsageError unless exactly one kind of schedule is given and it is valid."""
    if sum(map(bool, (cron, every, at))) != 1:
        raise UsageError(
            "Expected exactly one of `cron`, `every` and `at`.", fix='Use either --cron "0 9 * * 1-5", --every 5m or --at TIME.'
        )
    zone = zone_of(tz)
    if every and not 1 <= every <= 366 * 86_400:
        raise UsageError(f"The interval {every:g} s is not between 1 second and 366 days.")
    if at:
        _moment(at, zone)
    if cron and next(_cron_after(cron, zone, int(datetime.now(UTC).timestamp() * 1000)), None) is None:
        raise UsageError(f"The cron expression {cron!r} matches no date.")


def next_after(job: Job, after: int, anchor: int) -> int | None:
    """Return the first time after `after` at which the job runs, or None. Intervals start at `anchor`, when the job was created."""
    return next(_instants(job, after, anchor), None)


def last_until(job: Job, first: int, now: int, anchor: int) -> tuple[int, int]:
    """Return the last time at which the job should have run by `now`, and the number of missed times from `first` until then."""
    if job.every:
        step = round(job.every * 1000)
        missed = max(0, now - first) // step
        return first + missed * step, missed
    last = first
    for start in (*(max(first, now - window) for window in _WINDOWS), first):
        if (found := _last(_instants(job, start, anchor), now)) is not None:
            last = found
            break
    missed = 0
    for at in _instants(job, first - 1, anchor):
        if at >= last or missed == MANY:
            break
        missed += 1
    return last, missed


def period_of(per: Period, tz: str, now: int) -> tuple[int, int | None]:
    """Return the start and the end of the day, week or month that contains `now`. Weeks start on Monday. The period `run` has no end."""
    if per == "run":
        return 0, None
    zone = zone_of(tz)
    today = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).date()
    if per == "day":
        first, last = today, today + timedelta(days=1)
    elif per == "week":
        first = today - timedelta(days=today.weekday())
        last = first + timedelta(days=7)
    else:
        first = today.replace(day=1)
        last = (first + timedelta(days=31)).replace(day=1)
    begin, end = (int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp() * 1000) for day in (first, last))
    return begin, end


def check_zone(tz: str) -> None:
    """Raise UsageError if a time zone is unknown."""
    zone_of(tz)


def _last(instants: Iterator[int], until: int) -> int | None:
    last = None
    for at in instants:
        if at > until:
            break
        last = at
    return last


def _instants(job: Job, after: int, anchor: int) -> Iterator[int]:
    if job.every:
        step = round(job.every * 1000)
        return iter(range(anchor + max(1, (after - anchor) // step + 1) * step, 1 << 62, step))
    zone = zone_of(job.tz)
    if job.at:
        at = _moment(job.at, zone)
        return iter((at,) if at > after else ())
    return _cron_after(job.cron, zone, after)


def _cron_after(expression: str, zone: ZoneInfo, after: int) -> Iterator[int]:
    """Return the times of a cron expression. When the clocks change, times in a skipped hour are moved to the end of that hour, and times
    in a repeated hour occur only once. Jobs that run every hour or more often follow the elapsed time instead.
    """
    text = _NAMED.get(expression.strip().lower(), expression)
    if len(text.split()) != 5:
        raise UsageError(
            f"The cron expression {expression!r} does not have five fields.",
            fix='Use "MINUTE HOUR DAY MONTH WEEKDAY", such as "0 9 * * 1-5".',
        )
    try:
        found = CronSim(text, datetime.fromtimestamp(after / 1000, UTC).astimezone(zone))
    except CronSimError as error:
        raise UsageError(f"Invalid cron expression {expression!r}: {str(error).lower()}.") from error
    return (at for moment in found if (at := int(moment.timestamp() * 1000)) > after)


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone with this name. Raise UsageError if the name is unknown."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise UsageError(f"Unknown time zone {name!r}.", fix="Use a name such as Europe/Berlin or UTC.") from error


def _moment(text: str, zone: ZoneInfo) -> int:
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"Invalid time {text!r}.", fix="Use a date and time such as 2026-12-24T18:00.") from error
