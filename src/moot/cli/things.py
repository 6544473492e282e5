"""Formatting of counts and sizes."""

from __future__ import annotations

from collections.abc import Mapping

_ORDER = ("messages", "reasoning", "signatures", "tool calls", "pictures", "files", "other parts", "titles", "branches", "sub-agents")
"""Order in reports. Other names follow in the order of the mapping."""
_UNCOUNTABLE = ("reasoning", "usage")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 source`, `2 sources`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_counts(counts: Mapping[str, int]) -> list[str]:
    """Return nonzero counts with their nouns, most important first: `6 messages`, `1 tool call`."""
    ranked = sorted(counts.items(), key=lambda item: _ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER))
    return [f"{count:,} {_singular(name) if count == 1 else name}" for name, count in ranked if count]


def _singular(name: str) -> str:
    if name in _UNCOUNTABLE:
        return name
    return "branch" if name == "branches" else name.removesuffix("s")


def format_bytes(size: float) -> str:
    """Format a size with a decimal unit: `1.5 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size:.0f} B"
