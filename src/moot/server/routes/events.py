"""Every event of a conversation or of a run, live, as it is stored."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import Response

from moot.errors import NotFound
from moot.server.auth import Reader
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.streams.frames import position_of
from moot.server.streams.response import EventStream
from moot.server.streams.scribes import EventScribe

router = Router(prefix="/api", tags=["events"])

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: the id is the seq, the data an event. See docs/streams.md.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
After = Annotated[int, Query(ge=0, le=0xFFFFFFFF, description="the seq of the last event that is known")]
Raw = Annotated[bool, Query(description="also what the vendor sent")]
LastEventId = Annotated[str | None, Header(alias="last-event-id", description="goes before `after`")]


@router.get("/conversations/{conversation_id}/events", response_model=None, response_class=Response, responses=STREAM)
async def conversation_events(
    here: Here, caller: Reader, conversation_id: str, after: After = 0, raw: Raw = False, last_event_id: LastEventId = None
) -> Response:
    """Streams every event behind `after`, dense and in order; it never ends by itself."""
    conversation = await caller.store.conversations.by_client_id(conversation_id)
    if conversation is None:
        raise NotFound(f"no conversation with the id {conversation_id!r}")
    scribe = EventScribe(caller.store.blobs, here.streams.shared("events", conversation.id, raw), raw=raw)
    return EventStream(here, caller, conversation.id, _behind(last_event_id, after), scribe)


@router.get("/runs/{run_id}/events", response_model=None, response_class=Response, responses=STREAM)
async def run_events(
    here: Here, caller: Reader, run_id: str, after: After = 0, raw: Raw = False, last_event_id: LastEventId = None
) -> Response:
    """Streams the run's events behind `after` until it has ended."""
    run = await caller.store.records.run(run_id)
    first = max(_behind(last_event_id, after), run.first_seq - 1)
    scribe = EventScribe(caller.store.blobs, here.streams.shared("events", run.id, raw), run=run.id, raw=raw)
    return EventStream(here, caller, run.conversation, first, scribe)


def _behind(last_event_id: str | None, after: int) -> int:
    position = position_of(last_event_id) if last_event_id is not None else None
    return after if position is None else position[0]
