"""Responses to callers: a run's events as they are committed, streamed or as a whole."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import NamedTuple, Protocol

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from moot.convert.callers.pieces import Change, Outcome, Piece, PieceReader, pieces_of
from moot.engine import Engine
from moot.errors import MootError
from moot.server.dialects.calls import Call
from moot.server.dialects.router import Tongue, refuse
from moot.types.canonical import JsonObject, dumps
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.run import Run

__all__ = ["Answering", "Scribe", "ending", "followed", "whole"]


BEAT = 15.0
"""Seconds of silence after which a caller hears that its call is still being answered."""


class _Ended(NamedTuple):
    through: int
    """Nothing of the run comes behind this seq."""
    failure: MootError | None = None


async def followed(call: Call, group: TaskGroup) -> AsyncGenerator[tuple[Event, ...], None]:
    """The run's events in the order of the log, in batches; an empty one after each `BEAT` of silence. Close it with `aclosing`."""
    sending, receiving = anyio.create_memory_object_stream[tuple[Event, ...] | _Ended](16)
    group.start_soon(_watch, call, sending.clone())
    group.start_soon(_attend, call, sending)
    seen, through = call.submitted.seq, -1
    with receiving:
        while through < 0 or seen < through:
            item: tuple[Event, ...] | _Ended = ()
            with anyio.move_on_after(BEAT):
                item = await receiving.receive()
            if isinstance(item, _Ended):
                if item.failure is not None:
                    raise item.failure
                through = item.through
                continue
            if item:
                seen = item[-1].seq
            yield tuple(event for event in item if event.run == call.id)


async def ending(engine: Engine, run: Run) -> Outcome:
    """How a run ended that `wait` says nothing more comes of."""
    message = await engine.store.conversations.message(run.message)
    match run.status:
        case "finished":
            return Outcome(str(message.metadata.get("finish_reason", "stop")), run.usage)
        case "failed":
            return Outcome("error", run.usage, run.error or Failure("the run failed"))
        case "cancelled":
            return Outcome("other", run.usage, Failure("the answer was stopped", "cancelled"))
        case _:
            return Outcome("other", run.usage, Failure(f"the run is {run.status}", "busy", fix=f"moot chat resume {run.conversation}"))


async def whole(call: Call) -> tuple[Sequence[Piece], Outcome]:
    """The whole answer once the run has ended."""
    engine = call.server.engine
    run = await engine.runs.wait(call.id)
    message = await engine.store.conversations.message(run.message)
    pieces = pieces_of(message.parts, call.served.takes)
    return pieces, await ending(engine, run)


async def _watch(call: Call, sending: MemoryObjectSendStream[tuple[Event, ...] | _Ended]) -> None:
    async with sending, aclosing(call.server.engine.tail.watch(call.submitted.conversation.id, after=call.submitted.seq)) as batches:
        with suppress(anyio.BrokenResourceError):  # whoever listened has heard all
            async for events in batches:
                await sending.send(events)


async def _attend(call: Call, sending: MemoryObjectSendStream[tuple[Event, ...] | _Ended]) -> None:
    engine = call.server.engine
    async with sending:
        try:
            await engine.runs.wait(call.id)
            ended = _Ended(await engine.store.log.last_seq(call.submitted.conversation.id))
        except MootError as error:
            ended = _Ended(0, error)
        with suppress(anyio.BrokenResourceError):
            await sending.send(ended)


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
        teller, scribe, engine = PieceReader(self._call.served.takes), self._scribe, self._call.server.engine
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
