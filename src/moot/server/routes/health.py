"""Routes for the health and metrics of the server and the size of its store."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from anyio import to_thread
from fastapi import Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from moot.errors import StoreError
from moot.server.auth import Admin, Reader, Router
from moot.server.models import Out
from moot.server.problems import Problem
from moot.server.state import CurrentServer
from moot.store.database.errors import check_room
from moot.types.run import STARTED


class HealthOut(Out):
    """Status of a working server."""

    status: Literal["ok"]


router = Router(tags=["health"])

MANY = 10_000
"""Maximum number of live runs counted."""


@router.get("/healthz")
async def healthz() -> HealthOut:
    """Check that the process responds."""
    return HealthOut(status="ok")


@router.get("/readyz")
async def readyz(server: CurrentServer) -> HealthOut:
    """Check that the store can be read and written. Return 503 if not, or if the server is shutting down."""
    if server.stopping.is_set():
        raise Problem(503, "The server is shutting down.")
    try:
        await server.engine.store.tokens.find(b"")
    except StoreError as error:
        raise Problem(503, "The store does not respond.") from error
    try:
        await to_thread.run_sync(check_room, server.engine.settings.database)
    except StoreError as error:
        detail = f"The store can be read, but not written: {error.message}"
        raise Problem(503, detail, code=error.code, fix=error.fix) from error
    return HealthOut(status="ok")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": 'moot_live_runs{status="running"} 1\n'}}}},
)
async def metrics(server: CurrentServer, _: Reader) -> Response:
    """Get the server's metrics in the Prometheus text format."""
    engine = server.engine
    live = Counter(run.status for run in await engine.store.records.runs(statuses=STARTED, limit=MANY))
    return Response(server.metrics.text(live, engine.runtime.hub.published), media_type=CONTENT_TYPE_LATEST)


class ExtentOut(Out):
    """Number and size of events that are stored in the same way."""

    events: int
    bytes: int
    """Size of the events' content."""
    stored_bytes: int


class RowsOut(ExtentOut):
    """Recent events, which are stored as database rows. `stored_bytes` is an estimate."""

    raw_bytes: int


class SegmentsOut(ExtentOut):
    """Older events, which are stored in compressed segments of the log."""

    count: int
    frames: int


class FilesOut(Out):
    """Size of the blobs (files stored by hash)."""

    bytes: int
    inside_bytes: int
    """Size of the blobs stored inside the database."""


class ConversationSizeOut(Out):
    """Size of one conversation's log."""

    id: str
    title: str
    rows: ExtentOut
    segments: ExtentOut


class SizesOut(Out):
    """Storage usage of the whole store."""

    database_bytes: int
    free_bytes: int
    """Size of unused database pages."""
    gives_back: bool
    """True if the database file can shrink without being rewritten."""
    rows: RowsOut
    segments: SegmentsOut
    messages_bytes: int
    index_bytes: int
    requests_bytes: int
    blobs: FilesOut
    checkpoints_bytes: int
    """Size of the separate database with the earlier contents of files, for undo."""
    largest: list[ConversationSizeOut]


store_router = Router(prefix="/api/store", tags=["store"])


@store_router.get("")
async def get_store(
    server: CurrentServer,
    caller: Admin,
    largest: Annotated[int, Query(ge=0, le=200, description="Number of conversations to list, largest first.")] = 10,
) -> SizesOut:
    """Get the storage used by the log, messages, search index, requests, files and free pages. Scans the whole store.

    Only your own conversations are listed.
    """
    sizes = await server.engine.store.upkeep.sizes(largest=largest, owner=caller.owner_id)
    return SizesOut.model_validate(sizes.to_json())
