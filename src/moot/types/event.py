"""The envelope that is stored and published: the vendor's own words, and what moot made of them."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk

Raw: TypeAlias = bytes
"""The exact bytes of one frame with its framing: an SSE event with all its lines, a JSON line. A cut tail is a last raw."""

EventKind: TypeAlias = Literal["raw", "chunks", "journal", "message", "tree", "exchange", "tombstone", "meta"]
"""raw: vendor bytes and the chunks they stand for · chunks: made by moot · journal: a bare start or end · message: a whole user, system or
imported message · tree: head, edit, delete, fork, compaction · exchange: start, end · tombstone: purged or redacted · meta."""

Phase: TypeAlias = Literal["start", "end"]

REFUSED: JsonObject = {"refused": True}
"""The body of a `raw` event that holds what a refusal said: kept, and not part of what the translator was given."""

SENT: JsonObject = {"dir": "out"}
"""The body of a `raw` event that holds a line which we sent; a null body = from the vendor. Never changed."""


class Event(NamedTuple):
    """One row of the log. A tuple, not a dataclass: one is made for every frame on the hot path, and this costs a third."""

    kind: EventKind | str
    """One of `EventKind`; a string that we don't know comes from a newer moot and is kept, passed on and skipped in folds."""
    chunks: tuple[Chunk, ...] = ()
    raw: Raw | None = None
    run: str | None = None
    exchange: str | None = None
    phase: Phase | None = None
    key: str | None = None
    """Journal key (`llm:<step>.<attempt>`, `tool:<step>.<n>.<attempt>`), unique per run and phase."""
    body: Json = None
    """What a journal, message, tree, exchange or meta event says; null otherwise."""
    at: int = 0
    """Wall time, µs since the epoch; 0 = the store sets it."""
    seq: int = 0
    """Position in the conversation, dense from 1; 0 = not stored yet. Only the store sets it, in the appending transaction."""
    redacted: JsonObject | None = None
    """`{reason, at}` of an event out of which something was taken; in the log it is a tombstone, here it is what is left of it."""

    @property
    def text(self) -> str:
        """What it adds to the text of the answer, as somebody reads it who prints what comes; mostly empty or a few letters."""
        return "".join([str(chunk["delta"]) for chunk in self.chunks if chunk["type"] == "text-delta"])


def told(event: Event) -> Event:
    """The event as the log has it: one that was redacted is a tombstone, whose body says what it was."""
    if event.redacted is None:
        return event
    body: JsonObject = {"was": event.kind, **event.redacted, "body": event.body}
    return event._replace(kind="tombstone", body=body, redacted=None)


def former(event: Event) -> Event:
    """What is left of the event that a tombstone was; any other as it is."""
    body = event.body
    if event.kind != "tombstone" or not isinstance(body, dict) or not isinstance(was := body.get("was"), str):
        return event
    return event._replace(kind=was, body=body.get("body"), redacted={"reason": body.get("reason"), "at": body.get("at")})
