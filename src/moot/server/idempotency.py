"""`Idempotency-Key` on POST: what was done for a key is not done again, and its answer is given again."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from hashlib import sha256

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.server.auth import caller_of
from moot.server.credentials import Caller
from moot.server.problems import Problem, of_http
from moot.server.state import Server
from moot.types.ids import new_id
from moot.types.token import Claim, Idempotency, StoredResponse

LARGEST = 1024 * 1024
"""Bytes of an answer that is kept."""

PATIENCE = 60.0
"""Seconds that a repeat waits for the request that it repeats."""

SECRET = "moot.secret"
"""Set in the scope by a route whose answer nobody may read again."""

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_OWN = frozenset({"x-request-id", "date", "content-length"})
"""Headers that belong to one answer only."""


class Repeats:
    """Plain ASGI; does nothing for a request without the header."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server
        self._answers: Idempotency = server.engine.store.tokens.idempotency
        self._worker = new_id()
        self._under_way: dict[tuple[str, str], anyio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("idempotency-key") if scope["type"] == "http" and scope["method"] == "POST" else None
        if key is None:
            await self._app(scope, receive, send)
            return
        try:
            await self._perform(scope, receive, send, key)
        except HTTPException as error:
            await of_http(scope, error)(scope, receive, send)

    async def _perform(self, scope: Scope, receive: Receive, send: Send, key: str) -> None:
        if not _KEY.fullmatch(key):
            raise Problem(400, "an Idempotency-Key has 1 to 255 printable characters without spaces")
        request = Request(scope, receive)
        caller = await caller_of(request, self._server)
        body = await request.body()
        claim = await self._claim(caller, key, _digest(scope, body))
        if claim.standing == "new":
            await self._first(scope, _again(body, receive), send, (caller.owner_id, key))
        else:
            await _told(claim)(scope, receive, send)

    async def _claim(self, caller: Caller, key: str, request: bytes) -> Claim:
        """What is known of the key, once nobody here is at it any more."""
        named = caller.owner_id, key
        with anyio.move_on_after(PATIENCE):
            while (under_way := self._under_way.get(named)) is not None:
                await under_way.wait()
        if named in self._under_way:
            raise Problem(409, "the request with this key is still being carried out", headers={"retry-after": "5"})
        done = self._under_way[named] = anyio.Event()
        try:
            claim = await self._answers.claim(*named, request=request, worker=self._worker)
        except BaseException:
            self._end(named, done)
            raise
        if claim.standing != "new":
            self._end(named, done)
        return claim

    def _end(self, named: tuple[str, str], done: anyio.Event) -> None:
        del self._under_way[named]
        done.set()

    async def _first(self, scope: Scope, receive: Receive, send: Send, named: tuple[str, str]) -> None:
        recorder = _Recorder(send)
        try:
            await self._app(scope, receive, recorder.sending)
        finally:
            with anyio.CancelScope(shield=True):
                await self._record(scope, recorder, named)

    async def _record(self, scope: Scope, recorder: _Recorder, named: tuple[str, str]) -> None:
        try:
            if recorder.status in (0, 500) or recorder.status < 400:
                await self._answers.keep(*named, StoredResponse(0) if scope.get(SECRET) else recorder.kept())
            else:
                await self._answers.release(*named)  # refused: nothing was done, and the next try may fare better
        finally:
            self._end(named, self._under_way[named])


class _Recorder:
    """Keeps what is sent, as long as it is not too much."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self._headers: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._whole = False

    def sending(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
        elif message["type"] == "http.response.body":
            self._size += len(message.get("body", b""))
            if self._size <= LARGEST:
                self._pieces.append(message.get("body", b""))
            else:
                self._pieces.clear()
            self._whole = not message.get("more_body", False)
        return self._send(message)

    def kept(self) -> StoredResponse:
        if not self._whole or self._size > LARGEST:
            return StoredResponse(0)
        return StoredResponse(self.status, [pair for pair in self._headers if pair[0] not in _OWN], b"".join(self._pieces))


def _told(claim: Claim) -> Response:
    match claim.standing:
        case "other":
            raise Problem(409, "this Idempotency-Key was used for another request", code="key_reused", fix="use a new key")
        case "done" if claim.kept is not None and claim.kept.status:
            headers = {**dict(claim.kept.headers), "idempotent-replayed": "true"}
            return Response(claim.kept.body, claim.kept.status, headers)
        case "done":
            said = "the request with this key was carried out; its answer was not kept"
        case _:
            said = "the server stopped while it carried out the request with this key: nobody knows how far it came"
    raise Problem(409, said, code="answer_unknown", fix="look at what is there, and use a new key for what is still wanted")


def _digest(scope: Scope, body: bytes) -> bytes:
    said = b"\0".join((scope["method"].encode(), scope["path"].encode("utf-8", "replace"), scope["query_string"], body))
    return sha256(said).digest()


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, then whatever comes."""
    given = False

    async def receiving() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving
