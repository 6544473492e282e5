"""What was kept, approximated and lost of a source, counted while it is read."""

from __future__ import annotations

from collections import Counter

from moot.formats._writing import things_in
from moot.types.format import Fidelity, ImportedMessage

__all__ = ["Tally"]


class Tally:
    """Counts of one conversation, in the words of `Counts`."""

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        self.approximated: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def fidelity(self) -> Fidelity:
        return Fidelity(dict(self.kept), dict(self.approximated), dict(self.lost))

    def keep(self, message: ImportedMessage) -> None:
        """It came through whole."""
        self.kept.update(things_in(message))

    def weaken(self, word: str, count: int = 0) -> None:
        """So much of what counts as kept, or all of it, is only near to what it was."""
        count = min(count or self.kept[word], self.kept[word])
        self.kept[word] -= count
        self.approximated[word] += count
        self.kept, self.approximated = +self.kept, +self.approximated

    def lose(self, word: str, count: int = 1) -> None:
        """Something did not come through."""
        self.lost[word] += count
