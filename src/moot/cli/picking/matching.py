"""How well an item fits what was typed: every word must be in it, the best places first, skipped letters last."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeAlias

from moot.cli.picking.items import Item

Judge: TypeAlias = Callable[[str], int | None]
"""A haystack's distance from what was typed, 0 = nearest; None = it does not fit."""

SKIPPED = 2
"""Letters that may be left out between two typed ones: `cnfg` finds config, and not half the list."""
_SHORTEST_SKIPPING = 3
_INSIDE, _SKIPPING = 4, 9
"""Distances; a word that begins like the typed one has at most 3, a whole one at most 1."""


def haystack(item: Item) -> str:
    """What the filter looks in: one line, case folded, with a blank at both ends."""
    return fold(item.words or " ".join(item.cells))


def fold(text: str) -> str:
    """Case folded and composed, blanks made one, with a blank at both ends."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return f" {' '.join(text.casefold().split())} "


def judge(query: str) -> Judge:
    """For one query; words in any order."""
    words = fold(query).split()
    if not words:
        return _anything
    if len(words) == 1:
        return _word(words[0])
    return _all([_word(word) for word in words])


def _anything(_: str) -> int:
    return 0


def _all(judges: Sequence[Judge]) -> Judge:
    def distance(hay: str) -> int | None:
        total = 0
        for one in judges:
            if (found := one(hay)) is None:
                return None
            total += found
        return total

    return distance


def _word(word: str) -> Judge:
    start, whole = f" {word}", f" {word} "
    gap = f".{{0,{SKIPPED}}}?"
    skipping = re.compile(gap.join(map(re.escape, word))).search if len(word) >= _SHORTEST_SKIPPING else None

    def distance(hay: str) -> int | None:
        if word not in hay:
            return _SKIPPING if skipping is not None and skipping(hay) else None
        if start not in hay:
            return _INSIDE
        return (0 if whole in hay else 2) + (not hay.startswith(start))

    return distance
