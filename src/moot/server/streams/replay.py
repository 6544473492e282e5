"""A message from its beginning, for a client that joins in the middle or comes back without knowing where it was."""

from __future__ import annotations

from moot.convert.unfold import unfold
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import Message

__all__ = ["ended_chunks", "is_end", "is_parked", "rest_of", "whole"]


def whole(message: Message) -> tuple[Chunk, ...]:
    """The message as it stands: one `start`, each part in as few chunks as reach its state, open ones left open."""
    return unfold(message)


def ended_chunks(message: Message, end: Event | None) -> tuple[Chunk, ...]:
    """A message that has ended: the same, then the end as its run's last event has it, a failed run's `error` last of all."""
    last = end.chunks if end is not None else ()
    closing = [chunk for chunk in last if chunk.get("type") in ("finish", "abort")]
    errors = [chunk for chunk in last if chunk.get("type") == "error"]
    return (*whole(message), *closing[-1:], *errors)


def rest_of(event: Event) -> tuple[int, int]:
    """The position of the last chunk of an event."""
    return (event.seq, max(len(event.chunks) - 1, 0))


def is_end(event: Event) -> bool:
    """Whether this event ends its run."""
    return event.phase == "end" and event.key == "run"


def is_parked(event: Event) -> bool:
    """Whether the run waits behind this event."""
    return event.kind == "meta" and isinstance(event.body, dict) and event.body.get("parked") is True
