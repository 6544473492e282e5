"""Runs of all processes, and the events of runs and conversations."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import Response

from moot.engine.locks import owner_place
from moot.errors import NotFound, UsageError
from moot.server.auth import Chatter, Reader, Router
from moot.server.models import ListOut, RunOut, run_out
from moot.server.resources import LIVE, Cursor, Limit, conversation_of, current, run_of
from moot.server.state import Here, Server
from moot.server.streams.frames import position_of
from moot.server.streams.response import EventStream
from moot.server.streams.writers import EventScribe
from moot.types.run import Run, RunStatus

router = Router(prefix="/api/runs", tags=["runs"])

_CURSOR = re.compile(r"r([0-9a-f]{1,12})")


@router.get("")
async def list_runs(
    here: Here,
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200)] = None,
    status: Annotated[list[RunStatus] | None, Query(description="Only those in one of these states.")] = None,
    live: Annotated[bool, Query(description="Only those that have not ended.")] = False,
) -> ListOut[RunOut]:
    """Lists runs, newest first."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    wanted = frozenset(status) if status else None
    if live:
        wanted = LIVE if wanted is None else wanted & LIVE
    before = _position(cursor)
    found = await caller.store.records.runs(conversation=within, statuses=wanted, limit=limit + 1, before=before)
    more = f"r{found[limit - 1].no:x}" if len(found) > limit else None
    return ListOut(data=[_out(here, run) for run in await current(here, found[:limit])], next_cursor=more)


@router.get("/{run_id}")
async def get_run(here: Here, caller: Reader, run_id: str) -> RunOut:
    """Gives a run."""
    (found,) = await current(here, [await run_of(caller, run_id)])
    return _out(here, found)


@router.post("/{run_id}/cancel", status_code=202)
async def cancel_run(here: Here, caller: Chatter, run_id: str) -> RunOut:
    """Stops a run, wherever it goes on; nothing happens to one that has ended."""
    found = await run_of(caller, run_id)
    await here.engine.runs.cancel(found.id)
    return _out(here, await run_of(caller, found.id))


@router.post("/{run_id}/resume", status_code=202)
async def resume_run(here: Here, caller: Chatter, run_id: str) -> RunOut:
    """Takes up a run that was interrupted or waits."""
    found = await run_of(caller, run_id)
    await here.engine.runs.resume(found.id)
    return _out(here, await run_of(caller, found.id))


def _out(here: Server, run: Run) -> RunOut:
    return run_out(run, owner_place(here.engine.settings.owners, run.owner) if run.owner is not None else None)


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise UsageError(f"{cursor!r} is no cursor of this list", fix="take it from the page before, unchanged")
    return int(match[1], 16)


events_router = Router(prefix="/api", tags=["events"])

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: the id is the seq, the data an event. See docs/streams.md.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
After = Annotated[int, Query(ge=0, le=0xFFFFFFFF, description="the seq of the last event that is known")]
Raw = Annotated[bool, Query(description="also what the vendor sent")]
LastEventId = Annotated[str | None, Header(alias="last-event-id", description="goes before `after`")]


@events_router.get("/conversations/{conversation_id}/events", response_model=None, response_class=Response, responses=STREAM)
async def conversation_events(
    here: Here, caller: Reader, conversation_id: str, after: After = 0, raw: Raw = False, last_event_id: LastEventId = None
) -> Response:
    """Streams every event behind `after`, dense and in order; it never ends by itself."""
    conversation = await caller.store.conversations.by_client_id(conversation_id)
    if conversation is None:
        raise NotFound(f"no conversation with the id {conversation_id!r}")
    scribe = EventScribe(caller.store.blobs, here.streams.shared("events", conversation.id, raw), raw=raw)
    return EventStream(here, caller, conversation.id, _behind(last_event_id, after), scribe)


@events_router.get("/runs/{run_id}/events", response_model=None, response_class=Response, responses=STREAM)
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
