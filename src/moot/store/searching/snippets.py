"""What of a hit is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from moot.store.words import folded, is_cjk, tokens

__all__ = ["Marker"]

_BEFORE, _AFTER = 80, 160
_LOOKED_AT, _NEAR = 200, 12
"""Matches of a text, and those behind each of them, among which the best stretch is chosen."""
_NOTHING = re.compile(r"(?!)")


class Marker:
    """Finds terms in texts as the index does: whatever signs stand between the words of a phrase, with or without accents."""

    def __init__(self, terms: Sequence[str], *, whole: bool = False) -> None:
        patterns = [_pattern(term, whole=whole) for term in sorted(terms, key=len, reverse=True)]
        self._each = [re.compile(pattern) for pattern in patterns]
        self._any = re.compile("|".join(patterns)) if patterns else _NOTHING

    def best(self, texts: Sequence[str]) -> int:
        """Which of the texts holds most of the terms; the first of equals, of those that are not empty."""
        if sum(map(bool, texts)) == 1:
            return next(place for place, text in enumerate(texts) if text)
        held = [(sum(1 for term in self._each if term.search(plain)) if (plain := folded(text)) else -1) for text in texts]
        return held.index(max(held))

    def snippet(self, text: str) -> str:
        """The text around the place where most of the terms are, on one line, matches between U+0002 and U+0003."""
        plain = folded(text)
        start = self._densest(plain)
        begin, end = max(start - _BEFORE, 0), min(start + _AFTER, len(text))
        pieces: list[str] = []
        at = begin
        for match in self._any.finditer(plain, begin, end):
            if match.end() == match.start():
                continue
            pieces += (text[at : match.start()], "\x02", text[match.start() : match.end()], "\x03")
            at = match.end()
        shown = " ".join(f"{''.join(pieces)}{text[at:end]}".split())
        return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"

    def _densest(self, plain: str) -> int:
        """Where the stretch begins that holds most different matches, the first of such; 0 when there are none."""
        found = [(match.start(), match[0]) for match in islice(self._any.finditer(plain), _LOOKED_AT)]
        if len(self._each) < 2 or not found:
            return found[0][0] if found else 0
        held = [len({word for place, word in found[at : at + _NEAR] if place < start + _AFTER}) for at, (start, _) in enumerate(found)]
        return found[held.index(max(held))][0]


def _pattern(term: str, *, whole: bool) -> str:
    """What the term looks like in a folded text; with `whole` not as a piece of longer words."""
    plain = folded(term)
    if is_cjk(plain):
        return r"\s*".join(map(re.escape, plain.split()))
    words = tokens(plain)
    if not words:
        return re.escape(plain)
    spelled = r"[\W_]{1,40}".join(map(re.escape, words))
    return rf"(?<![^\W_]){spelled}(?![^\W_])" if whole else spelled
