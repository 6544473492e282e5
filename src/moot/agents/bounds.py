"""The loop's own limits: steps, repetition, tokens, cost."""

from __future__ import annotations

from moot.agents.position import Position
from moot.types.exchange import Failure
from moot.types.limits import Limits


def over_limit(limits: Limits, position: Position, max_steps: int) -> Failure | None:
    """Return why the run must stop before its next step, or None."""
    if max_steps and position.step > max_steps:
        return _limit(f"stopped after {max_steps} steps", "--max-steps or limits.steps")
    if limits.repeats and _repeats(position) >= limits.repeats:
        return _limit(f"stopped after {limits.repeats} identical tool calls in a row", "limits.repeats")
    usage = position.usage
    tokens = (usage.input or 0) + (usage.output or 0)
    if limits.tokens and tokens >= limits.tokens:
        return _limit(f"stopped after {tokens:,} tokens", "limits.tokens")
    if limits.cost and any(cost is None for cost in position.costs):
        return _limit("stopped: a cost limit is set, but the price of this model is unknown", "limits.cost")
    if limits.cost and position.spent >= limits.cost:
        return _limit(f"stopped after ${position.spent / 1e9:.4f}", "--max-cost or limits.cost")
    return None


def _repeats(position: Position) -> int:
    """Return how many identical calls are at the end of the list of all calls."""
    made = position.signatures
    return next((count for count, other in enumerate(reversed(made)) if other != made[-1]), len(made))


def _limit(message: str, key: str) -> Failure:
    return Failure(message, kind="limit", fix=f"raise it with {key}")
