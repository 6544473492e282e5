"""One exchange with a model: the request goes out, raw comes in, and each socket read is committed as one append."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio

from moot.agents.position import Attempt, Position, note
from moot.agents.request import Request
from moot.errors import ProviderError
from moot.providers.catalogue import price
from moot.types import chunk
from moot.types.canonical import JsonObject
from moot.types.context import Choice, RunContext
from moot.types.crash import point
from moot.types.event import REFUSED, Event, Raw
from moot.types.exchange import Ended, Ending, Exchange, ExchangeOptions, Failure, end_body, start_body
from moot.types.ids import llm_key
from moot.types.model import Model
from moot.types.provider import Spoils, Translator
from moot.types.store import CloseExchange, OpenExchange

_DELTAS = frozenset({"text-delta", "reasoning-delta", "tool-input-delta"})
"""What nearly every frame stands for, and what says nothing about where the run stands."""


UNANSWERED = frozenset({"timeout"})
"""A provider that stayed silent may have worked on the request, so nobody knows what it charges. A connection that broke before a byte
came back is taken for a request that did not arrive: most never did, and a run that stumbled once would have no price."""


@dataclass(slots=True)
class _Live:
    """An exchange while it runs; the translator's state lives only here."""

    context: RunContext
    position: Position
    attempt: Attempt
    choice: Choice
    translator: Translator[Any]
    state: Any
    run: str
    spoils: Spoils | None
    heard: bool = False
    """Something of an answer has come."""

    async def take(self, raws: tuple[Raw, ...]) -> None:
        """Translates the frames of one socket read and commits them together."""
        feed, state, attempt = self.translator.feed, self.state, self.attempt
        now, run, exchange = self.context.ports.now(), self.run, attempt.exchange
        self.heard = True
        events: list[Event] = []
        for raw in raws:
            state, chunks = feed(state, raw)
            if chunks and (not attempt.visible or chunks[-1]["type"] not in _DELTAS):
                note(self.position, attempt, chunks)
                attempt.first_at = attempt.first_at or (now if attempt.visible else 0)
            events.append(Event("raw", chunks, raw, run, exchange, None, None, None, now))
        self.state = state
        with anyio.CancelScope(shield=True):  # what the state knows must be in the log, or the end would hold what nothing there stands for
            await self.context.append(*events)
        point("exchange.read")

    @property
    def spoiled(self) -> bool:
        return self.spoils is not None and self.spoils.spoiled(self.state)

    async def end(self, ended: Ended, failure: Failure | None, *, mark: bool) -> Ending:
        """Closes what is open and writes the exchange's end; `mark` says that the attempt is given up."""
        attempt = self.attempt
        chunks, ending = self.translator.close(self.state, ended)
        ending, charged, body = settled(ending, ended, failure, self.choice.model, heard=self.heard)
        attempt.ending = ending
        note(self.position, attempt, chunks)
        if ending.error is not None and mark and attempt.visible:
            chunks = (*chunks, abandoned(attempt))
        self.position.endings.append(ending)
        self.position.costs.append(charged)
        await self.context.append(
            Event("exchange", chunks, None, self.run, attempt.exchange, "end", llm_key(attempt.step, attempt.number), body),
            changes=(CloseExchange(attempt.exchange, ended),),
        )
        point("exchange.ended")
        return ending


def settled(ending: Ending, ended: Ended, failure: Failure | None, model: Model, *, heard: bool) -> tuple[Ending, int | None, JsonObject]:
    """How an exchange ended, what is charged for it, and the body of its end; `heard` says that something of an answer had come."""
    if failure is not None:
        ending = Ending("error", ending.raw_reason, ending.usage, ending.cost, failure, ending.metadata)
    charged = ending.cost if ending.cost is not None else price(model, ending.usage)
    if failure is not None and not heard and failure.kind not in UNANSWERED:
        charged = 0  # refused: nothing was made, so nothing is owed
    return ending, charged, end_body(ending, ended, charged, failure)


def abandoned(attempt: Attempt) -> chunk.Chunk:
    """The mark behind an attempt that was given up: its parts stay to be seen and never enter history."""
    attempt.marked = True
    name = f"{attempt.step}.{attempt.number}"
    return chunk.data("attempt", {"step": attempt.step, "attempt": attempt.number, "abandoned": True}, id=name)


async def converse(
    context: RunContext, position: Position, choice: Choice, request: Request, *, run: str, conversation: str, number: int
) -> Attempt:
    """Runs one attempt to its end; what became of it is in its `ending`. Cancellation closes it and passes through."""
    step = position.step
    attempt = Attempt(step, number, request.exchange, at=context.ports.now())
    first = not position.attempts
    position.attempts.append(attempt)
    translator = choice.dialect.translator
    options = ExchangeOptions(f"{step}.{number}", step, tuple(position.tool_call_ids), {"provider": choice.provider.name})
    exchange = Exchange(
        id=request.exchange,
        run=run,
        conversation=conversation,
        purpose="answer",
        dialect=choice.dialect.name,
        converter=f"{translator.name}/{translator.version}",
        provider=choice.provider.name,
        model=choice.model.wire_name,
        options=options,
        request=request.manifest,
    )
    head = (chunk.START_STEP,) if first else ()
    await context.append(
        Event("exchange", head, None, run, exchange.id, "start", llm_key(step, number), start_body(exchange, str(choice.model.id))),
        changes=(OpenExchange(exchange),),
    )
    point("exchange.started")
    spoils = translator if isinstance(translator, Spoils) else None
    live = _Live(context, position, attempt, choice, translator, translator.open(options), run, spoils)
    try:
        await _stream(live, choice, request)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await live.end("cancelled", None, mark=False)
        raise
    except ProviderError as error:
        with anyio.CancelScope(shield=True):
            if error.raw:
                await context.append(Event("raw", (), error.raw, run, exchange.id, body=REFUSED))
            await live.end("cut", Failure.of(error), mark=True)
    else:
        with anyio.CancelScope(shield=True):  # a cancel may come just now, and it has ended all the same
            await live.end("cut" if live.spoiled else "eof", None, mark=True)
    return attempt


async def _stream(live: _Live, choice: Choice, request: Request) -> None:
    async with aclosing(choice.provider.stream(request.wire)) as reads:
        async for raws in reads:
            await live.take(raws)
            if live.spoiled:
                return
