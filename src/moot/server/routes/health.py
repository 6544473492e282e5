"""Whether the server lives, whether it can work, and what it counts."""

from __future__ import annotations

from collections import Counter

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST

from moot.errors import StoreError
from moot.server.auth import Reader
from moot.server.problems import Problem
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.health import HealthOut
from moot.types.run import STARTED

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
