"""Counts of what was kept, approximated and lost of a source."""

from __future__ import annotations

from collections import Counter

from moot.formats._writing import things_in
from moot.types.format import Fidelity, ImportedMessage

__all__ = ["Tally"]


class Tally:
    """Counts of one conversation, by the names of `Counts`."""

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        self.approximated: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def fidelity(self) -> Fidelity:
        return Fidelity(dict(self.kept), dict(self.approximated), dict(self.lost))

    def keep(self, message: ImportedMessage) -> None:
        """Count a message as kept."""
        self.kept.update(things_in(message))

    def weaken(self, word: str, count: int = 0) -> None:
        """Count `count` kept things, or all of them, as approximated instead."""
        count = min(count or self.kept[word], self.kept[word])
        self.kept[word] -= count
        self.approximated[word] += count
        self.kept, self.approximated = +self.kept, +self.approximated

    def lose(self, word: str, count: int = 1) -> None:
        """Count things as lost."""
        self.lost[word] += count
