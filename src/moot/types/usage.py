"""Token usage of model calls, as counted by the vendor."""

from __future__ import annotations

from dataclasses import dataclass, fields

from moot.types.canonical import JsonObject

LARGEST = 1 << 44
"""Largest plausible number of tokens, milliseconds or nano-dollars in one model call. A larger number counts as unknown, so that sums over
all calls fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens of one or more model calls. None = not reported by the vendor, which is different from 0."""

    input: int | None = None
    """All input tokens, including cached ones."""
    output: int | None = None
    """All output tokens, including reasoning."""
    cache_read: int | None = None
    """Input tokens read from the provider's cache."""
    cache_write: int | None = None
    """Input tokens written to the provider's cache."""
    reasoning: int | None = None
    cache_write_1h: int | None = None
    """Tokens of `cache_write` that the provider keeps for an hour, at a higher price."""
    web_searches: int | None = None
    """Number of web searches by the provider, which are charged separately."""

    def __reduce__(self) -> tuple[type[Usage], tuple[int | None, ...]]:
        # an import pickles the usage of every message, and the default takes several times as long
        own = (self.input, self.output, self.cache_read, self.cache_write, self.reasoning, self.cache_write_1h, self.web_searches)
        return Usage, own

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input, other.input),
            _sum(self.output, other.output),
            _sum(self.cache_read, other.cache_read),
            _sum(self.cache_write, other.cache_write),
            _sum(self.reasoning, other.reasoning),
            _sum(self.cache_write_1h, other.cache_write_1h),
            _sum(self.web_searches, other.web_searches),
        )

    def __sub__(self, other: Usage) -> Usage:
        """Subtract field by field; unknown numbers count as 0. Fields unknown in both stay unknown."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in _NAMES)
        return Usage(*(None if mine is None and theirs is None else (mine or 0) - (theirs or 0) for mine, theirs in pairs))

    def to_json(self) -> JsonObject:
        """Serialize the known fields."""
        return {name: value for name in _NAMES if (value := getattr(self, name)) is not None}

    @staticmethod
    def from_json(value: JsonObject) -> Usage:
        """Parse; anything that is not a plausible number becomes None."""
        # an import calls this for every step, and iterating over the fields takes four times as long
        get = value.get
        return Usage(
            count if type(count := get("input")) is int and -LARGEST < count < LARGEST else None,
            count if type(count := get("output")) is int and -LARGEST < count < LARGEST else None,
            count if type(count := get("cache_read")) is int and -LARGEST < count < LARGEST else None,
            count if type(count := get("cache_write")) is int and -LARGEST < count < LARGEST else None,
            count if type(count := get("reasoning")) is int and -LARGEST < count < LARGEST else None,
            count if type(count := get("cache_write_1h")) is int and -LARGEST < count < LARGEST else None,
            count if type(count := get("web_searches")) is int and -LARGEST < count < LARGEST else None,
        )


NO_USAGE = Usage()
"""Usage with all fields unknown."""
_NAMES = tuple(field.name for field in fields(Usage))


def _sum(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b
