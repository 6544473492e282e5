"""Excerpts of texts around the matches of a query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from moot.store.search.text import folded, is_cjk, tokens

_BEFORE, _AFTER = 80, 160
_CONTEXT = 20_000  # maximum number of characters before and after a match, if its lines are long
_LOOKED_AT, _NEAR = 200, 12  # number of matches in a text, and of following matches for each, that are considered for the best excerpt


class Marker:
    """A finder of terms in texts.

    It follows the rules of the index: accents, and punctuation between the words of a phrase, are ignored.
    """

    def __init__(self, terms: Sequence[str], *, whole: bool = False, patterns: Sequence[re.Pattern[str]] = ()) -> None:
        self._patterns = patterns
        """Regular expressions, which are applied to the unchanged text."""
        # one pattern per term: a pattern that starts with a letter is many times faster than an alternation
        self._each = [re.compile(_pattern(term, whole=whole)) for term in terms]
        self._lowered: list[tuple[str, str]] = []
        """The most recently compared texts, each with its lowercase form."""

    def best(self, texts: Sequence[str]) -> int:
        """Return the index of the text that contains the most terms. If several do, return the first nonempty one."""
        filled = [place for place, text in enumerate(texts) if text]
        if len(filled) < 2:
            return filled[0] if filled else 0
        self._lowered = [(text, text.lower()) for text in texts]
        counts = [self._count(lowered) for _, lowered in self._lowered]
        if max(counts) < len(self._each):  # only then remove accents, which takes long for a large text
            counts = [self._count(self._plain(text)) for text in texts]
        return counts.index(max(counts))

    def _count(self, plain: str) -> int:
        return sum(1 for term in self._each if term.search(plain)) if plain else -1

    def snippet(self, text: str) -> str:
        """Return an excerpt on one line around the densest matches, which are enclosed in U+0002 and U+0003."""
        plain = self._plain(text)
        start = self._start(text, plain)
        begin, end = max(start - _BEFORE, 0), min(start + _AFTER, len(text))
        shown = " ".join(self._marked(text, plain, begin, end).split())
        return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"

    def context(self, text: str, lines: int) -> str:
        """Return the line of the densest matches with this number of lines before and after it. Long lines are truncated."""
        plain = self._plain(text)
        start = self._start(text, plain)
        begin = end = start
        for number in range(lines + 1):
            begin = text.rfind("\n", 0, begin) if begin >= 0 else begin
            after = text.find("\n", end + bool(number))
            end = len(text) if after < 0 else after
        begin, end = max(begin + 1, start - _CONTEXT), min(end, start + _CONTEXT)
        return self._marked(text, plain, begin, end)

    def _marked(self, text: str, plain: str, begin: int, end: int) -> str:
        if not text.isascii():
            plain = f"{plain[:begin]}{folded(text[begin:end])}{plain[end:]}"
        pieces: list[str] = []
        at = begin
        spans = [match.span() for term in self._each for match in term.finditer(plain, begin, end)]
        spans += [match.span() for pattern in self._patterns for match in pattern.finditer(text, begin, end)]
        for first, last in _joined(spans):
            pieces += (text[at:first], "\x02", text[first:last], "\x03")
            at = last
        return "".join([*pieces, text[at:end]])

    def _start(self, text: str, plain: str) -> int:
        found = self._patterns[0].search(text) if self._patterns else None
        return found.start() if found is not None else self._densest(plain)

    def _plain(self, text: str) -> str:
        """Return the text in lower case, and without accents if needed to find a term; removing accents takes ten times as long."""
        lowered = next((lowered for known, lowered in self._lowered if known is text), None) or text.lower()
        if text.isascii() or (len(lowered) == len(text) and all(term.search(lowered) for term in self._each)):
            return lowered
        return folded(text)

    def _densest(self, plain: str) -> int:
        if not self._each:
            return 0
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
            if most == len(self._each):  # no excerpt can contain more terms
                break
        return best


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    spans.sort()
    for first, last in spans:
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        elif first < last:
            joined.append((first, last))
    return joined


def _pattern(term: str, *, whole: bool) -> str:
    """Return a pattern for the term in a folded text; if `whole` is set, it does not match inside longer words."""
    plain = folded(term)
    if is_cjk(plain):
        return r"\s*".join(map(re.escape, plain.split()))
    words = tokens(plain)
    if not words:
        return re.escape(plain)
    first, rest = re.escape(words[0]), "".join(rf"[\W_]{{1,40}}{re.escape(word)}" for word in words[1:])
    # the lookbehind follows the first word, which can then be searched for quickly
    return rf"{first}(?<![^\W_]{first}){rest}(?![^\W_])" if whole else first + rest
