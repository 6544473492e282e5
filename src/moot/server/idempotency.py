"""`Idempotency-Key` on POST: a repeated request returns the stored response.

A response may not have been stored, because the server was killed or the client disconnected. Then the repeated request is executed
again. Ids of new resources are derived from the key, so the second attempt finds what the first one created.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

import anyio
from fastapi import Depends
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.server.auth import caller_of
from moot.server.credentials import Caller
from moot.server.problems import Problem, of_http
from moot.server.state import Server
from moot.types.ids import derived_id, new_id
from moot.types.token import Claim, Idempotency, StoredResponse

LARGEST = 1024 * 1024
"""Maximum size of a stored response, in bytes."""

TIMEOUT = 60.0
"""Seconds that a repeated request waits for the original one."""

SECRET = "moot.secret"
"""Key in the ASGI scope. Routes set it if their response contains a secret and must not be stored."""

_ATTEMPT = "moot.attempt"

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_OWN = frozenset({"x-request-id", "date", "content-length"})
"""Headers that are not stored, because they are only valid for the original response."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a request. Attempts with the same idempotency key create resources with the same id."""

    key: tuple[str, str] | None = None
    """Owner and idempotency key; None if the request has no key."""
    at: int = 0
    """Time of the first attempt, in ms."""
    repeated: bool = False
    """True if an earlier attempt may have changed something."""

    @property
    def id(self) -> str:
        """The id for the resource that the request creates, the same in all attempts; empty if the request has no key."""
        return "" if self.key is None else derived_id(self.at, *self.key)

    def check_repeatable(self) -> None:
        """Raise Problem (409) if an earlier attempt may have changed something.

        Call this in operations that can't detect what the earlier attempt did.
        """
        if self.repeated:
            raise _unknown("The server stopped while executing the request with this idempotency key. It may have had an effect.")


async def _attempt(request: Request) -> Attempt:
    return request.scope.get(_ATTEMPT) or Attempt()


CurrentAttempt = Annotated[Attempt, Depends(_attempt)]
"""Type of route parameters that receive the request's Attempt."""


class IdempotencyKeys:
    """ASGI middleware for idempotency keys; requests without the header pass unchanged."""

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
            raise Problem(400, "An Idempotency-Key must have 1 to 255 printable characters without spaces.")
        request = Request(scope, receive)
        caller = await caller_of(request, self._server)
        body = await request.body()
        content = b"\0".join((scope["method"].encode(), scope["path"].encode("utf-8", "replace"), scope["query_string"], body))
        claim = await self._claim(caller, key, sha256(content).digest())
        if claim.standing in ("new", "open"):
            scope[_ATTEMPT] = Attempt((caller.owner_id, key), claim.at, repeated=claim.standing == "open")
            await self._attempt(scope, _replay_body(body, receive), send, scope[_ATTEMPT])
        else:
            await _replay(claim)(scope, receive, send)

    async def _claim(self, caller: Caller, key: str, request: bytes) -> Claim:
        """Claim the key, after waiting for a request with the same key in this process. A home has one server, so no other process can be
        executing it.
        """
        scoped_key = caller.owner_id, key
        with anyio.move_on_after(TIMEOUT):
            while (under_way := self._under_way.get(scoped_key)) is not None:
                await under_way.wait()
        if scoped_key in self._under_way:
            raise Problem(409, "A request with this Idempotency-Key is still in progress.", headers={"retry-after": "5"})
        done = self._under_way[scoped_key] = anyio.Event()
        try:
            claim = await self._answers.claim(*scoped_key, request=request, worker=self._worker)
        except BaseException:
            self._end(scoped_key, done)
            raise
        if claim.standing not in ("new", "open"):
            self._end(scoped_key, done)
        return claim

    def _end(self, scoped_key: tuple[str, str], done: anyio.Event) -> None:
        del self._under_way[scoped_key]
        done.set()

    async def _attempt(self, scope: Scope, receive: Receive, send: Send, attempt: Attempt) -> None:
        assert attempt.key is not None
        scoped_key, recorder = attempt.key, _Recorder(send)
        try:
            await self._app(scope, receive, recorder.sending)
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    if scope.get(SECRET) and 0 < recorder.status < 400:
                        await self._answers.keep(*scoped_key, StoredResponse(0))
                    elif 0 < recorder.status < 400 and (response := recorder.response) is not None:
                        await self._answers.keep(*scoped_key, response)
                    elif 400 <= recorder.status != 500 and not attempt.repeated:
                        await self._answers.release(*scoped_key)  # rejected requests had no effect, so they may be retried
                finally:
                    self._end(scoped_key, self._under_way[scoped_key])


class _Recorder:
    """A response that is recorded while it is being sent, up to the size limit."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self._headers: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._complete = False

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
            self._complete = not message.get("more_body", False)
        return self._send(message)

    @property
    def response(self) -> StoredResponse | None:
        """The response, or None if it is incomplete or too large to be stored."""
        if not self._complete or self._size > LARGEST:
            return None
        return StoredResponse(self.status, [pair for pair in self._headers if pair[0] not in _OWN], b"".join(self._pieces))


def _replay(claim: Claim) -> Response:
    if claim.standing == "other":
        raise Problem(409, "This Idempotency-Key was already used for a different request.", code="key_reused", fix="Use a new key.")
    if claim.kept is None or not claim.kept.status:
        raise _unknown("A request with this idempotency key was already executed, but its response contained a secret and was not stored.")
    return Response(claim.kept.body, claim.kept.status, {**dict(claim.kept.headers), "idempotent-replayed": "true"})


def _unknown(detail: str) -> Problem:
    return Problem(409, detail, code="answer_unknown", fix="Check which changes were made, and send the remaining ones with a new key.")


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receive function whose first call returns the body, which was already read."""
    sent = False

    async def receiving() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving
