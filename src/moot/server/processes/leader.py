"""Requests that only the leader of several workers can answer, because its process holds their state. Other workers forward them."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send
from yarl import URL

from moot.server.problems import Problem, of_http

_SHARED = re.compile(
    r"/api/(chat(/[^/]+/stream)?|conversations/[^/]+/(messages|events|replay)|runs/[^/]+/events|remote/[^/]+|webhooks/[^/]+)|/v1/.*"
)
"""Paths of the API that every worker answers: those that start or follow runs."""

_API = re.compile(r"/(api|share)/.*|/openapi\.json")

_CONNECTION = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that belong to one connection (RFC 9110, section 7.6.1). They are not forwarded."""

CLIENT = b"x-moot-client"
"""Header with the client's address. The leader accepts it only on its own socket."""

PATIENCE = 10.0
"""Seconds to wait for a leader that is starting again."""

_PAUSE = 0.1

log = logging.getLogger("moot.server")


def is_for_leader(path: str) -> bool:
    """Return True if only the leader can answer requests for this path."""
    return _API.fullmatch(path) is not None and _SHARED.fullmatch(path) is None


class Leader:
    """The leader, as the other workers see it."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the leader's response until the client disconnects. Raise Problem (503) if the leader does not answer."""
        received = anyio.Event()
        failure: Problem | None = None
        async with anyio.create_task_group() as group:

            async def wait_for_disconnect() -> None:
                await received.wait()
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(wait_for_disconnect)
            try:
                await self._relay(Request(scope, receive), send, received)
            except ClientDisconnect:
                pass
            except Problem as problem:  # raised below, because the task group would wrap it
                failure = problem
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _relay(self, request: Request, send: Send, received: anyio.Event) -> None:
        response = await self._ask(request, received)
        try:
            headers = [pair for pair in response.raw_headers if pair[0].lower() not in _CONNECTION]
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            async for piece in response.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except aiohttp.ClientError as error:  # without the last part, the client sees that the response is incomplete
            log.warning("the leader ended in the middle of a response: %s", error)
        finally:
            response.close()

    async def _ask(self, request: Request, received: anyio.Event) -> aiohttp.ClientResponse:
        """Send the request to the leader and return its response. Set `received` when the client has sent the whole body."""
        path, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
        url = URL(f"http://leader{path}{'?' if query else ''}{query}", encoded=True)
        has_body = "content-length" in request.headers or "transfer-encoding" in request.headers

        async def body() -> AsyncGenerator[bytes]:
            async for piece in request.stream():
                yield piece
            received.set()

        if not has_body:
            received.set()
        deadline = anyio.current_time() + PATIENCE
        while True:
            try:
                return await self._session.request(
                    request.method, url, headers=_headers_of(request), data=body() if has_body else None, allow_redirects=False
                )
            except aiohttp.ClientConnectorError as error:  # nothing has been sent yet
                if anyio.current_time() > deadline:
                    raise Problem(503, "The server is starting again.", fix="Try again.", headers={"retry-after": "5"}) from error
                await anyio.sleep(_PAUSE)
            except aiohttp.ClientError as error:
                if isinstance(error.__cause__, ClientDisconnect):  # in the middle of the body
                    raise error.__cause__ from None
                detail = "The server process that handled this request has ended."
                raise Problem(503, detail, fix="Check whether the request has taken effect before you repeat it.") from error


def _headers_of(request: Request) -> list[tuple[str, str]]:
    kept = [pair for pair in request.scope["headers"] if pair[0] not in _CONNECTION and pair[0] != CLIENT]
    address = request.client.host.encode() if request.client is not None else b""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in (*kept, (CLIENT, address))]


@asynccontextmanager
async def connected(socket: str) -> AsyncGenerator[Leader]:
    """Connect to the leader's socket for the duration of the block."""
    async with aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(socket, limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        yield Leader(session)


class Forwarding:
    """Outermost middleware of a worker that is not the leader: forward the requests that only the leader can answer."""

    def __init__(self, app: ASGIApp, leader: Leader) -> None:
        self._app = app
        self._leader = leader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_for_leader(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            await self._leader.answer(scope, receive, send)
        except Problem as error:
            scope["moot.request"] = secrets.token_hex(8)
            log.warning("%s", error.detail, extra={"request": scope["moot.request"]})
            await of_http(scope, error)(scope, receive, send)


class ForwardedClient:
    """Outermost middleware of the leader: give forwarded requests the address of their client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("client") is None:  # a request on the leader's own socket, which only workers can reach
            address = dict(scope["headers"]).get(CLIENT, b"").decode("latin-1")
            scope = {**scope, "client": (address, 0)}
        await self._app(scope, receive, send)
