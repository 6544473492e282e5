"""A run's events as they are committed, until it ends; and what it ended with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from moot.convert.callers.telling import Outcome, Piece, pieces_of
from moot.engine import Engine
from moot.errors import MootError
from moot.server.dialects.calls import Call
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.run import Run

__all__ = ["ending", "followed", "whole"]

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
