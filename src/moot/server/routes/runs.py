"""Routes for runs in all processes, and for the events of runs and conversations."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import Response

from moot.engine.locks import owner_place
from moot.errors import UsageError
from moot.server.auth import Chatter, Reader, Router
from moot.server.examples import EVENTS
from moot.server.idempotency import CurrentAttempt
from moot.server.models import ListOut, RunOut, run_out
from moot.server.resources import LIVE, Cursor, Limit, conversation_of, current_runs, run_of
from moot.server.state import CurrentServer, Server
from moot.server.streams.frames import position_of
from moot.server.streams.response import EventStream
from moot.server.streams.writers import EventWriter
from moot.types.run import Run, RunStatus

router = Router(prefix="/api/runs", tags=["runs"])

_CURSOR = re.compile(r"r([0-9a-f]{1,12})")


@router.get("")
async def list_runs(
    server: CurrentServer,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200)] = None,
    status: Annotated[list[RunStatus] | None, Query(description="Only runs with one of these statuses.")] = None,
    live: Annotated[bool, Query(description="Only runs that have not ended.")] = False,
) -> ListOut[RunOut]:
    """List runs, newest first."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    statuses = frozenset(status) if status else None
    if live:
        statuses = LIVE if statuses is None else statuses & LIVE
    before = _position(cursor)
    found = await caller.store.records.runs(conversation=within, statuses=statuses, limit=limit + 1, before=before)
    more = f"r{found[limit - 1].no:x}" if len(found) > limit else None
    return ListOut(data=[_out(server, run) for run in await current_runs(server, found[:limit])], next_cursor=more)


@router.get("/{run_id}")
async def get_run(server: CurrentServer, caller: Reader, run_id: str) -> RunOut:
    """Get a run."""
    (found,) = await current_runs(server, [await run_of(caller, run_id)])
    return _out(server, found)


@router.post("/{run_id}/cancel", status_code=202)
async def cancel_run(server: CurrentServer, caller: Chatter, run_id: str) -> RunOut:
    """Cancel a run in any process. A run that has ended is not changed."""
    found = await run_of(caller, run_id)
    await server.engine.runs.cancel(found.id)
    return _out(server, await run_of(caller, found.id))


@router.post("/{run_id}/resume", status_code=202)
async def resume_run(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, run_id: str) -> RunOut:
    """Resume an interrupted or waiting run."""
    found = await run_of(caller, run_id)
    if not attempt.repeated or (await server.engine.runs.current(found.id)).status in ("interrupted", "waiting"):
        await server.engine.runs.resume(found.id)
    return _out(server, await run_of(caller, found.id))


def _out(server: Server, run: Run) -> RunOut:
    return run_out(run, owner_place(server.engine.settings.owners, run.owner) if run.owner is not None else None)


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise UsageError(f"{cursor!r} is not a valid cursor for this list.", fix="Use the `next_cursor` from the previous page.")
    return int(match[1], 16)


events_router = Router(prefix="/api", tags=["events"])

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events. The id is the event's `seq`, the data is the event. See docs/streams.md.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EVENTS}},
    }
}
After = Annotated[int, Query(ge=0, le=0xFFFFFFFF, description="`seq` of the last event received")]
Raw = Annotated[bool, Query(description="Include the vendor's raw bytes")]
LastEventId = Annotated[str | None, Header(alias="last-event-id", description="Takes precedence over `after`")]


@events_router.get("/conversations/{conversation_id}/events", response_model=None, response_class=Response, responses=STREAM)
async def conversation_events(
    server: CurrentServer,
    caller: Reader,
    conversation_id: str,
    after: After = 0,
    raw: Raw = False,
    exact: Annotated[bool, Query(description="Send events unchanged, for `moot --url`")] = False,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream the conversation's events after `after`, in order and without gaps. The stream does not end by itself."""
    conversation = await conversation_of(caller, conversation_id)
    writer = EventWriter(caller.store.blobs, server.streams.shared("events", conversation.id, raw, exact), raw=raw, exact=exact)
    return EventStream(server, caller, conversation.id, _start(last_event_id, after), writer)


@events_router.get("/runs/{run_id}/events", response_model=None, response_class=Response, responses=STREAM)
async def run_events(
    server: CurrentServer, caller: Reader, run_id: str, after: After = 0, raw: Raw = False, last_event_id: LastEventId = None
) -> Response:
    """Stream the run's events after `after` until the run ends."""
    run = await caller.store.records.run(run_id)
    first = max(_start(last_event_id, after), run.first_seq - 1)
    writer = EventWriter(caller.store.blobs, server.streams.shared("events", run.id, raw), run=run.id, raw=raw)
    return EventStream(server, caller, run.conversation, first, writer)


def _start(last_event_id: str | None, after: int) -> int:
    position = position_of(last_event_id) if last_event_id is not None else None
    return after if position is None else position[0]
