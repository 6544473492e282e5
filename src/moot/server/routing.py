"""Routes as all of ours are: who asks is known before a body is read, and bodies are read to the letter."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from moot.server.auth import gates
from moot.types.canonical import loads_exact


class StrictRequest(Request):
    """A request whose JSON has one reading: no duplicate keys, no NaN, no depth without end."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return loads_exact(body.decode())  # JSON by itself would guess other encodings
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error


class Route(APIRoute):
    """One operation."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        asked = gates(self.dependant)

        async def strict(request: Request) -> Response:
            for gate in asked:
                await gate(request)
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


class Router(APIRouter):
    """The operations of one resource: `router = Router(prefix="/api/conversations", tags=["conversations"])`."""

    def __init__(self, *, prefix: str = "", tags: list[str] | None = None) -> None:
        super().__init__(prefix=prefix, tags=list(tags or []), route_class=Route, redirect_slashes=False)
