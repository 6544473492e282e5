"""Health, metrics and the size of the store."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from fastapi import Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from moot.errors import StoreError
from moot.server.auth import Admin, Reader, Router
from moot.server.models import Out
from moot.server.problems import Problem
from moot.server.state import Here
from moot.types.run import STARTED


class HealthOut(Out):
    """A server that works."""

    status: Literal["ok"]


router = Router(tags=["health"])

MANY = 10_000
"""Live runs that are counted."""


@router.get("/healthz")
async def healthz() -> HealthOut:
    """Says that the process answers."""
    return HealthOut(status="ok")


@router.get("/readyz")
async def readyz(here: Here) -> HealthOut:
    """Says that the store answers; 503 when it does not, or when the server is about to stop."""
    if here.stopping.is_set():
        raise Problem(503, "the server is about to stop")
    try:
        await here.engine.store.tokens.find(b"")
    except StoreError as error:
        raise Problem(503, "the store does not answer") from error
    return HealthOut(status="ok")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(here: Here, _: Reader) -> Response:
    """What the server counts, in Prometheus' text format."""
    engine = here.engine
    live = Counter(run.status for run in await engine.store.records.runs(statuses=STARTED, limit=MANY))
    return Response(here.metrics.text(live, engine.runtime.hub.published), media_type=CONTENT_TYPE_LATEST)


class ExtentOut(Out):
    """Events that lie together in one form."""

    events: int
    bytes: int
    """Of what they say."""
    stored_bytes: int


class RowsOut(ExtentOut):
    """Those that are rows; what they take is about."""

    raw_bytes: int


class SegmentsOut(ExtentOut):
    """Those that are sealed."""

    count: int
    frames: int


class FilesOut(Out):
    """Contents by their hash."""

    bytes: int
    inside_bytes: int
    """Of them in the database."""


class ConversationSizeOut(Out):
    """The log of one conversation."""

    id: str
    title: str
    rows: ExtentOut
    segments: ExtentOut


class SizesOut(Out):
    """All of the store."""

    database_bytes: int
    free_bytes: int
    """Pages of it that nothing lies in."""
    gives_back: bool
    """Whether the file can become smaller without being written anew."""
    rows: RowsOut
    segments: SegmentsOut
    messages_bytes: int
    index_bytes: int
    requests_bytes: int
    blobs: FilesOut
    largest: list[ConversationSizeOut]


store_router = Router(prefix="/api/store", tags=["store"])


@store_router.get("")
async def get_store(
    here: Here, caller: Admin, largest: Annotated[int, Query(ge=0, le=200, description="How many conversations to name.")] = 10
) -> SizesOut:
    """Adds up the database: the log, sealed or not, messages, search, requests, files, free pages. Looks through all of it.

    Of conversations only your own are named.
    """
    sizes = await here.engine.store.upkeep.sizes(largest=largest, owner=caller.owner_id)
    return SizesOut.model_validate(sizes.to_json())
