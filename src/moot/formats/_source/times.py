"""Times as other programs write them: seconds, ms, µs or ns since the epoch, or ISO 8601, with or without a zone."""

from __future__ import annotations

from datetime import UTC, datetime

from moot.types.canonical import Json

__all__ = ["iso_of", "ms_of"]

_LATEST = 1 << 53
"""ms; what lies behind it is no time."""


def ms_of(value: Json) -> int:
    """ms since the epoch; 0 for what says no time. A time without a zone is UTC."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e19:
        return 0
    for scale in (1e18, 1e15, 1e11):  # ns, µs, ms: of every year from 1973 to 5138 one of them fits
        if value >= scale:
            return int(value // (scale / 1e12)) if scale > 1e11 else int(value)
    return int(value * 1000)


def iso_of(ms: int) -> str:
    """RFC 3339 in UTC, to the ms; year 1 for 0, as Go writes no time."""
    if not 0 < ms < 253_402_300_800_000:
        return "0001-01-01T00:00:00Z"
    return (
        datetime.fromtimestamp(ms // 1000, UTC)
        .replace(microsecond=ms % 1000 * 1000)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def _of_text(value: str) -> int:
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return 0
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        ms = int(moment.timestamp() * 1000 + 0.5)
    except (OverflowError, ValueError, OSError):
        return 0
    return ms if 0 < ms < _LATEST else 0
