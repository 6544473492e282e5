"""Times as people read them."""

from __future__ import annotations

import time

_STEPS = ((60, "s"), (60, "min"), (24, "h"), (30, "d"), (12, "mo"))


def moment(ms: int) -> str:
    """A local date and time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ms / 1000))


def age(ms: int, now: float) -> str:
    """How long ago, in one unit; `now` in seconds since the epoch."""
    amount = max(0, int(now - ms / 1000))
    for size, unit in _STEPS:
        if amount < size:
            return f"{amount} {unit}"
        amount //= size
    return f"{amount} y"
