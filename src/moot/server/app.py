"""The ASGI application: middleware around every route, and the web page for paths that match no route."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Mapping

import anyio
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot import __version__
from moot.server import problems
from moot.server.hosts import cors_headers, is_preflight, keep_slashes, refusal
from moot.server.idempotency import IdempotencyKeys
from moot.server.pages import Pages
from moot.server.problems import Problem, of_http, problem
from moot.server.routes import ROUTERS
from moot.server.state import Server
from moot.types.telemetry import CURRENT, TRACEPARENT, valid_traceparent

UNKNOWN = "(none)"
"""Route label in the metrics for requests that match no route, because paths chosen by callers must not create new labels."""

_CLOSING = {"connection": "close"}
"""Headers for responses sent before the request body was read completely."""

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
"""Response headers unless the route sets its own values: no framing, no content sniffing, no caching."""

log = logging.getLogger("moot.server")


class RequestContext:
    """Outermost middleware: assign a request id, log and count the request, add default headers, return 500 for unhandled exceptions."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = keep_slashes(scope)
        sent = Headers(scope=scope).get("x-request-id", "")
        id = scope["moot.request"] = sent if _ID.fullmatch(sent) else secrets.token_hex(8)
        if self._server.engine.runtime.telemetry is not None:
            CURRENT.set(valid_traceparent(Headers(scope=scope).get(TRACEPARENT, "")))
        started = time.perf_counter()
        status = 0

        def send_counted(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers, labels = MutableHeaders(scope=message), (scope["method"], _route(scope))
                headers["x-request-id"] = id
                for name, value in _HEADERS:
                    headers.setdefault(name, value)
                self._server.metrics.requests.labels(*labels, str(status)).inc()
                self._server.metrics.durations.labels(*labels).observe(time.perf_counter() - started)
            return send(message)

        try:
            await self._app(scope, receive, send_counted)
        except Exception as error:  # no other code handles unexpected errors: log them and return 500
            log.error("internal error: %r", error, exc_info=error, extra={"request": id})
            if not status:
                await problem(scope, 500, "Internal server error.")(scope, receive, send_counted)
        finally:
            # successful reads are only logged at debug level; the route is logged because the path is chosen by the caller
            level = logging.DEBUG if scope["method"] == "GET" and 0 < status < 400 else logging.INFO
            log.log(level, "%s %s %s", scope["method"], _route(scope), status or "closed", extra={"request": id})


class OriginCheck:
    """Reject requests for other hosts or from other origins."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        app, settings = self._app, self._server.settings
        if scope["type"] == "http" and (rejection := refusal(scope, self._server.hosts, settings)) is not None:
            self._server.metrics.refused.labels(rejection.code).inc()
            app = of_http(scope, rejection)
        elif scope["type"] == "http" and (cors := cors_headers(scope, settings)):
            if is_preflight(scope) and "access-control-allow-origin" in cors:
                app = Response(status_code=204)
            send = _with_headers(send, cors)
        await app(scope, receive, send)


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    def sending(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        return send(message)

    return sending


class BodyLimit:
    """Limit the size of request bodies, and give up on bodies that stop arriving."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._seconds = server.limits.silence
        self._largest = server.limits.body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(raw=scope.get("headers", []))
        size = int(headers.get("content-length", "0"))
        if scope["type"] != "http" or (size == 0 and "transfer-encoding" not in headers):
            await self._app(scope, receive, send)
            return
        too_large = Problem(413, f"The body exceeds this server's limit of {self._largest:,} bytes.", headers=_CLOSING)
        if size > self._largest and "transfer-encoding" not in headers:
            await of_http(scope, too_large)(scope, receive, send)
            return
        complete, received = False, 0

        async def receive_limited() -> Message:
            nonlocal complete, received
            if complete:  # from here on, wait for the client to disconnect
                return await receive()
            with anyio.move_on_after(self._seconds):
                message = await receive()
                received += len(message.get("body", b""))
                if received > self._largest:
                    raise too_large
                complete = message["type"] != "http.request" or not message.get("more_body", False)
                return message
            raise Problem(408, f"No request body data was received for {self._seconds:g} seconds.", headers=_CLOSING)

        await self._app(scope, receive_limited, send)


def _route(scope: Scope) -> str:
    return scope.get("moot.route") or getattr(scope.get("route"), "path", UNKNOWN)


def create_app(server: Server) -> FastAPI:
    """Return the application of one server. The code that runs it must also run `server.tokens.watch()`."""
    app = routed()
    app.state.server = server
    problems.install(app)
    for middleware in (IdempotencyKeys, BodyLimit, OriginCheck, RequestContext):  # the last one added is the outermost
        app.add_middleware(middleware, server=server)
    app.router.default = Pages()
    return app


def routed() -> FastAPI:
    """Return an application with routes but no server, which is enough to generate the OpenAPI description."""
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
