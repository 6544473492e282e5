"""Authentication: who sends a request, the scope a route declares, and routers that require one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeAlias, cast

from fastapi import APIRouter, Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from moot.server.credentials import Caller
from moot.server.problems import Problem
from moot.server.state import Server, server_of
from moot.types.canonical import loads_exact
from moot.types.token import Scope

COOKIE = "moot_session"
"""The browser's cookie; its value is the secret of a token of kind `browser`."""

FOREIGN = "/v1/"
"""Below it the dialects of others are spoken, whose clients put the key into `x-api-key`."""

_FIX = "send `Authorization: Bearer …` with a token of `moot tokens create NAME`, or open the page with `moot web`"


def secret_of(request: Request) -> str | None:
    """The credential that a request shows: None without one. A header goes before the cookie, which a browser sends by itself."""
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, secret = header.partition(" ")
        return secret.strip() if kind.lower() == "bearer" else ""
    if request.scope["path"].startswith(FOREIGN) and (key := request.headers.get("x-api-key")) is not None:
        return key
    return request.cookies.get(COOKIE)


def address_of(request: Request) -> str:
    """Where a request comes from; a proxy's own address for all that come through it."""
    return request.client.host if request.client is not None else ""


async def caller_of(request: Request, server: Server) -> Caller:
    """Whoever asks. Raises Problem (401)."""
    known: Caller | None = request.scope.get("moot.caller")
    if known is not None:
        return known
    secret = secret_of(request)
    if secret and not server.tokens.knows(secret):
        server.guesses.check(address_of(request))
    caller = await server.tokens.caller(secret) if secret else None
    if caller is None:
        if secret:
            server.guesses.wrong(address_of(request))
        said = "no token was sent" if secret is None else "the token opens nothing: it is wrong, has expired or was revoked"
        raise Problem(401, said, fix=_FIX, headers={"www-authenticate": 'Bearer realm="moot"'})
    request.scope["moot.caller"] = caller
    return caller


_Needs: TypeAlias = Callable[[Request], Awaitable[Caller]]


def _needs(scope: Scope) -> _Needs:
    async def checked(request: Request) -> Caller:
        caller = await caller_of(request, server_of(request))
        if scope not in caller.scopes:
            raise Problem(403, f"this needs a token with the scope {scope!r}", fix=f"moot tokens create NAME --scopes {scope}")
        return caller

    return checked


_NEEDS: dict[_Needs, Scope] = {}
"""What each of the four dependencies asks for."""


def _register(scope: Scope) -> _Needs:
    needs = _needs(scope)
    _NEEDS[needs] = scope
    return needs


Reader = Annotated[Caller, Depends(_register("read"))]
Chatter = Annotated[Caller, Depends(_register("chat"))]
ToolUser = Annotated[Caller, Depends(_register("tools"))]
Admin = Annotated[Caller, Depends(_register("admin"))]

PUBLIC = (("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/api/login"), ("GET", "/share/{secret}"))
"""The operations that ask for nothing."""


def needed(dependant: Dependant) -> Scope | None:
    """The scope that an operation asks for; None for a public one."""
    asked = gates(dependant)
    return _NEEDS[asked[0]] if asked else None


def gates(dependant: Dependant) -> Sequence[_Needs]:
    """What an operation asks of its caller; a router asks it before a body is read, so that nobody unknown fills the memory."""
    return [call for each in dependant.dependencies if (call := cast("_Needs", each.call)) in _NEEDS]


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
