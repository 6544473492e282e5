"""Distinction between keys meant as answers and text that was being typed. Pure: the caller passes the time."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["ALONE", "QUIET", "KeyGuard"]

QUIET = 0.4
"""Seconds after the question appeared, or after a key that is not an answer, in which no key counts as an answer."""
ALONE = 0.15
"""Seconds without another key before a key counts as an answer. Typed words and pastes come faster."""


class KeyGuard:
    """The guard of one question. Text that is not an answer is collected in `typed`."""

    def __init__(self, now: float) -> None:
        self.since = now
        """Time of the last key that is not an answer, or when the question appeared."""
        self.typed = ""
        self._candidate: tuple[str, float] | None = None

    def restart(self, now: float) -> None:
        """Another question is shown."""
        self.since, self._candidate = now, None

    def add(self, key: str, now: float, answers: Collection[str]) -> None:
        """Handle one key, or a whole paste. It becomes an answer if no other key follows."""
        waited = now - self.since >= QUIET
        if self._candidate is not None:
            self.typed += self._candidate[0]
        elif waited and key in answers:
            self._candidate = (key, now)
            return
        self.typed += key
        self.since, self._candidate = now, None

    def erase(self, now: float) -> None:
        """Remove the last typed character."""
        self.typed = self.typed[:-1]
        self.restart(now)

    def confirmed(self, now: float) -> str | None:
        """Return the key that has become an answer, once."""
        if self._candidate is None or now - self._candidate[1] < ALONE:
            return None
        key, self._candidate = self._candidate[0], None
        return key
