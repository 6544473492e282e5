"""Start of a stream: at the beginning of the live message, or after the last chunk that the client received."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from moot.convert.unfold import unfold
from moot.convert.vendor import as_object
from moot.engine import Engine
from moot.errors import NotFound
from moot.server.credentials import Caller
from moot.server.streams.frames import Position, Step, position_of
from moot.types.canonical import JsonObject
from moot.types.chunk import FINISH_STEP, Chunk
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import OPEN, TERMINAL


def ended_chunks(message: Message, end: Event | None) -> tuple[Chunk, ...]:
    """Return the chunks of a complete message, including the chunks that end its run. The `error` of a failed run is the last chunk."""
    last = end.chunks if end is not None else ()
    closing = [chunk for chunk in last if chunk.get("type") in ("finish", "abort")]
    errors = [chunk for chunk in last if chunk.get("type") == "error"]
    return (*unfold(message), *closing[-1:], *errors)


def is_end(event: Event) -> bool:
    """Return True if this event ends its run."""
    return event.phase == "end" and event.key == "run"


def is_parked(event: Event) -> bool:
    """Return True if the run is waiting after this event."""
    return event.kind == "meta" and isinstance(event.body, dict) and event.body.get("parked") is True


def requests_in(event: Event) -> set[str]:
    """Return the ids of the approvals that this event requests."""
    found = [as_object(event.body).get("awaits")]
    for chunk in event.chunks:
        if chunk.get("type") in ("tool-approval-request", "data-questions"):
            found.append((chunk if "approvalId" in chunk else as_object(chunk.get("data"))).get("approvalId"))
    return {id for id in found if isinstance(id, str)}


@dataclass(frozen=True, slots=True)
class Opening:
    """The first chunks for a client, and the position from which events are streamed."""

    conversation: str
    run: str
    after: Position
    """Position of the last chunk that the client has after it received `chunks`."""
    chunks: tuple[Chunk, ...] = field(default=())
    over: bool = False
    """True if the stream ends after `chunks`."""
    position: Position = (0, 0)
    """Position that the client has reached after the last of `chunks`; (0, 0) = none."""
    step: Step = "closed"
    """State of the client's step before `chunks`."""
    notes: tuple[str, ...] = ()
    """Warnings about the prompt, which are not part of a message."""


async def shown(engine: Engine, caller: Caller, conversation: Conversation, last_event_id: str | None) -> Opening | None:
    """Return the stream for a client that opens a conversation, or None if there is nothing to stream.

    The stream continues after `last_event_id`, or else contains the message being written. A message that is complete or is waiting for an
    answer is never sent again, because the client would show it twice and repeat its tool calls.
    """
    if last_event_id is not None and (position := position_of(last_event_id)) is not None:
        found = await opening_after(caller, conversation, position)
        if found is not None and not found.over:
            return found
    if conversation.head is None:
        return None
    message = await _live_message(caller, conversation.head)
    if message.run is None:
        return None
    run = await engine.runs.current(message.run)
    if run.status in TERMINAL or run.status == "interrupted":
        return None
    opening = await opening_of(engine, caller, message.id)
    return None if opening.over else opening


async def _live_message(caller: Caller, head: str) -> Message:
    """Return the branch's last message. If prompts are queued after the message being written, return the message being written."""
    at = await caller.store.conversations.message(head)
    while at.run is not None and at.parent is not None and (await caller.store.records.run(at.run)).status == "queued":
        prompt = await caller.store.conversations.message(at.parent)
        before = await caller.store.conversations.message(prompt.parent) if prompt.parent is not None else None
        if before is None or before.run is None or (await caller.store.records.run(before.run)).status not in OPEN:
            break
        at = before
    return at


async def opening_after(caller: Caller, conversation: Conversation, position: Position) -> Opening | None:
    """Return the stream of the message from this position on, or None if the position is not in a message."""
    seq, index = position
    event = await _event(caller, conversation.id, seq)
    if event is None or event.run is None:
        return None
    whole_event = index >= len(event.chunks) - 1
    step = await step_at(caller, conversation.id, event.run, position)
    return Opening(conversation.id, event.run, position, over=whole_event and is_end(event), step=step)


