"""Glob patterns: `*` and `?` within a name, `**` across folders, `[a-z]`, `{a,b}`. Matching takes linear time in the path length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

__all__ = ["Glob", "expanded", "matches", "segments"]

_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ANY = re.compile("(?!)")
"""Represents `**`: any number of folders."""


class Glob:
    """A pattern for files below a folder. Without a slash it matches names at any depth, otherwise whole paths."""

    def __init__(self, pattern: str) -> None:
        self._alternatives = [_rooted(one) for one in expanded(pattern)]

    def __call__(self, path: str) -> bool:
        return any(matches(wanted, path) for wanted in self._alternatives)


def segments(pattern: str) -> tuple[re.Pattern[str], ...]:
    """Return the pattern's parts, one per folder, for `matches`."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if parts and parts[-1] == "**":  # everything below, but not the folder itself
        parts.append("*")
    found = [_ANY if part == "**" else _name(part) for part in parts]
    return tuple(part for part, before in zip(found, [None, *found], strict=False) if part is not _ANY or before is not _ANY)


def matches(wanted: Sequence[re.Pattern[str]], path: str) -> bool:
    """Return whether the whole path matches, by tracking the set of reachable positions in the pattern."""
    places = _with_skips({0}, wanted)
    for name in path.split("/"):
        reached: set[int] = set()
        for place in places:
            if place < len(wanted) and wanted[place] is _ANY:
                reached.add(place)
            elif place < len(wanted) and wanted[place].fullmatch(name):
                reached.add(place + 1)
        places = _with_skips(reached, wanted)
    return len(wanted) in places


def _with_skips(places: set[int], wanted: Sequence[re.Pattern[str]]) -> set[int]:
    return places | {place + 1 for place in places if place < len(wanted) and wanted[place] is _ANY}


def _rooted(pattern: str) -> tuple[re.Pattern[str], ...]:
    return segments(pattern) if "/" in pattern.rstrip("/") else segments(f"**/{pattern}")


def expanded(pattern: str) -> list[str]:
    """Return one pattern for each choice in its braces. If there are too many choices, braces are literal."""
    done: list[str] = []
    open_ = [pattern]
    while open_:
        if len(done) + len(open_) > _ALTERNATIVES:
            return [pattern]
        one = open_.pop()
        if found := _BRACES.search(one):
            open_ += [one[: found.start()] + choice + one[found.end() :] for choice in found[1].split(",")]
        else:
            done.append(one)
    return done


@cache
def _name(pattern: str) -> re.Pattern[str]:
    pieces = [""]
    at = 0
    while at < len(pattern):
        piece, at = _piece(pattern, at)
        if piece == "*":
            pieces.append("")
        else:
            pieces[-1] += piece
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    # atomic groups: after the earliest match there is no backtracking, so many stars cost no more than one
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)


def _piece(pattern: str, at: int) -> tuple[str, int]:
    character = pattern[at]
    if character == "*":
        return "*", at + 1
    if character == "?":
        return ".", at + 1
    if character == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    end = pattern.find("]", at + 3 if pattern[at + 1 : at + 2] in ("!", "^") else at + 2)
    if character == "[" and end > 0:
        return _class(pattern[at + 1 : end]), end + 1
    return re.escape(character), at + 1


def _class(body: str) -> str:
    negated = body[0] in "!^"
    inner = re.sub(r"([\\\[\]&~|^])", r"\\\1", body[1:] if negated else body)
    try:
        re.compile(f"[{inner}]")
    except re.error:  # a reversed range, which matches nothing
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{inner}]"
