"""The tokenizer: splits a text into the most likely sequence of vocabulary pieces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from unicodedata import normalize

__all__ = ["Pieces"]

_SPACES = re.compile(" {2,}")
_SPACE = "\u2581"
"""Represents a space in the vocabulary. Each text starts with one."""
_UNLIKELY = 10.0
"""Difference in log likelihood between the least likely piece and a character that is in no piece."""


class Pieces:
    """A unigram vocabulary of pieces with their log likelihoods."""

    def __init__(self, pieces: Sequence[str], scores: Sequence[float], unknown: int, replaced: Mapping[int, str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces) if piece and number != unknown}
        self._scores = scores
        self._unknown = unknown
        self._replaced = replaced
        self._longest = max(map(len, self._numbers), default=1)
        self._cost = min(scores, default=0.0) - _UNLIKELY

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of the text's pieces, in order."""
        text = _SPACES.sub(" ", normalize("NFC", text).translate(self._replaced))
        text = (text if text.startswith(" ") else f" {text}").replace(" ", _SPACE)
        best = [0.0] + [float("-inf")] * len(text)
        came = [(0, self._unknown)] * (len(text) + 1)
        for start in range(len(text)):
            so_far = best[start]
            for end in range(start + 1, min(start + self._longest, len(text)) + 1):
                number = self._numbers.get(text[start:end])
                if number is not None and so_far + self._scores[number] > best[end]:
                    best[end], came[end] = so_far + self._scores[number], (start, number)
            if so_far + self._cost > best[start + 1]:
                best[start + 1], came[start + 1] = so_far + self._cost, (start, self._unknown)
        found: list[int] = []
        at = len(text)
        while at:
            at, number = came[at]
            found.append(number)
        return found[::-1]
