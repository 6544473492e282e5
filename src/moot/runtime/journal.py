"""An in-memory index of a run's journal, which shows the keys that have started and ended. The log is authoritative."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from moot.types.canonical import JsonObject
from moot.types.event import Event

LEG: JsonObject = {"leg": True}
"""Body of the event that starts another leg of a run, or ends an outside agent's wait for a person."""
PARKED: JsonObject = {"parked": True}
"""Body of the event after which a run waits: at the end of a leg, or while an outside agent is waiting for a person."""


def worked(events: Iterable[Event]) -> float:
    """Return the seconds that a run has worked. The time between legs (a wait, or downtime after a crash) does not count."""
    total, last = 0, None
    for event in events:
        if last is not None and (event.kind, event.body) != ("meta", LEG) and (last.kind, last.body) != ("meta", PARKED):
            total += max(0, event.at - last.at)
        last = event
    return total / 1_000_000


class Journal:
    """The start and end events of a run's pieces of work, and the last note of each, by key. Call `add` for each appended event."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.starts: dict[str, Event] = {}
        self.ends: dict[str, Event] = {}
        self.notes: dict[str, JsonObject] = {}
        """The last note that each running tool call recorded."""
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        if event.key is None:
            return
        if event.phase == "start":
            self.starts[event.key] = event
        elif event.phase == "end":
            self.ends[event.key] = event
        elif event.kind == "journal" and isinstance(event.body, dict):
            self.notes[event.key] = event.body

    def standing(self, key: str) -> Literal["new", "begun", "ended"]:
        """Return the state of a unit of work across all its attempts."""
        attempts = self.next_attempt(key)
        if any(f"{key}.{attempt}" in self.ends for attempt in range(max(attempts, 1))):
            return "ended"
        return "begun" if attempts else "new"

    def next_attempt(self, base: str) -> int:
        """Return the number `n` of the first attempt `<base>.<n>` that has not started."""
        attempt = 0
        while f"{base}.{attempt}" in self.starts:
            attempt += 1
        return attempt
