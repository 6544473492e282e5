"""Which keys are an answer and which were only being typed. Pure: it is told the time."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["ALONE", "QUIET", "Quiet"]

QUIET = 0.4
"""Seconds after the question appeared, and after every key that is no answer, in which no key is one."""
ALONE = 0.15
"""Seconds that a key must stay alone before it is an answer: words and pastes come faster."""


class Quiet:
    """One question's guard. What is typed and is no answer gathers in `typed`."""

    def __init__(self, now: float) -> None:
        self.since = now
        """When the last key was pressed that is no answer, or the question appeared."""
        self.typed = ""
        self._held: tuple[str, float] | None = None

    def restart(self, now: float) -> None:
        """Another question stands there now."""
        self.since, self._held = now, None

    def take(self, key: str, now: float, wanted: Collection[str]) -> None:
        """One key, or a whole paste; it may become an answer when it stays alone."""
        waited = now - self.since >= QUIET
        if self._held is not None:
            self.typed += self._held[0]
        elif waited and key in wanted:
            self._held = (key, now)
            return
        self.typed += key
        self.since, self._held = now, None

    def forget(self, now: float) -> None:
        """Takes back the last of what was typed."""
        self.typed = self.typed[:-1]
        self.restart(now)

    def due(self, now: float) -> str | None:
        """The key that has become an answer, once."""
        if self._held is None or now - self._held[1] < ALONE:
            return None
        key, self._held = self._held[0], None
        return key
