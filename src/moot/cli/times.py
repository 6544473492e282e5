"""Parsing and formatting of times."""

from __future__ import annotations

import re
import time
from datetime import datetime

from moot.errors import UsageError

_STEPS = ((60, "s"), (60, "min"), (24, "h"), (30, "d"), (12, "mo"))


_AGO = re.compile(r"(\d{1,9})([hdwmy])")
_SECONDS = {"h": 3_600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}


def parse_since(text: str) -> int:
    """Parse the value of `--since` as milliseconds. An empty value is 0. Raise UsageError if it is invalid."""
    if not text:
        return 0
    if match := _AGO.fullmatch(text):
        return max(0, int((time.time() - int(match[1]) * _SECONDS[match[2]]) * 1000))
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"Invalid value {text!r} for '--since': expected a date such as 2026-01-31, or a duration such as 12h, 30d, 2w, 6m or 1y."
        ) from error


def moment(ms: int) -> str:
    """Format a timestamp as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ms / 1000))


def age(ms: int, now: float) -> str:
    """Format an age in one unit. `now` is in seconds since the epoch."""
    amount = max(0, int(now - ms / 1000))
    for size, unit in _STEPS:
        if amount < size:
            return f"{amount} {unit}"
        amount //= size
    return f"{amount} y"
