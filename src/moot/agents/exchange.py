"""One exchange with a model: send the request, receive raw, and commit each socket read as one append."""

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
"""Chunk types of nearly every frame; they don't affect the run's position."""


UNANSWERED = frozenset({"timeout"})
"""Failures after which the cost is unknown, because a silent provider may have worked on the request. A connection that broke before the
first byte counts as a request that never arrived, so that one network error does not make a run's cost unknown.
"""


@dataclass(slots=True)
class _Live:
    """A live exchange; the translator's state exists only here."""

    context: RunContext
    position: Position
    attempt: Attempt
    choice: Choice
    translator: Translator[Any]
    state: Any
    run: str
    spoils: Spoils | None
    heard: bool = False
    """A part of an answer has arrived."""

    async def take(self, raws: tuple[Raw, ...]) -> None:
        """Translate the frames of one socket read and commit them together."""
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
        with anyio.CancelScope(shield=True):  # the log must contain what the translator has seen, or the end would not match it
            await self.context.append(*events)
        point("exchange.read")

    @property
    def spoiled(self) -> bool:
        return self.spoils is not None and self.spoils.spoiled(self.state)

    async def end(self, ended: Ended, failure: Failure | None, *, mark: bool) -> Ending:
        """Close what is open and write the exchange's end. `mark` means that the attempt is abandoned."""
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
    """Return the ending, the cost and the body of the end event. `heard` means that a part of an answer had arrived."""
    if failure is not None:
        ending = Ending("error", ending.raw_reason, ending.usage, ending.cost, failure, ending.metadata)
    charged = ending.cost if ending.cost is not None else price(model, ending.usage)
    if failure is not None and not heard and failure.kind not in UNANSWERED:
        charged = 0  # refused: nothing was generated, so nothing is charged
    return ending, charged, end_body(ending, ended, charged, failure)


def abandoned(attempt: Attempt) -> chunk.Chunk:
    """Return the marker after an abandoned attempt: its parts stay visible but never enter the history."""
    attempt.marked = True
    name = f"{attempt.step}.{attempt.number}"
    return chunk.data("attempt", {"step": attempt.step, "attempt": attempt.number, "abandoned": True}, id=name)


async def converse(
    context: RunContext, position: Position, choice: Choice, request: Request, *, run: str, conversation: str, number: int
) -> Attempt:
    """Run one attempt to its end; the result is in its `ending`. Cancellation closes the exchange and propagates."""
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
        with anyio.CancelScope(shield=True):  # the exchange has ended even if a cancel arrives now
            await live.end("cut" if live.spoiled else "eof", None, mark=True)
    return attempt


async def _stream(live: _Live, choice: Choice, request: Request) -> None:
    async with aclosing(choice.provider.stream(request.wire)) as reads:
        async for raws in reads:
            await live.take(raws)
            if live.spoiled:
                return
