"""Usage in the periods that are limited by subscriptions. A separate module, because a status line must start fast."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """One agent's usage in a period that is limited by its subscription."""

    agent: str
    minutes: int
    """Length of the period in minutes: 300 or 10,080 for most subscriptions."""
    since: int
    """Start of the period, in ms since the epoch."""
    until: int
    """End of the period; the current time if it is unknown when the limit resets."""
    resets: bool = False
    """True if the limit resets at the end of the period."""
    used: float | None = None
    """Used share of the limit in percent, as reported by the program; None = unknown."""
    at: int | None = None
    """Time at which the program reported `used`."""
    runs: int = 0
    """Number of model calls if known; otherwise number of answers."""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: int = 0
    """Cost in nano-dollars of the calls with a known price."""
    unpriced: int = 0
    """Number of answers whose cost is completely or partly unknown."""
    first: int = 0
    """Time of the first call in ms since the epoch; 0 = no calls."""
    last: int = 0

    @property
    def tokens_per_minute(self) -> float | None:
        """Mean tokens per minute between the first and the last call; None if there is only one call."""
        return (self.input + self.output) * 60_000 / (self.last - self.first) if self.last > self.first else None

    @property
    def cost_per_hour(self) -> float | None:
        """Mean cost per hour in nano-dollars between the first and the last call; None if there is only one call."""
        return self.cost * 3_600_000 / (self.last - self.first) if self.last > self.first else None

    def projected_cost(self, now: int) -> int | None:
        """Return the projected cost at the end of the period, at the current rate; None if unknown."""
        if self.cost_per_hour is None or not self.resets or now >= self.until:
            return None
        return self.cost + round(self.cost_per_hour * (self.until - now) / 3_600_000)

    def projected_tokens(self, now: int) -> int | None:
        """Return the projected number of tokens at the end of the period, at the current rate; None if unknown."""
        if self.tokens_per_minute is None or not self.resets or now >= self.until:
            return None
        return self.input + self.output + round(self.tokens_per_minute * (self.until - now) / 60_000)


@dataclass(frozen=True, slots=True)
class UsageWindows:
    """The current periods of subscriptions, and earlier ones."""

    current: tuple[UsageWindow, ...] = ()
    blocks: tuple[UsageWindow, ...] = ()
    """The 5-hour blocks of Claude Code in the last days, newest first; the first one may be the current one."""
