"""Snippets of hits. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from moot.store.words import folded, is_cjk, tokens

__all__ = ["Marker"]

_BEFORE, _AFTER = 80, 160
_LOOKED_AT, _NEAR = 200, 12
"""Number of matches in a text, and of following matches for each, that are considered for the best excerpt."""


class Marker:
    """A finder of terms in texts that matches like the index: ignoring accents and any punctuation between the words of a phrase."""

    def __init__(self, terms: Sequence[str], *, whole: bool = False) -> None:
        # one pattern per term: a pattern that starts with a letter is many times faster than an alternation
        self._each = [re.compile(_pattern(term, whole=whole)) for term in terms]

    def best(self, texts: Sequence[str]) -> int:
        """Return the index of the text with most terms; among equals the first, preferably nonempty, one."""
        filled = [place for place, text in enumerate(texts) if text]
        if len(filled) < 2:
            return filled[0] if filled else 0
        counts = [(sum(1 for term in self._each if term.search(plain)) if (plain := self._plain(text)) else -1) for text in texts]
        return counts.index(max(counts))

    def snippet(self, text: str) -> str:
        """Return an excerpt on one line around the densest matches, which are enclosed in U+0002 and U+0003."""
        plain = self._plain(text)
        start = self._densest(plain)
        begin, end = max(start - _BEFORE, 0), min(start + _AFTER, len(text))
        if not text.isascii():
            plain = f"{plain[:begin]}{folded(text[begin:end])}{plain[end:]}"
        pieces: list[str] = []
        at = begin
        for first, last in _joined([match.span() for term in self._each for match in term.finditer(plain, begin, end)]):
            pieces += (text[at:first], "\x02", text[first:last], "\x03")
            at = last
        pieces.append(text[at:end])
        shown = " ".join("".join(pieces).split())
        return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"

    def _plain(self, text: str) -> str:
        """Return the text in lower case, and without accents if that is needed to find a term; that takes ten times as long."""
        lowered = text.lower()
        if text.isascii() or (len(lowered) == len(text) and all(term.search(lowered) for term in self._each)):
            return lowered
        return folded(text)

    def _densest(self, plain: str) -> int:
        """Return the start of the first excerpt with most different terms; 0 if there are none."""
        if len(self._each) == 1:
            first = self._each[0].search(plain)
            return first.start() if first else 0
        found = [(match.start(), term) for term, each in enumerate(self._each) for match in islice(each.finditer(plain), _LOOKED_AT)]
        found.sort()
        best, most = 0, 0
        for at, (start, _) in enumerate(found):
            count = len({term for place, term in found[at : at + _NEAR] if place < start + _AFTER})
            if count > most:
                best, most = start, count
            if most == len(self._each):  # the maximum
                break
        return best


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort the nonempty spans and join those that touch."""
    joined: list[tuple[int, int]] = []
    spans.sort()
    for first, last in spans:
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        elif first < last:
            joined.append((first, last))
    return joined


def _pattern(term: str, *, whole: bool) -> str:
    """Return a pattern for the term in a folded text; with `whole`, it does not match inside longer words."""
    plain = folded(term)
    if is_cjk(plain):
        return r"\s*".join(map(re.escape, plain.split()))
    words = tokens(plain)
    if not words:
        return re.escape(plain)
    first, rest = re.escape(words[0]), "".join(rf"[\W_]{{1,40}}{re.escape(word)}" for word in words[1:])
    # the lookbehind follows the first word, which can then be searched for quickly
    return rf"{first}(?<![^\W_]{first}){rest}(?![^\W_])" if whole else first + rest
