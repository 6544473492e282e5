"""Fuzzy matching of items against a filter: every word must occur; matches at the start of a word come first, skipped letters last."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeAlias

from moot.cli.picking.items import Item

Matcher: TypeAlias = Callable[[str], int | None]
"""Return the distance of a text from the filter (0 is the best match), or None if it does not match."""

SKIPPED = 2
"""Letters that may be skipped between two typed ones: `cnfg` finds config."""
_MIN_SKIPPING = 3
_INSIDE, _SKIPPING = 4, 9
"""Distances of a match inside a word and of one with skipped letters. A match at the start of a word has at most 3."""


def searched_text(item: Item) -> str:
    """Return the text that the filter searches: one case-folded line with a space at both ends."""
    return fold(item.words or " ".join(item.cells))


def fold(text: str) -> str:
    """Normalize and case-fold the text, collapse white space, and add a space at both ends."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return f" {' '.join(text.casefold().split())} "


def matcher(query: str) -> Matcher:
    """Return the matcher of a filter, whose words may occur in any order."""
    words = fold(query).split()
    if not words:
        return _match_all
    if len(words) == 1:
        return _match_word(words[0])
    return _match_words([_match_word(word) for word in words])


def _match_all(_: str) -> int:
    return 0


def _match_words(matchers: Sequence[Matcher]) -> Matcher:
    def distance(text: str) -> int | None:
        total = 0
        for match in matchers:
            if (found := match(text)) is None:
                return None
            total += found
        return total

    return distance


def _match_word(word: str) -> Matcher:
    start, whole = f" {word}", f" {word} "
    gap = f".{{0,{SKIPPED}}}?"
    skipping = re.compile(gap.join(map(re.escape, word))).search if len(word) >= _MIN_SKIPPING else None

    def distance(text: str) -> int | None:
        if word not in text:
            return _SKIPPING if skipping is not None and skipping(text) else None
        if start not in text:
            return _INSIDE
        return (0 if whole in text else 2) + (not text.startswith(start))

    return distance
