"""One step's model call: attempts with backoff and fallback models.
Each attempt is an exchange, and its raw bytes are committed after each read.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import anyio

from moot.agents.journal import Attempt, Position, note
from moot.agents.request import Request, build
from moot.convert.exchanges import close_open
from moot.errors import ProviderError
from moot.providers.catalogue import price
from moot.types import chunk
from moot.types.canonical import JsonObject
from moot.types.context import Choice, Parked, RunContext, StepSetup
from moot.types.crash import point
from moot.types.event import REFUSED, Event, Raw
from moot.types.exchange import Ended, Ending, Exchange, ExchangeOptions, Failure, end_body, start_body
from moot.types.ids import exchange_id, llm_key
from moot.types.model import Model
from moot.types.provider import DetectsFailure, Translator
from moot.types.run import RunRequest
from moot.types.store import CloseExchange, OpenExchange
from moot.types.tool import Tool

_DELTAS = frozenset({"text-delta", "reasoning-delta", "tool-input-delta"})
"""The most frequent chunk types. They don't affect the run's position."""

UNKNOWN_COST = frozenset({"timeout"})
"""Failures after which the cost is unknown, because a silent provider may have worked on the request. A connection that broke before the
first byte counts as a request that never arrived, so that one network error does not make a run's cost unknown.
"""


@dataclass(slots=True)
class _Live:
    """An exchange in progress, with the state of its translator."""

    context: RunContext
    position: Position
    attempt: Attempt
    choice: Choice
    translator: Translator[Any]
    state: Any
    run: str
    spoils: DetectsFailure | None
    heard: bool = False
    """True if any part of an answer has arrived."""

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
        with anyio.CancelScope(shield=True):  # the log must contain what the translator has processed, or the end would not match
            await self.context.append(*events)
        point("exchange.read")

    @property
    def spoiled(self) -> bool:
        return self.spoils is not None and self.spoils.spoiled(self.state)

    async def end(self, ended: Ended, failure: Failure | None, *, mark: bool) -> Ending:
        """Close open parts and write the exchange's end. If `mark` is True, mark a failed attempt that has visible output as abandoned."""
        attempt = self.attempt
        chunks, ending = self.translator.close(self.state, ended)
        ending, charged, body = settle_exchange(ending, ended, failure, self.choice.model, heard=self.heard)
        attempt.ending, attempt.ended_at = ending, self.context.ports.now()
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


def settle_exchange(
    ending: Ending, ended: Ended, failure: Failure | None, model: Model, *, heard: bool
) -> tuple[Ending, int | None, JsonObject]:
    """Return the exchange's ending, its cost, and the body of its end event. `heard` is True if part of an answer has arrived."""
    if failure is not None:
        ending = Ending("error", ending.raw_reason, ending.usage, ending.cost, failure, ending.metadata)
    charged = ending.cost if ending.cost is not None else price(model, ending.usage, str(ending.metadata.get("service_tier") or ""))
    if failure is not None and not heard and failure.kind not in UNKNOWN_COST:
        charged = 0  # the request was refused: nothing was generated, so nothing is charged
    return ending, charged, end_body(ending, ended, charged, failure)


def abandoned(attempt: Attempt) -> chunk.Chunk:
    """Return the marker that follows an abandoned attempt, whose parts stay visible but are never added to the history."""
    attempt.marked = True
    name = f"{attempt.step}.{attempt.number}"
    return chunk.data("attempt", {"step": attempt.step, "attempt": attempt.number, "abandoned": True}, id=name)


async def converse(
    context: RunContext, position: Position, choice: Choice, request: Request, *, run: str, conversation: str, number: int
) -> Attempt:
    """Run one attempt to its end and store the result in its `ending`. Cancellation closes the exchange and propagates."""
    step = position.step
    attempt = Attempt(step, number, request.exchange, at=context.ports.now(), tools=frozenset(request.tools))
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
        request={"pieces": request.pieces.hashes},
    )
    head = (chunk.START_STEP,) if first else ()
    body = start_body(exchange, str(choice.model.id), request.tools)
    await context.append(
        Event("exchange", head, None, run, exchange.id, "start", llm_key(step, number), body),
        changes=(OpenExchange(exchange, request.pieces),),
    )
    point("exchange.started")
    spoils = translator if isinstance(translator, DetectsFailure) else None
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


TRIES = 3
"""Maximum number of attempts with one model, as long as there is no visible output."""

PATIENCE = 60.0
"""Maximum number of seconds to wait for a provider. If it asks for a longer wait, use the fallback model or fail with a message."""

_FIRST_PAUSE = 0.5

_SHOWN_PAUSE = 1.0
"""Shortest pause, in seconds, that faces show."""

_AFTER_TEXT = frozenset({"transport", "overloaded", "timeout"})


