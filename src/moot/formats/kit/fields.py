"""Fields of untrusted JSON. Missing fields and fields of the wrong type are read as empty values."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from moot.types.canonical import Json, JsonObject

LATEST = 253_402_300_799_000
"""Latest valid time, in ms since the epoch: the end of the year 9999."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def at(value: Json, *names: str) -> Json:
    """Return the value at a path of names, or None if it does not exist."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def obj(value: Json, *names: str) -> JsonObject:
    found = value.get(names[0]) if len(names) == 1 and isinstance(value, dict) else at(value, *names)
    return found if isinstance(found, dict) else {}


def items(value: Json, *names: str) -> list[Json]:
    found = at(value, *names)
    return found if isinstance(found, list) else []


def objects(value: Json, *names: str) -> list[JsonObject]:
    return [item for item in items(value, *names) if isinstance(item, dict)]


def text(value: Json, *names: str) -> str:
    found = value.get(names[0]) if len(names) == 1 and isinstance(value, dict) else at(value, *names)
    return found if isinstance(found, str) else ""


def flag(value: Json, *names: str) -> bool:
    return at(value, *names) is True


def whole_number(value: Json, *names: str) -> int | None:
    """Return the value if it is a non-negative integer, otherwise None."""
    found = at(value, *names)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return found if type(found) is int and 0 <= found < 1 << 53 else None


def amount(value: Json, *names: str) -> float | None:
    """Return a non-negative number below a trillion, or None."""
    found = at(value, *names)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1e12 else None


def money(value: Json, *names: str) -> int | None:
    """Return an amount in dollars as nano-dollars, or None if it is unknown."""
    found = at(value, *names)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found) or not 0 <= found < 1e9:
        return None
    return round(found * 1_000_000_000)


def milliseconds(value: Json, *names: str) -> int:
    """Return a time in ms since the epoch, or 0 if there is none.

    The value can be ISO 8601 text or a number of s, ms, µs or ns, which are distinguished by size.
    Text without a time zone is read as UTC.
    """
    found = value.get(names[0]) if len(names) == 1 and isinstance(value, dict) else at(value, *names)
    if isinstance(found, str):
        return _of_text(found)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found) or found <= 0:
        return 0
    if found < 1e11:
        return round(found * 1000)
    unit = next((unit for below, unit in ((1e14, 1), (1e17, 1_000)) if found < below), 1_000_000)
    return min(int(found // unit), LATEST)


def local_milliseconds(value: Json, *names: str) -> int:
    """Return a time as `milliseconds` does, but read text without a time zone as the local time of this machine."""
    with suppress(ValueError, OverflowError, OSError):
        return _of_text(datetime.fromisoformat(text(value, *names)).astimezone().isoformat())
    return milliseconds(at(value, *names))


def _of_text(written: str) -> int:
    if (usual := _USUAL.fullmatch(written)) is not None and (minute := _minute(usual[1])) is not None:
        return minute + int(usual[2]) * 1000 + int(usual[3])
    try:
        time = datetime.fromisoformat(written.strip().replace(" UTC", "+00:00"))
    except ValueError:
        return 0
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return min(max(round((time - _EPOCH) / _MILLISECOND), 0), LATEST)


_USUAL = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}):([0-5][0-9])\.([0-9]{3})Z")
"""Matches a time in the form that most programs write. Parsing its parts separately takes a third of the time."""


@lru_cache(maxsize=256)
def _minute(written: str) -> int | None:
    """Return the time at which a minute in UTC starts, if the minute is valid and after 1970."""
    try:
        ms = (datetime.fromisoformat(written).replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
    except ValueError:
        return None
    return ms if ms >= 0 else None


def iso_or_epoch(ms: int) -> str:
    """Return a time as RFC 3339 in UTC with milliseconds. 0 becomes the epoch, 1970."""
    return iso_of(ms) if ms > 0 else "1970-01-01T00:00:00.000Z"


def iso_of(ms: int) -> str:
    """Return a time as RFC 3339 in UTC with milliseconds. 0 becomes a time in year 1, which is how Go writes a missing time."""
    if not 0 < ms <= LATEST:
        return "0001-01-01T00:00:00Z"
    return (_EPOCH + ms * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")
