"""What a report counts, in words."""

from __future__ import annotations

from collections.abc import Mapping

_ORDER = ("messages", "reasoning", "signatures", "tool calls", "pictures", "files", "other parts", "titles", "branches", "sub-agents")
"""As they are told; what is not named here stands behind them as it comes."""
_ALWAYS_ONE = ("reasoning", "usage")


def many(count: int, one: str) -> str:
    """`1 source`, `2 sources`."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def of_things(counts: Mapping[str, int]) -> list[str]:
    """`6 messages`, `1 tool call`: what there is any of, the weightiest first."""
    ranked = sorted(counts.items(), key=lambda one: _ORDER.index(one[0]) if one[0] in _ORDER else len(_ORDER))
    return [f"{count:,} {_one(things) if count == 1 else things}" for things, count in ranked if count]


def _one(things: str) -> str:
    if things in _ALWAYS_ONE:
        return things
    return "branch" if things == "branches" else things.removesuffix("s")