@dataclass(slots=True)
class _Chain:
    """The models tried in one leg, and the number of attempts with each."""

    choices: tuple[Choice, ...]
    current: int = 0
    tries: int = 0
    repeated_after_text: bool = False
    shrunk: bool = False

    @property
    def choice(self) -> Choice:
        return self.choices[self.current]

    def next_model(self) -> bool:
        if self.current + 1 >= len(self.choices):
            return False
        self.current += 1
        self.tries = 0
        return True


async def answer(
    context: RunContext, request: RunRequest, position: Position, setup: StepSetup, tools: tuple[Tool, ...]
) -> tuple[Attempt, Choice]:
    """Make the step's model call. Return its final attempt, successful or not, and the model used.
    A step that has an answer is not sent again.
    """
    chain = _Chain(setup.choices)
    plain = setup.served is not None and setup.served.plain  # the caller trims the history and retries
    if (done := position.answered) is not None:
        return done, chain.choice
    await _abandon_unended(context, position)
    budget = setup.history_tokens
    while True:
        number = len(position.attempts)
        exchange = exchange_id(request.run.id, position.step, number)
        wire = await build(context, setup, chain.choice, exchange, tools=tools, budget=budget)
        async with context.ports.slot(chain.choice.provider.name):
            attempt = await converse(
                context, position, chain.choice, wire, run=request.run.id, conversation=request.conversation.id, number=number
            )
        chain.tries += 1
        failure = attempt.ending.error if attempt.ending is not None else None
        if failure is None:
            return attempt, chain.choice
        if failure.kind == "context_too_long" and not chain.shrunk and not attempt.visible and not plain:
            chain.shrunk = True
            budget = min(budget, wire.tokens) // 2
            continue
        pause = None if plain and attempt.visible else _pause(chain, attempt, failure, context.ports.jitter())
        if pause is None and not plain and (reset := _reset(position, attempt, failure, setup.limits.wait_for_reset)) is not None:
            await context.append(Event("chunks", (_wait_note(chain.choice.provider.name, exchange, reset),)))
            raise Parked(reset)
        if pause is None:
            return attempt, chain.choice
        if pause >= _SHOWN_PAUSE:
            await context.append(Event("chunks", (_retry_status(failure, context.ports.now() // 1000 + round(pause * 1000)),)))
        await context.ports.sleep(pause)


def _pause(chain: _Chain, attempt: Attempt, failure: Failure, jitter: float) -> float | None:
    """Return how many seconds to wait before the next attempt, or None if the failure is final."""
    if attempt.visible:
        if failure.kind not in _AFTER_TEXT or chain.repeated_after_text:
            return None
        chain.repeated_after_text = True
        return _FIRST_PAUSE + jitter
    delay = failure.retry_after or 0.0
    if failure.retryable and chain.tries < TRIES and delay <= PATIENCE:
        return max(delay, _FIRST_PAUSE * 2 ** (chain.tries - 1)) + jitter * _FIRST_PAUSE
    return 0.0 if failure.kind != "content" and chain.next_model() else None


def _reset(position: Position, attempt: Attempt, failure: Failure, limit: float) -> int | None:
    """Return the time in ms at which the provider's usage limit resets, or None if the step,
    counted from its first attempt, may not wait that long.
    """
    if not limit or failure.kind != "rate_limit" or not failure.retryable or failure.retry_after is None or attempt.visible:
        return None
    reset = attempt.ended_at // 1000 + round(failure.retry_after * 1000)
    return reset if reset <= position.attempts[0].at // 1000 + round(limit * 1000) else None


def _wait_note(provider: str, exchange: str, reset: int) -> chunk.Chunk:
    """Return a note about a wait. Faces show a countdown to `until`, in ms."""
    at = datetime.fromtimestamp(reset / 1000, UTC)
    text = f"The usage limit of {provider} is reached. The run continues at {at:%H:%M:%S} UTC."
    return chunk.data("note", {"text": text, "until": reset}, id=f"reset:{exchange}")


def _retry_status(failure: Failure, until: int) -> chunk.Chunk:
    """Return a transient chunk that says why a request failed and when it is sent again, in ms."""
    return chunk.data("status", {"status": "retrying", "reason": failure.kind, "until": until}, transient=True)


async def _abandon_unended(context: RunContext, position: Position) -> None:
    """Visibly abandon an attempt that a crash interrupted: close its parts and mark it. It is never counted twice."""
    last = position.attempts[-1] if position.attempts else None
    if last is None or last.ending is not None or last.marked:
        return
    closing = close_open(context.message().parts)
    last.calls.clear()
    chunks = (*closing, abandoned(last)) if last.visible else closing
    if chunks:
        await context.append(Event("chunks", chunks, exchange=last.exchange), fold=True)
        point("attempt.abandoned")
