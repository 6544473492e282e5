"""The starting position of a stream: at the live message or after the last event a client received."""

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


def ended_chunks(message: Message, end: Event | None) -> tuple[Chunk, ...]:
    """Return the chunks of a message that has ended, with the end of its run; the `error` of a failed run comes last."""
    last = end.chunks if end is not None else ()
    closing = [chunk for chunk in last if chunk.get("type") in ("finish", "abort")]
    errors = [chunk for chunk in last if chunk.get("type") == "error"]
    return (*unfold(message), *closing[-1:], *errors)


def is_end(event: Event) -> bool:
    """Return True if this event ends its run."""
    return event.phase == "end" and event.key == "run"


def is_parked(event: Event) -> bool:
    """Return True if the run waits after this event."""
    return event.kind == "meta" and isinstance(event.body, dict) and event.body.get("parked") is True


FRESH = 5 * 60
"""Seconds during which a run that has ended can still be joined."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The first chunks for a client, and the position from which events are streamed."""

    conversation: str
    run: str
    after: Position
    """Position of the last chunk the client has, including `chunks`."""
    chunks: tuple[Chunk, ...] = field(default=())
    over: bool = False
    """True if nothing follows the chunks."""
    position: Position = (0, 0)
    """Position represented by the last of the chunks; (0, 0) = none."""


async def shown(engine: Engine, caller: Caller, conversation: Conversation, last_event_id: str | None) -> Opening | None:
    """Return the stream for a client that opens a conversation, or None if there is nothing to stream."""
    if last_event_id is not None and (position := position_of(last_event_id)) is not None:
        found = await opening_after(caller, conversation, position)
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
    return await opening_of(engine, caller, message.id)


async def opening_after(caller: Caller, conversation: Conversation, position: Position) -> Opening | None:
    """Return the rest of the message at this position, or None if the position belongs to no message."""
    seq, index = position
    event = await _event(caller, conversation.id, seq)
    if event is None or event.run is None:
        return None
    whole_event = index >= len(event.chunks) - 1
    return Opening(conversation.id, event.run, position, over=whole_event and is_end(event))


async def opening_of(engine: Engine, caller: Caller, message_id: str) -> Opening:
    """Return the whole message, across all resumptions of its run, in few chunks; new events follow. Raise NotFound if no run wrote it."""
    message = await caller.store.conversations.message(message_id)
    if message.run is None:
        raise NotFound(f"The message {message_id!r} was not written by a run.")
    run = await caller.store.records.run(message.run)
    last = await _event(caller, message.conversation, message.folded_through) if message.folded_through else None
    after = (message.folded_through, max(len(last.chunks) - 1, 0) if last is not None else 0)
    if message.status in TERMINAL or (last is not None and is_end(last)):
        return Opening(run.conversation, run.id, after, ended_chunks(message, last), True, after)
    over = run.status == "interrupted" or (run.status == "waiting" and await has_open_approvals(caller, run))
    return Opening(run.conversation, run.id, after, unfold(message), over, after)


async def has_open_approvals(caller: Caller, run: Run) -> bool:
    """Return True if a waiting run has unanswered approvals; a run with all answers continues by itself."""
    return bool(await caller.store.records.approvals(run=run.id))


async def _event(caller: Caller, conversation: str, seq: int) -> Event | None:
    found = await caller.store.log.read(conversation, after=seq - 1, limit=1)
    return found[0] if found and found[0].seq == seq else None
