"""What of a hit is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.store.words import folded, is_cjk, tokens

__all__ = ["Marker"]

_BEFORE, _AFTER = 80, 160
_NOTHING = re.compile(r"(?!)")


class Marker:
    """Finds terms in texts as the index does: whatever signs stand between the words of a phrase, with or without accents."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._each = [re.compile(_pattern(term)) for term in terms]
        longest = sorted(terms, key=len, reverse=True)
        self._any = re.compile("|".join(_pattern(term) for term in longest)) if longest else _NOTHING

    def best(self, texts: Sequence[str]) -> int:
        """Which of the texts holds most of the terms; the first of equals, of those that are not empty."""
        if sum(map(bool, texts)) == 1:
            return next(place for place, text in enumerate(texts) if text)
        held = [(sum(1 for term in self._each if term.search(plain)) if (plain := folded(text)) else -1) for text in texts]
        return held.index(max(held))

    def snippet(self, text: str) -> str:
        """The text around the first match, on one line, matches between U+0002 and U+0003."""
        plain = folded(text)
        first = self._any.search(plain)
        start = first.start() if first else 0
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


def _pattern(term: str) -> str:
    plain = folded(term)
    if is_cjk(plain):
        return r"\s*".join(map(re.escape, plain.split()))
    return r"[\W_]{1,40}".join(map(re.escape, tokens(plain))) or re.escape(plain)
