"""Whether the server lives, whether it can work, and what it counts."""

from __future__ import annotations

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST

from moot.errors import StoreError
from moot.server.auth import Reader
from moot.server.problems import Problem
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.health import HealthOut

router = Router(tags=["health"])


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
        await here.engine.store.tokens.invalid([])
    except StoreError as error:
        raise Problem(503, "the store does not answer") from error
    return HealthOut(status="ok")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(here: Here, _: Reader) -> Response:
    """What the server counts, in Prometheus' text format."""
    return Response(here.metrics.text(), media_type=CONTENT_TYPE_LATEST)
