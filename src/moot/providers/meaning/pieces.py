"""A text as numbers of a vocabulary: of all ways to put it together of known pieces, the most likely one. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from unicodedata import normalize

__all__ = ["Pieces"]

_SPACES = re.compile(" {2,}")
_SPACE = "\u2581"
"""A space as the vocabulary has it; each text begins with one."""
_UNLIKELY = 10.0
"""How much less likely than any piece a character is that no piece holds."""


class Pieces:
    """A unigram vocabulary: each piece with the logarithm of how likely it is."""

    def __init__(self, pieces: Sequence[str], scores: Sequence[float], unknown: int, replaced: Mapping[int, str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces) if piece and number != unknown}
        self._scores = scores
        self._unknown = unknown
        self._replaced = replaced
        self._longest = max(map(len, self._numbers), default=1)
        self._cost = min(scores, default=0.0) - _UNLIKELY

    def numbers(self, text: str) -> list[int]:
        """Of its pieces, in their order."""
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
