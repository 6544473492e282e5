"""Base64 that holds what is looked for, also over several lines, and what it is without that. Pure.

A string is known by the letters that it is certain to give wherever it begins. A pattern has no such letters: every stretch of base64 that
is long enough is decoded for it. One level deep: base64 in base64 is not looked into.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import deque
from collections.abc import Callable, Sequence

from moot.store.forgetting.spelling import DEEP, character
from moot.types.forgetting import MARK

__all__ = ["Encoded"]

_FROM = 6
"""Bytes of a string from which on it is looked for in base64: of fewer, less than five letters are certain."""
_BREAK = (
    rf"[ \t]{{0,8}}(?:\r\n?|\n|\\{{1,{DEEP}}}+r(?:\\{{1,{DEEP}}}+n)?|\\{{1,{DEEP}}}+n|%0[dD]%0[aA]|%0[aA])"
    rf"(?:[ \t]|\\{{1,{DEEP}}}+t){{0,32}}"
)
"""Between two lines, however it is escaped; the next one may be indented."""
_PLUS, _SLASH = f"(?:-|{character('+')})", f"(?:_|{character('/')})"
_LETTERS = rf"(?:[A-Za-z0-9+/_-]++|\\{{1,{DEEP}}}+(?:/|u002[bBfF])|%2[bBfF])++"
_PAD = rf"(?:=|%3[dD]|\\{{1,{DEEP}}}+u003[dD])"
_ANY = r"[A-Za-z0-9+/_\\%-]"
_MORE = rf"(?:(?<={_ANY}{{32}}){_BREAK}(?={_ANY}{{4}}){_LETTERS}(?![ .,;:!?]))"
_STRETCH = re.compile(rf"(?<!\\)(?={_ANY}{{4}}){_LETTERS}{_MORE}*+{_PAD}{{0,2}}")
"""Lines but for the last have at least 32 letters, so that words in front of base64 or behind it are not taken for some of it. A letter
behind a backslash is the rest of an escape."""
_LINES = re.compile(rf"(?:(?<!{_ANY})|(?<=\\[nrt]))(?={_ANY}{{32}}){_LETTERS}{_MORE}++{_PAD}{{0,2}}")
"""Only of several lines, and from their beginning: from each place in a long one it would take for ever."""
_LEAST = 16
"""Letters of a stretch that is decoded to look for patterns."""
_LONG = 512
"""Letters of a stretch in which patterns are found whatever it holds; in a shorter one only when it is text, for ids are no base64."""
_BREAKS = re.compile(_BREAK)
_PLAIN = (
    (_BREAKS, ""),
    (re.compile(f"{_PAD}+$"), ""),
    (re.compile(_PLUS), "+"),
    (re.compile(_SLASH), "/"),
)


class Encoded:
    """Strings and patterns, in base64."""

    def __init__(self, strings: Sequence[str], patterns: Sequence[str]) -> None:
        cores = [core for string in strings for core in _cores(string.encode("utf-8", "surrogatepass"))]
        self._cores = re.compile("|".join(cores)) if cores else None
        self._patterns = re.compile("|".join(patterns)) if patterns else None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Stretches that hold one of them, whole; in order, apart."""
        if self._patterns is None and not (self._cores and self._cores.search(text)) and _LINES.search(text) is None:
            return []
        cores = deque[tuple[int, int]]() if self._cores is None else deque(match.span() for match in self._cores.finditer(text))
        found: list[tuple[int, int]] = []
        for match in (_LINES if not cores and self._patterns is None else _STRETCH).finditer(text):
            while cores and cores[0][0] < match.start():
                found.append(cores.popleft())
            if (cores and cores[0][0] < match.end()) or self._over(match[0]) or self._told(match[0]):
                found.append(match.span())
        return _apart([*found, *cores])

    def without(self, stretch: str, taken_out: Callable[[str], str]) -> str:
        """What a stretch says without them, as base64; the mark where it can't be read."""
        data = _decoded(stretch)
        if data is None:
            return MARK
        text = data.decode("utf-8", "surrogateescape")
        changed = taken_out(text)
        if changed == text:  # the letters are there by chance, or the stretch begins in the middle
            return MARK
        anew = base64.b64encode(changed.encode("utf-8", "surrogateescape")).decode()
        return anew if stretch.endswith("=") or len(_BREAKS.sub("", stretch)) % 4 == 0 else anew.rstrip("=")

    def _over(self, stretch: str) -> bool:
        """Whether a string is in several lines of it."""
        plain = _BREAKS.sub("", stretch)
        return self._cores is not None and plain != stretch and self._cores.search(plain) is not None

    def _told(self, stretch: str) -> bool:
        """Whether a pattern is in it."""
        if self._patterns is None or len(stretch) < _LEAST or (data := _decoded(stretch)) is None:
            return False
        text = data.decode("utf-8", "surrogateescape")
        is_text = len(stretch) >= _LONG or all(letter.isprintable() or letter in "\t\r\n" for letter in text)
        return is_text and any(match[0] for match in self._patterns.finditer(text))


def _apart(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def _decoded(stretch: str) -> bytes | None:
    for spelling, plain in _PLAIN:
        stretch = spelling.sub(plain, stretch)
    try:
        return base64.b64decode(stretch + "=" * (-len(stretch) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _cores(data: bytes) -> list[str]:
    """Patterns for the letters of base64 that these bytes are certain to give, wherever they begin in it."""
    if len(data) < _FROM:
        return []
    found: list[str] = []
    for shift in range(3):
        letters = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        whole = (shift + len(data)) * 8 // 6  # behind that the letters depend on what follows
        core = letters[-(-shift * 8 // 6) : whole]
        found.append("".join({"+": _PLUS, "/": _SLASH}.get(letter, letter) for letter in core))
    return found
