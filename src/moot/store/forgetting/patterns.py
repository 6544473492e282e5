"""Regular expressions whose cost is bounded: repetitions of single characters alone, each with a highest number. Pure."""

from __future__ import annotations

import re

from moot.errors import UsageError

__all__ = ["bounded"]

_LONGEST = 200
_WAYS = 10_000
"""In how many ways a pattern may be tried at one place."""
_PIECE = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<repeat>[*+?]|\{\d{1,4}(?:,\d{0,4})?\})|(?P<open>\((?:\?:)?)|(?P<any>.)",
    re.DOTALL,
)


def bounded(pattern: str) -> str:
    """The pattern, when it can be looked for everywhere in little time. Raises UsageError."""
    if len(pattern) > _LONGEST:
        raise _refused(pattern, f"it has more than {_LONGEST} characters")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise _refused(pattern, str(error)) from error
    if _ways(pattern) > _WAYS:
        raise _refused(pattern, "there are too many ways to try it; give narrower bounds")
    if compiled.fullmatch(""):
        raise _refused(pattern, "it matches nothing at all, everywhere")
    return pattern


def _ways(pattern: str) -> int:
    """Raises UsageError for a repetition without a bound or of a group, and for all that is more than plain."""
    ways, before = 1, "("
    for match in _PIECE.finditer(pattern):
        piece = match[0]
        match match.lastgroup:
            case "repeat":
                ways *= _repeated(pattern, piece, before, match.start() + 1)
            case "escape" if piece[1].isdigit():
                raise _refused(pattern, "it refers back to a group")
            case "open" if pattern.startswith("?", match.end()):
                raise _refused(pattern, "characters, classes, (?:groups) and bounded repetitions are all that is allowed")
            case _:
                ways *= 2 if piece == "|" else 1
        before = "repeat" if match.lastgroup == "repeat" else piece
    return ways


def _repeated(pattern: str, repeat: str, before: str, place: int) -> int:
    """In how many ways that can be."""
    if before in ("repeat", ")"):
        raise _refused(pattern, f"a {'group' if before == ')' else 'repetition'} is repeated at character {place}")
    if repeat in "*+" or repeat.endswith(",}"):
        raise _refused(pattern, f"the repetition at character {place} has no bound", "write {1,64} in place of +")
    if repeat == "?":
        return 2
    least, _, most = repeat[1:-1].partition(",")
    return 1 + int(most or least) - int(least or 0)


def _refused(pattern: str, why: str, fix: str = "see docs/forgetting.md") -> UsageError:
    return UsageError(f"the pattern {pattern!r} can't be used: {why}", fix=fix)