_WINDOW = 64


async def step_at(caller: Caller, conversation: str, run: str, position: Position) -> Step:
    """Return the state of the run's step for a client whose last stream ended at this position."""
    seq, index = position
    size, left = _WINDOW, False
    while True:
        events = await caller.store.log.read(conversation, after=max(seq - size, 0), limit=size, run=run)
        for event in reversed([event for event in events if event.seq <= seq]):
            left = left or is_parked(event)
            for chunk in reversed(event.chunks if event.seq < seq else event.chunks[: index + 1]):
                if chunk.get("type") in ("start-step", "finish-step"):
                    return "closed" if chunk["type"] == "finish-step" else "left" if left else "open"
        if size >= seq:
            return "closed"
        left, size = False, size * 2


async def end_of_wait(caller: Caller, message: Message, approvals: Set[str], sent: Sequence[JsonObject]) -> int:
    """Return the sequence number of the last event that a client had when it answered; 0 if the run didn't wait for these approvals.

    Usually that is the event at which the run started to wait, because the client's stream ended there. But an outside agent continues to
    work while it waits, so a client that loaded the message later has more events. The length of the texts in `sent`, the client's copy of
    the message, shows how many.
    """
    events: Sequence[Event] = ()
    wait, after = 0, message.folded_through
    while not wait and after >= message.first_seq:
        after = max(2 * after - message.folded_through - _WINDOW, message.first_seq - 1)
        asked = False
        events = await caller.store.log.read(message.conversation, after=after, limit=message.folded_through - after, run=message.run)
        for event in events:
            asked = asked or not approvals.isdisjoint(requests_in(event))
            if asked and is_parked(event):
                wait, asked = event.seq, False
    later = [event for event in events if event.seq > wait > 0]
    missing = _length(message.parts) - _length(sent)
    unseen = sum(map(_delta_length, later))
    for event in later:
        if (length := _delta_length(event)) and unseen - length >= missing:
            wait = event.seq
        unseen -= length
    return wait


def _length(parts: Sequence[JsonObject]) -> int:
    return sum(len(str(part.get("text"))) for part in parts if part.get("type") in ("text", "reasoning"))


def _delta_length(event: Event) -> int:
    return sum(len(str(chunk.get("delta"))) for chunk in event.chunks if chunk.get("type") in ("text-delta", "reasoning-delta"))


async def opening_of(engine: Engine, caller: Caller, message_id: str) -> Opening:
    """Return a stream with the whole message in few chunks, followed by new events. Raise NotFound if no run wrote the message."""
    message = await caller.store.conversations.message(message_id)
    if message.run is None:
        raise NotFound(f"The message {message_id!r} does not belong to a run.")
    run = await caller.store.records.run(message.run)
    last = await _event(caller, message.conversation, message.folded_through) if message.folded_through else None
    after = (message.folded_through, max(len(last.chunks) - 1, 0) if last is not None else 0)
    if message.status in TERMINAL or (last is not None and is_end(last)):
        return Opening(run.conversation, run.id, after, ended_chunks(message, last), True, after)
    over = run.status == "interrupted" or (run.status == "waiting" and bool(await open_approvals(caller, run.id)))
    chunks = unfold(message)
    if await step_at(caller, run.conversation, run.id, after) == "closed":
        chunks = (*chunks, FINISH_STEP)
    return Opening(run.conversation, run.id, after, chunks, over, after)


async def open_approvals(caller: Caller, run: str) -> set[str]:
    """Return the ids of a run's unanswered approvals. A waiting run without any continues by itself."""
    return {approval.id for approval in await caller.store.records.approvals(run=run)}


async def _event(caller: Caller, conversation: str, seq: int) -> Event | None:
    found = await caller.store.log.read(conversation, after=seq - 1, limit=1)
    return found[0] if found and found[0].seq == seq else None
