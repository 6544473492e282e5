"""The ASGI application: middleware around every route, and the page where no route matches."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Awaitable

import anyio
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot import __version__
from moot.server import problems
from moot.server.hosts import refusal
from moot.server.idempotency import Repeats
from moot.server.pages import Pages
from moot.server.problems import Problem, of_http, problem
from moot.server.routes import ROUTERS
from moot.server.state import Server

UNKNOWN = "(none)"
"""The route of a request that no route took, in the metrics: paths that callers make up must not each become a line."""

_CLOSING = {"connection": "close"}
"""For a request whose body is not taken to its end."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("cache-control", "no-store"),
)
"""What an answer says unless its route says something else: nobody frames it, guesses what it is, or keeps it."""

log = logging.getLogger("moot.server")


class Border:
    """The outermost: gives the request an id, counts and logs it, adds the headers that every answer has, and turns a crash into a 500."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id = scope["moot.request"] = _request_id(scope)
        began = time.perf_counter()
        status = 0

        def sending(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _complete(MutableHeaders(scope=message), id)
                self._count(scope, status, time.perf_counter() - began)
            return send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # the face's border: what nobody foresaw is logged, and told as a 500
            log.error("internal error: %r", error, exc_info=error, extra={"request": id})
            if not status:
                await problem(scope, 500, "something went wrong in the server")(scope, receive, sending)
        finally:
            # what only reads is noise, unless it went wrong; the route and not the path: a path is what a caller made up
            level = logging.DEBUG if scope["method"] == "GET" and 0 < status < 400 else logging.INFO
            log.log(level, "%s %s %s", scope["method"], _route(scope), status or "closed", extra={"request": id})

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route, metrics = _route(scope), self._server.metrics
        metrics.requests.labels(scope["method"], route, str(status)).inc()
        metrics.durations.labels(scope["method"], route).observe(seconds)


class Doors:
    """Lets nobody in who names another host or comes from another page."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refused := refusal(scope, self._server.hosts, self._server.settings)) is not None:
            self._server.metrics.refused.labels(refused.code).inc()
            await of_http(scope, refused)(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)


class Patience:
    """Takes a body of so many bytes and no more, and gives one up that does not come on: nobody holds a place or memory for ever."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._seconds = server.limits.silence
        self._largest = server.limits.body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (size := _body_size(Headers(scope=scope))) == 0:
            await self._app(scope, receive, send)
            return
        if size is not None and size > self._largest:
            await of_http(scope, self._too_large())(scope, receive, send)
            return
        whole, taken = False, 0

        async def receiving() -> Message:
            nonlocal whole, taken
            if whole:  # from here on the wait is for the caller to go away
                return await receive()
            with anyio.move_on_after(self._seconds):
                message = await receive()
                taken += len(message.get("body", b""))
                if taken > self._largest:
                    raise self._too_large()
                whole = message["type"] != "http.request" or not message.get("more_body", False)
                return message
            raise Problem(408, f"nothing of the body came for {self._seconds:g} seconds", headers=_CLOSING)

        await self._app(scope, receiving, send)

    def _too_large(self) -> Problem:
        return Problem(413, f"the body is larger than the {self._largest:,} bytes that this server takes", headers=_CLOSING)


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if _ID.fullmatch(given) else secrets.token_hex(8)


def _complete(headers: MutableHeaders, id: str) -> None:
    headers["x-request-id"] = id
    for name, value in _HEADERS:
        headers.setdefault(name, value)


def _route(scope: Scope) -> str:
    return scope.get("moot.route") or getattr(scope.get("route"), "path", UNKNOWN)


def _body_size(headers: Headers) -> int | None:
    """Bytes of the body, None when that is not said."""
    return None if "transfer-encoding" in headers else int(headers.get("content-length", "0"))


def create_app(server: Server) -> FastAPI:
    """The application of one server; whoever runs it also runs `server.tokens.watch()`."""
    app = routed()
    app.state.server = server
    problems.install(app)
    for middleware in (Repeats, Patience, Doors, Border):  # the last one added is the outermost
        app.add_middleware(middleware, server=server)
    app.router.default = Pages()
    return app


def routed() -> FastAPI:
    """The routes alone: enough to describe them."""
    app = FastAPI(
        title="moot",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        app.include_router(router)
    return app
