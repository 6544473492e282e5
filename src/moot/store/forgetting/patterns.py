"""Validation of regular expressions with bounded cost: only single characters may repeat, each with a maximum count. Pure."""

from __future__ import annotations

import re

from moot.errors import UsageError

__all__ = ["bounded"]

_LONGEST = 200
_WAYS = 10_000
"""Maximum number of ways to try a pattern at one position."""
_PIECE = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<repeat>[*+?]|\{\d{1,4}(?:,\d{0,4})?\})|(?P<open>\((?:\?:)?)|(?P<any>.)",
    re.DOTALL,
)


def bounded(pattern: str) -> str:
    """Return the pattern if it can be searched quickly. Raise UsageError."""
    if len(pattern) > _LONGEST:
        raise _refused(pattern, f"it is longer than {_LONGEST} characters")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise _refused(pattern, str(error)) from error
    if _ways(pattern) > _WAYS:
        raise _refused(pattern, "there are too many ways to match it; use narrower bounds")
    if compiled.fullmatch(""):
        raise _refused(pattern, "it matches the empty string")
    return pattern


def _ways(pattern: str) -> int:
    """Count the ways to match. Raise UsageError for unbounded repetitions, repeated groups and advanced syntax."""
    ways, before = 1, "("
    for match in _PIECE.finditer(pattern):
        piece = match[0]
        match match.lastgroup:
            case "repeat":
                ways *= _repeated(pattern, piece, before, match.start() + 1)
            case "escape" if piece[1].isdigit():
                raise _refused(pattern, "it has a backreference")
            case "open" if pattern.startswith("?", match.end()):
                raise _refused(pattern, "only characters, classes, (?:groups) and bounded repetitions are allowed")
            case _:
                ways *= 2 if piece == "|" else 1
        before = "repeat" if match.lastgroup == "repeat" else piece
    return ways


def _repeated(pattern: str, repeat: str, before: str, place: int) -> int:
    """Return the number of ways to match a repetition."""
    if before in ("repeat", ")"):
        raise _refused(pattern, f"a {'group' if before == ')' else 'repetition'} is repeated at character {place}")
    if repeat in "*+" or repeat.endswith(",}"):
        raise _refused(pattern, f"the repetition at character {place} has no bound", "Use {1,64} instead of +.")
    if repeat == "?":
        return 2
    least, _, most = repeat[1:-1].partition(",")
    return 1 + int(most or least) - int(least or 0)


def _refused(pattern: str, why: str, fix: str = "See docs/forgetting.md.") -> UsageError:
    return UsageError(f"Unsupported pattern {pattern!r}: {why}.", fix=fix)
