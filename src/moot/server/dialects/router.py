"""Routes below `/v1`, whose errors have the format of the vendor's API."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from anyio import to_thread
from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from moot.errors import MootError, UsageError
from moot.server.auth import Route
from moot.server.problems import CODES, ErrorFormat, Problem, refuse
from moot.types.canonical import Json, loads_exact
from moot.types.exchange import Failure

LARGE = 256 * 1024
"""Body size in bytes above which JSON is parsed in a thread, so that other streams are not blocked."""


async def body_of(request: Request) -> Json:
    """Parse the body's JSON. Raise UsageError if it is invalid or ambiguous."""
    body = await request.body()
    try:
        return loads_exact(body) if len(body) < LARGE else await to_thread.run_sync(loads_exact, body)
    except ValueError as error:
        raise UsageError(f"The body is not valid JSON: {str(error).rstrip('.')}.", fix="Send one JSON document in UTF-8.") from error


class _Route(Route):
    """A route that returns errors in the vendor's format."""

    error_format: ClassVar[ErrorFormat] = "completion"

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def all_headers(request: Request) -> Response:
            try:
                return await handler(request)
            except HTTPException as error:
                fix = error.fix if isinstance(error, Problem) else ""
                failure = Failure(str(error.detail), CODES.get(error.status_code, "error"), fix=fix)
                return refuse(self.error_format, failure, status=error.status_code, headers=error.headers)
            except MootError as error:
                return refuse(self.error_format, Failure.of(error))

        return all_headers


class _Messages(_Route):
    error_format = "message"


def router_of(error_format: ErrorFormat) -> APIRouter:
    """Return a router below `/v1` that uses this error format."""
    kind = _Route if error_format == "completion" else _Messages
    return APIRouter(prefix="/v1", tags=["model API"], route_class=kind, redirect_slashes=False)
