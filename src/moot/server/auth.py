"""Authentication of callers, and routers whose routes declare the scope they require."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeAlias, cast

from fastapi import APIRouter, Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope as AsgiScope

from moot.server.credentials import Caller
from moot.server.hosts import with_slashes
from moot.server.problems import FOREIGN, Problem
from moot.server.state import Server, server_of
from moot.types.canonical import loads_exact
from moot.types.token import Scope

COOKIE = "moot_session"
"""Session cookie of a browser; its value is the secret of a token of kind `browser`."""

_FIX = "Send `Authorization: Bearer TOKEN` with a token from `moot tokens create NAME`, or open the page with `moot web`."


def secret_of(request: Request) -> str | None:
    """Return the request's credential, or None. A header takes precedence over the cookie, which browsers send automatically."""
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, secret = header.partition(" ")
        return secret.strip() if kind.lower() == "bearer" else ""
    # clients of some vendors send the key as `x-api-key`
    if request.scope["path"].startswith(FOREIGN) and (key := request.headers.get("x-api-key")) is not None:
        return key
    return request.cookies.get(COOKIE)


def address_of(request: Request) -> str:
    """Return the client's address. Behind a proxy this is the proxy's address."""
    return request.client.host if request.client is not None else ""


async def caller_of(request: Request, server: Server) -> Caller:
    """Return the authenticated caller. Raise Problem (401) if the token is missing or invalid."""
    cached: Caller | None = request.scope.get("moot.caller")
    if cached is not None:
        return cached
    secret = secret_of(request)
    if secret and not server.tokens.knows(secret):
        server.guesses.check(address_of(request))
    caller = await server.tokens.caller(secret) if secret else None
    if caller is None:
        if secret:
            server.guesses.record(address_of(request))
        detail = "No token was sent." if secret is None else "The token is invalid, expired or revoked."
        raise Problem(401, detail, fix=_FIX, headers={"www-authenticate": 'Bearer realm="moot"'})
    request.scope["moot.caller"] = caller
    return caller


_Needs: TypeAlias = Callable[[Request], Awaitable[Caller]]

_NEEDS: dict[_Needs, Scope] = {}
"""The scope that each dependency created by `_register` requires."""


def _register(scope: Scope) -> _Needs:
    async def needs(request: Request) -> Caller:
        caller = await caller_of(request, server_of(request))
        if scope not in caller.scopes:
            raise Problem(
                403, f"This operation requires a token with the scope {scope!r}.", fix=f"moot tokens create NAME --scopes {scope}"
            )
        return caller

    _NEEDS[needs] = scope
    return needs


Reader = Annotated[Caller, Depends(_register("read"))]
Chatter = Annotated[Caller, Depends(_register("chat"))]
ToolUser = Annotated[Caller, Depends(_register("tools"))]
Admin = Annotated[Caller, Depends(_register("admin"))]
Operator = Annotated[Caller, Depends(_register("machine"))]

PUBLIC = (("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/api/login"), ("GET", "/share/{secret}"), ("POST", "/api/webhooks/{name}"))
"""Operations that need no authentication."""


def needed(dependant: Dependant) -> Scope | None:
    """Return the scope that an operation requires, or None if it is public."""
    required = gates(dependant)
    return _NEEDS[required[0]] if required else None


def gates(dependant: Dependant) -> Sequence[_Needs]:
    """Return the scope checks of an operation. The router runs them before reading the body, so that unauthenticated clients can't fill the
    memory.
    """
    return [call for each in dependant.dependencies if (call := cast("_Needs", each.call)) in _NEEDS]


class StrictRequest(Request):
    """A request whose JSON must be unambiguous: no duplicate keys, no NaN, bounded depth."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return loads_exact(body.decode())  # json would guess other encodings
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error


class Route(APIRoute):
    """A route that authenticates the caller before it reads the body, and parses JSON strictly."""

    def matches(self, scope: AsgiScope) -> tuple[Match, AsgiScope]:
        match, child = super().matches(scope)
        if parameters := child.get("path_params"):
            child["path_params"] = {name: with_slashes(value) for name, value in parameters.items()}
        return match, child

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        required = gates(self.dependant)

        async def strict(request: Request) -> Response:
            for gate in required:
                await gate(request)
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


class Router(APIRouter):
    """A router for the operations of one resource, such as `Router(prefix="/api/conversations", tags=["conversations"])`."""

    def __init__(self, *, prefix: str = "", tags: list[str] | None = None) -> None:
        super().__init__(prefix=prefix, tags=list(tags or []), route_class=Route, redirect_slashes=False)
