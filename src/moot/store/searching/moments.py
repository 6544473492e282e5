"""Parsing points in time in a query. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

__all__ = ["KNOWN", "parse_moment"]

KNOWN = "2026, 2026-11, 2026-11-01, 2026-11-01T14:30, today, yesterday, 12h, 7d, 2w, 3m, 1y"

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T_](\d{1,2}):(\d{2})(?::(\d{2}))?)?)?)?", re.ASCII)
_AGO = re.compile(r"(\d{1,6})([hdwmy])", re.ASCII)
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


def parse_moment(text: str, now: int) -> int | None:
    """Return the start of a day, month or year in local time, or a time relative to `now`, in ms; None = invalid."""
    today = datetime.fromtimestamp(now / 1000).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if text.lower() in ("today", "yesterday"):
            return _ms(today - timedelta(days=text.lower() == "yesterday"))
        if match := _AGO.fullmatch(text.lower()):
            amount, unit = int(match[1]), match[2]
            ago = timedelta(hours=amount) if unit == "h" else timedelta(days=amount * _DAYS[unit])
            return max(0, now - int(ago.total_seconds() * 1000))
        if match := _DATE.fullmatch(text.upper()):
            year, month, day, hour, minute, second = match.groups()
            return _ms(datetime(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0)))
    except (ValueError, OverflowError, OSError):
        return None  # February 31, or a year out of range
    return None


def _ms(moment: datetime) -> int:
    return max(0, int(moment.timestamp() * 1000))
