"""Runs of all processes that use this store."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query

from moot.engine.owners import place_of
from moot.errors import UsageError
from moot.server.auth import Chatter, Reader
from moot.server.finding import LIVE, conversation_of, current, run_of
from moot.server.paging import Cursor, Limit
from moot.server.routing import Router
from moot.server.state import Here, Server
from moot.server.wire.base import ListOut
from moot.server.wire.runs import RunOut, run_out
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
    return run_out(run, place_of(here.engine.settings.owners, run.owner) if run.owner is not None else None)


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise UsageError(f"{cursor!r} is no cursor of this list", fix="take it from the page before, unchanged")
    return int(match[1], 16)
