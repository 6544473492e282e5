"""Where a stream starts: at the live message or after the last event a client received."""

from __future__ import annotations

from dataclasses import dataclass, field

from moot.convert.unfold import unfold
from moot.engine import Engine
from moot.errors import NotFound
from moot.server.credentials import Caller
from moot.server.streams.frames import Position, position_of
from moot.types.chunk import Chunk
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import TERMINAL, Run

__all__ = ["FRESH", "Opening", "behind", "ended_chunks", "is_end", "is_parked", "replayed", "rest_of", "shown", "waits", "whole"]


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


FRESH = 5 * 60
"""Seconds for which a run that has ended can still be joined."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a client gets first, and where the live part begins."""

    conversation: str
    run: str
    after: Position
    """Of the last chunk that it has, with `chunks`."""
    chunks: tuple[Chunk, ...] = field(default=())
    over: bool = False
    """Nothing comes behind them."""
    position: Position = (0, 0)
    """What the last of the chunks stands for; (0, 0) = for nothing of the log."""


async def shown(engine: Engine, caller: Caller, conversation: Conversation, last_event_id: str | None) -> Opening | None:
    """What somebody gets who comes (back) to a conversation; None when there is nothing to go on with."""
    if last_event_id is not None and (position := position_of(last_event_id)) is not None:
        found = await behind(caller, conversation, position)
        if found is not None:
            return None if found.over else found
    if conversation.head is None:
        return None
    message = await caller.store.conversations.message(conversation.head)
    if message.run is None:
        return None
    run = await engine.runs.current(message.run)
    now = engine.runtime.now() // 1000
    if run.status in TERMINAL and now - (run.ended_at or now) > FRESH * 1000:
        return None
    return await replayed(engine, caller, message.id)


async def behind(caller: Caller, conversation: Conversation, position: Position) -> Opening | None:
    """The rest of the message that this position lies in; None when it lies in none, so the client's place is not known."""
    seq, index = position
    found = await caller.store.log.read(conversation.id, after=seq - 1, limit=1)
    event = found[0] if found and found[0].seq == seq else None
    if event is None or event.run is None:
        return None
    whole_event = index >= len(event.chunks) - 1
    return Opening(conversation.id, event.run, position, over=whole_event and is_end(event))


async def replayed(engine: Engine, caller: Caller, message_id: str) -> Opening:
    """The whole message over all legs of its run so far, as few chunks; the rest of it follows. Raises NotFound."""
    message = await caller.store.conversations.message(message_id)
    if message.run is None:
        raise NotFound(f"the message {message_id!r} was written by no run")
    run = await caller.store.records.run(message.run)
    last = await _event(caller, message, message.folded_through)
    after = rest_of(last) if last is not None else (message.folded_through, 0)
    if message.status in TERMINAL or (last is not None and is_end(last)):
        return Opening(run.conversation, run.id, after, ended_chunks(message, last), True, after)
    over = run.status == "interrupted" or (run.status == "waiting" and await waits(caller, run))
    return Opening(run.conversation, run.id, after, whole(message), over, after)


async def waits(caller: Caller, run: Run) -> bool:
    """Whether a run that has parked has something open; one whose answers are there goes on by itself."""
    return bool(await caller.store.records.approvals(run=run.id))


async def _event(caller: Caller, message: Message, seq: int) -> Event | None:
    found = await caller.store.log.read(message.conversation, after=seq - 1, limit=1) if seq else []
    return found[0] if found and found[0].seq == seq else None
