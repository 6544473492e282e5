"""One step's model call: attempts, backoff as the provider requests, and the chain of fallback models."""

from __future__ import annotations

from dataclasses import dataclass

from moot.agents.exchange import abandoned, converse
from moot.agents.position import Attempt, Position
from moot.agents.request import build
from moot.convert.closing import close_open
from moot.types.context import Choice, RunContext, StepSetup
from moot.types.crash import point
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.ids import exchange_id
from moot.types.run import RunRequest
from moot.types.tool import Tool

TRIES = 3
"""Attempts with one model before any visible output."""

PATIENCE = 60.0
"""Maximum number of seconds to wait for a provider. If it asks for more, use the fallback model or fail with a message."""

_FIRST_PAUSE = 0.5

_AFTER_TEXT = frozenset({"transport", "overloaded", "timeout"})


@dataclass(slots=True)
class _Chain:
    """Models and numbers of attempts within one leg."""

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
    """Return the final attempt of the step's model call, successful or not, and its model. An answered step is not sent again."""
    chain = _Chain(setup.choices)
    plain = setup.served is not None and setup.served.plain  # its caller trims the history and retries
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
        if pause is None:
            return attempt, chain.choice
        await context.ports.sleep(pause)


def _pause(chain: _Chain, attempt: Attempt, failure: Failure, jitter: float) -> float | None:
    """Return the seconds to wait before the next attempt, or None if the failure is final."""
    if attempt.visible:
        if failure.kind not in _AFTER_TEXT or chain.repeated_after_text:
            return None
        chain.repeated_after_text = True
        return _FIRST_PAUSE + jitter
    delay = failure.retry_after or 0.0
    if failure.retryable and chain.tries < TRIES and delay <= PATIENCE:
        return max(delay, _FIRST_PAUSE * 2 ** (chain.tries - 1)) + jitter * _FIRST_PAUSE
    return 0.0 if failure.kind != "content" and chain.next_model() else None


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
