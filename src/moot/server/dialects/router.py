"""Routes whose errors follow a dialect."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar, Literal

from anyio import to_thread
from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from moot.convert.callers.errors import completion_error, message_error, status_of
from moot.errors import MootError, UsageError
from moot.server.auth import Route
from moot.server.problems import CODES, Problem
from moot.types.canonical import Json, dumps, loads_exact
from moot.types.exchange import Failure

__all__ = ["ANSWER", "BODY", "OBJECT", "Tongue", "body_of", "refuse", "router_of"]

LARGE = 256 * 1024
"""Bytes from which on a body is read in a thread: the others' streams go on meanwhile."""

Tongue = Literal["completion", "message"]
"""In which of two ways a dialect tells errors."""

BODY: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}
"""For the specification: the body is described by whoever made the dialect."""

OBJECT: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {"schema": {"type": "object"}}}}}
ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {"schema": {"type": "string"}}}}
}
"""What comes back: an object of the dialect, or with `stream` its events."""


def refuse(tongue: Tongue, failure: Failure, *, status: int = 0, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that says what went wrong; whether another try is of use stands in a header that the clients go by."""
    status = status or status_of(failure)
    told = dict(headers or {}) | {"x-should-retry": "true" if failure.retryable or status == 409 else "false"}
    if failure.retry_after is not None:
        told["retry-after"] = str(max(1, round(failure.retry_after)))
    if tongue == "completion" and status == 529:
        status = 503
    body = completion_error(failure) if tongue == "completion" else message_error(failure)
    return Response(dumps(body), status, headers=told, media_type="application/json")


async def body_of(request: Request) -> Json:
    """The body's JSON. Raises UsageError when it is none, or has more than one reading."""
    body = await request.body()
    try:
        return loads_exact(body) if len(body) < LARGE else await to_thread.run_sync(loads_exact, body)
    except ValueError as error:
        raise UsageError(f"the body is no JSON: {error}", fix="send one JSON document in UTF-8") from error


class _Route(Route):
    """One operation of a dialect."""

    tongue: ClassVar[Tongue]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handler(request)
            except HTTPException as error:
                return refuse(self.tongue, _of_http(error), status=error.status_code, headers=error.headers)
            except MootError as error:
                return refuse(self.tongue, Failure.of(error))

        return told


class _Completions(_Route):
    tongue = "completion"


class _Messages(_Route):
    tongue = "message"


def router_of(tongue: Tongue) -> APIRouter:
    """A router below `/v1` that tells errors so."""
    kind = _Completions if tongue == "completion" else _Messages
    return APIRouter(prefix="/v1", tags=["as a model"], route_class=kind, redirect_slashes=False)


def _of_http(error: HTTPException) -> Failure:
    fix = error.fix if isinstance(error, Problem) else ""
    return Failure(str(error.detail), CODES.get(error.status_code, "error"), fix=fix)
