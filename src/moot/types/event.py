"""The event that is stored and published: the vendor's bytes and the chunks translated from them."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk

Raw: TypeAlias = bytes
"""The exact bytes of one frame with its framing: an SSE event with all its lines, or a JSON line. If the stream was cut off, the last raw
is incomplete."""

EventKind: TypeAlias = Literal["raw", "chunks", "journal", "message", "tree", "exchange", "tombstone", "meta"]
"""raw: vendor bytes and their chunks · chunks: made by moot · journal: a start or end without chunks · message: a complete user, system or
imported message · tree: head, edit, delete, fork, compaction · exchange: start, end · tombstone: purged or redacted · meta: other
facts, such as a new title."""

Phase: TypeAlias = Literal["start", "end"]

REFUSED: JsonObject = {"refused": True}
"""The body of a `raw` event with the response to a refused request: stored, but not passed to the translator."""

SENT: JsonObject = {"dir": "out"}
"""The body of a `raw` event with a line that moot sent; a null body means that the vendor sent the line. Must not be modified."""


class Event(NamedTuple):
    """One entry of the log. A tuple, because an event is created for every frame, and creating a dataclass takes three times as long."""

    kind: EventKind | str
    """One of `EventKind`. An unknown string comes from a newer version of moot: such an event is kept, passed on and skipped in folds."""
    chunks: tuple[Chunk, ...] = ()
    raw: Raw | None = None
    run: str | None = None
    exchange: str | None = None
    phase: Phase | None = None
    key: str | None = None
    """Journal key (`llm:<step>.<attempt>`, `tool:<step>.<n>.<attempt>`), unique per run and phase."""
    body: Json = None
    """The content of a journal, message, tree, exchange or meta event; null otherwise."""
    at: int = 0
    """Wall time, µs since the epoch; 0 = the store sets it."""
    seq: int = 0
    """Position in the conversation, starting at 1 without gaps. 0 = not stored yet. Set by the store in the appending transaction."""
    redacted: JsonObject | None = None
    """`{reason, at}` if content was redacted. The log stores such an event as a tombstone; in memory it keeps its remaining content."""

    @property
    def text(self) -> str:
        """The text that this event adds to the answer; usually empty or a few letters."""
        return "".join([str(chunk["delta"]) for chunk in self.chunks if chunk["type"] == "text-delta"])


def as_tombstone(event: Event) -> Event:
    """Return the event as the log stores it: a redacted event becomes a tombstone whose body contains the original kind."""
    if event.redacted is None:
        return event
    body: JsonObject = {"was": event.kind, **event.redacted, "body": event.body}
    return event._replace(kind="tombstone", body=body, redacted=None)


def from_tombstone(event: Event) -> Event:
    """Return the redacted event that a tombstone stands for, with the content that remains. Return any other event unchanged."""
    body = event.body
    if event.kind != "tombstone" or not isinstance(body, dict) or not isinstance(was := body.get("was"), str):
        return event
    return event._replace(kind=was, body=body.get("body"), redacted={"reason": body.get("reason"), "at": body.get("at")})
