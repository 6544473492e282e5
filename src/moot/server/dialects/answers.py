"""Responses to `/v1` calls: the answer of a run, streamed while its events are stored, or returned when it is complete."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
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
from moot.server.problems import ErrorFormat, refuse
from moot.types.canonical import JsonObject, dumps
from moot.types.chunk import FINISH_REASONS
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.run import Run

BEAT = 15.0
"""Seconds without events before a keep-alive is sent."""


class _Ended(NamedTuple):
    through: int
    """Sequence number after which the run has no more events."""
    failure: MootError | None = None


async def call_events(call: Call, group: TaskGroup) -> AsyncGenerator[tuple[Event, ...], None]:
    """Yield the run's events in log order, in batches; an empty batch after each `BEAT` without events. Use it with `aclosing`."""
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


async def outcome_of(engine: Engine, run: Run) -> Outcome:
    """Return the outcome of a run. Call this after `engine.runs.wait` has returned."""
    message = await engine.store.conversations.message(run.message)
    match run.status:
        case "finished":
            reason = str(message.metadata.get("finish_reason", "stop"))
            return Outcome(reason if reason in FINISH_REASONS else "other", run.usage)
        case "failed":
            return Outcome("error", run.usage, run.error or Failure("The run failed."))
        case "cancelled":
            return Outcome("other", run.usage, Failure("The run was cancelled.", "cancelled"))
        case _:
            return Outcome("other", run.usage, Failure(f"The run is {run.status}.", "busy", fix=f"moot chat resume {run.conversation}"))


async def _watch(call: Call, sending: MemoryObjectSendStream[tuple[Event, ...] | _Ended]) -> None:
    async with sending, aclosing(call.server.engine.tail.watch(call.submitted.conversation.id, after=call.submitted.seq)) as batches:
        with suppress(anyio.BrokenResourceError):  # the reader has finished
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


START_TIMEOUT = 10.0
"""Seconds without output before the stream is started anyway. An error before that is returned with its own status code."""

_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", "x-accel-buffering": "no"}

log = logging.getLogger("moot.server")


class Answer(Protocol):
    """Translator of an answer's changes into stream events of one vendor's API."""

    def begin(self) -> list[JsonObject]: ...

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]: ...

    def end(self, outcome: Outcome) -> list[JsonObject]: ...


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encoder of answers in the format of one vendor's API."""

    answer: Answer
    whole: Callable[[Sequence[Piece], Outcome], JsonObject]
    """Function that returns the complete answer, for calls that don't stream."""
    error_format: ErrorFormat = "completion"
    named: bool = True
    """True if each frame has an `event:` line with the type of its event."""
    keep_alive: bytes = b": keep-alive\n\n"
    queued: bytes = b": queued\n\n"
    """Bytes sent immediately if the run is queued."""
    last: bytes = b""
    """Bytes sent at the end of the stream."""

    def frames(self, data: list[JsonObject]) -> bytes:
        names = [b"event: " + str(frame["type"]).encode() + b"\n" if self.named else b"" for frame in data]
        return b"".join(name + b"data: " + dumps(frame) + b"\n\n" for name, frame in zip(names, data, strict=True))


class CallResponse(Response):
    """Response to one call. If the caller disconnects, the run of a plain model is cancelled; the run of an agent continues."""

    def __init__(self, call: Call, encoder: Encoder) -> None:
        super().__init__()
        self._call = call
        self._encoder = encoder
        self._disconnected = False
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._call
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_disconnected, receive, group.cancel_scope)
            group.start_soon(self._until_revoked, group.cancel_scope)
            if call.request.stream:
                await self._stream(scope, receive, send)
            else:
                await self._answer(scope, receive, send)
            group.cancel_scope.cancel()
        if self._disconnected and call.served.plain:
            await call.server.engine.runs.cancel(call.id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        engine = self._call.server.engine
        run = await engine.runs.wait(self._call.id)
        pieces = pieces_of((await engine.store.conversations.message(run.message)).parts, self._call.served.takes)
        outcome = await outcome_of(engine, run)
        if outcome.error is not None:
            await self._refuse(outcome.error)(scope, receive, send)
            return
        self._call.answered(pieces)
        body = dumps(self._encoder.whole(pieces, outcome))
        await Response(body, headers=self._id_headers(), media_type="application/json")(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader, encoder, engine = PieceReader(self._call.served.takes), self._encoder, self._call.server.engine
        started = anyio.current_time()
        async with anyio.create_task_group() as group, aclosing(call_events(self._call, group)) as batches:
            try:
                if self._call.submitted.run.status == "queued":
                    await self._send(send, encoder.queued)
                async for events in batches:
                    changes = [change for event in events for chunk in event.chunks for change in reader.feed(chunk)]
                    data = encoder.frames(encoder.answer.tell(changes))
                    if data:
                        await self._send(send, data)
                    elif not events and anyio.current_time() - started > START_TIMEOUT:
                        await self._send(send, encoder.keep_alive)
                outcome = await outcome_of(engine, await engine.store.records.run(self._call.id))
            except MootError as error:
                log.error("the response of run %s failed: %s", self._call.id, error, extra={"run": self._call.id})
                outcome = Outcome("error", error=Failure.of(error))
            if outcome.error is not None and not self._started:
                await self._refuse(outcome.error)(scope, receive, send)
            else:
                if outcome.error is None:
                    self._call.answered(reader.pieces())
                frames = [*encoder.answer.tell(reader.close()), *encoder.answer.end(outcome)]
                await self._send(send, encoder.frames(frames) + encoder.last, more=False)
            group.cancel_scope.cancel()

    async def _send(self, send: Send, data: bytes, *, more: bool = True) -> None:
        if not self._started:
            self._started = True
            headers = [(name.encode(), value.encode()) for name, value in (_STREAM | self._id_headers()).items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            data = self._encoder.frames(self._encoder.answer.begin()) + data
        await send({"type": "http.response.body", "body": data, "more_body": more})

    def _refuse(self, failure: Failure) -> Response:
        return refuse(self._encoder.error_format, failure, headers=self._id_headers())

    def _id_headers(self) -> dict[str, str]:
        """Return headers with the ids of the conversation and the run."""
        return {"x-moot-conversation-id": self._call.submitted.conversation.id, "x-moot-run-id": self._call.id}

    async def _until_disconnected(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._disconnected = True
        scope.cancel()

    async def _until_revoked(self, scope: anyio.CancelScope) -> None:
        await self._call.caller.revoked.wait()
        scope.cancel()
