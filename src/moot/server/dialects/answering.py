"""The response to a call: what the run says, as it says it, or the whole answer at its end."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import aclosing
from typing import Protocol

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from moot.convert.callers.telling import Change, Outcome, Piece, Teller
from moot.errors import MootError
from moot.server.dialects.calls import Call
from moot.server.dialects.following import ending, followed, whole
from moot.server.dialects.routing import Tongue, refuse
from moot.types.canonical import JsonObject, dumps
from moot.types.exchange import Failure

__all__ = ["Answering", "Scribe"]

PATIENCE = 10.0
"""Seconds that a stream waits for a first word before it begins: a refusal until then has its own status."""

_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", "x-accel-buffering": "no"}

log = logging.getLogger("moot.server")


class Scribe(Protocol):
    """Writes an answer in one dialect."""

    tongue: Tongue

    def begin(self) -> list[JsonObject]: ...

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]: ...

    def end(self, outcome: Outcome) -> list[JsonObject]: ...

    def whole(self, pieces: tuple[Piece, ...], outcome: Outcome) -> JsonObject: ...

    def frames(self, data: list[JsonObject]) -> bytes:
        """As they go over the wire."""
        ...

    @property
    def beat(self) -> bytes:
        """What is sent in silence."""
        ...

    @property
    def last(self) -> bytes:
        """What is sent behind everything else."""
        ...


class Answering(Response):
    """Answers one call. When the caller hangs up, a plain model's run is stopped; an agent's run goes on."""

    def __init__(self, call: Call, scribe: Scribe) -> None:
        super().__init__()
        self._call = call
        self._scribe = scribe
        self._gone = False
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._call
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_gone, receive, group.cancel_scope)
            group.start_soon(self._until_revoked, group.cancel_scope)
            if call.asked.stream:
                await self._stream(scope, receive, send)
            else:
                await self._answer(scope, receive, send)
            group.cancel_scope.cancel()
        if self._gone and call.served.plain:
            await call.server.engine.runs.cancel(call.id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        pieces, outcome = await whole(self._call)
        if outcome.error is not None:
            await self._refuse(outcome.error)(scope, receive, send)
            return
        self._call.answered(pieces)
        body = dumps(self._scribe.whole(tuple(pieces), outcome))
        await Response(body, headers=self._named(), media_type="application/json")(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        teller, scribe, engine = Teller(self._call.served.takes), self._scribe, self._call.server.engine
        began = anyio.current_time()
        async with anyio.create_task_group() as group, aclosing(followed(self._call, group)) as batches:
            try:
                async for events in batches:
                    changes = [change for event in events for chunk in event.chunks for change in teller.feed(chunk)]
                    data = scribe.frames(scribe.tell(changes))
                    if data:
                        await self._send(send, data)
                    elif not events and anyio.current_time() - began > PATIENCE:
                        await self._send(send, scribe.beat)
                outcome = await ending(engine, await engine.store.records.run(self._call.id))
            except MootError as error:
                log.error("the answer of run %s broke off: %s", self._call.id, error, extra={"run": self._call.id})
                outcome = Outcome("error", error=Failure.of(error))
            if outcome.error is not None and not self._begun:
                await self._refuse(outcome.error)(scope, receive, send)
            else:
                if outcome.error is None:
                    self._call.answered(teller.pieces())
                frames = [*scribe.tell(teller.close()), *scribe.end(outcome)]
                await self._send(send, scribe.frames(frames) + scribe.last, more=False)
            group.cancel_scope.cancel()

    async def _send(self, send: Send, data: bytes, *, more: bool = True) -> None:
        if not self._begun:
            self._begun = True
            headers = [(name.encode(), value.encode()) for name, value in (_STREAM | self._named()).items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            data = self._scribe.frames(self._scribe.begin()) + data
        await send({"type": "http.response.body", "body": data, "more_body": more})

    def _refuse(self, failure: Failure) -> Response:
        return refuse(self._scribe.tongue, failure, headers=self._named())

    def _named(self) -> dict[str, str]:
        """Where the call has landed."""
        return {"x-moot-conversation-id": self._call.submitted.conversation.id, "x-moot-run-id": self._call.id}

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        scope.cancel()

    async def _until_revoked(self, scope: anyio.CancelScope) -> None:
        await self._call.caller.revoked.wait()
        scope.cancel()
