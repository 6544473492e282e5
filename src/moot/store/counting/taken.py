"""The usage of one answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moot.types.canonical import Json, JsonObject
from moot.types.part import Part, is_tool, tool_name
from moot.types.usage import Usage

__all__ = ["AnswerUsage", "RunFacts", "ToolCalls", "tool_calls", "usage_of"]


class RunFacts(NamedTuple):
    """Facts from the row of an answer's run."""

    agent: str
    model: str
    status: str
    error: str
    """Kind of error."""
    usage: Usage
    cost: int | None


class AnswerUsage(NamedTuple):
    """The columns of an answer's row, from `agent` on."""

    agent: str
    model: str
    status: str
    error: str
    steps: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: int | None
    first_ms: int | None
    ms: int
    timed: int
    context: int


@dataclass(slots=True)
class ToolCalls:
    """Statistics of one tool's calls."""

    calls: int = 0
    failed: int = 0
    denied: int = 0
    ms: int = 0
    timed: int = 0


def usage_of(metadata: JsonObject, status: str, run: RunFacts | None) -> AnswerUsage:
    """Return the run's own sums, or for an imported answer without a run, sums over the steps in its metadata."""
    steps = [_Step.of(step) for step in _list(metadata.get("steps")) if isinstance(step, dict)]
    if run is None:
        usage = sum((step.usage for step in steps), Usage())
        costs = [step.cost for step in steps]
        run = RunFacts(_text(metadata.get("agent")), _text(metadata.get("model")), status, "", usage, None)
        if costs and None not in costs:
            run = run._replace(cost=sum(cost for cost in costs if cost is not None))
    timed = [step for step in steps if step.ms is not None]
    usage = run.usage
    return AnswerUsage(
        agent=run.agent,
        model=run.model,
        status=run.status,
        error=run.error,
        steps=len(steps),
        input=usage.input or 0,
        output=usage.output or 0,
        cache_read=usage.cache_read or 0,
        cache_write=usage.cache_write or 0,
        reasoning=usage.reasoning or 0,
        cost=run.cost,
        first_ms=steps[0].first_ms if steps else None,
        ms=sum(step.ms or 0 for step in timed),
        timed=sum(step.usage.output or 0 for step in timed),
        context=max((step.usage.input or 0 for step in steps), default=0),
    )


def tool_calls(parts: Sequence[Part], times: Mapping[str, int]) -> dict[str, ToolCalls]:
    """Count the calls by tool; `times` has the known durations in ms by call id."""
    found: dict[str, ToolCalls] = {}
    for part in parts:
        if not is_tool(part):
            continue
        one = found.setdefault(tool_name(part), ToolCalls())
        one.calls += 1
        one.failed += part.get("state") == "output-error"
        one.denied += part.get("state") == "output-denied"
        if (ms := times.get(str(part.get("toolCallId")), _reported_ms(part))) is not None:
            one.ms += ms
            one.timed += 1
    return found


class _Step(NamedTuple):
    usage: Usage
    cost: int | None
    ms: int | None
    first_ms: int | None

    @classmethod
    def of(cls, step: JsonObject) -> _Step:
        usage = step.get("usage")
        return cls(
            Usage.from_json(usage) if isinstance(usage, dict) else Usage(),
            _whole(step.get("cost")),
            _whole(step.get("ms")),
            _whole(step.get("first_ms")),
        )


def _reported_ms(part: Part) -> int | None:
    """Return the duration that the agent itself reports."""
    metadata = part.get("toolMetadata")
    for value in [metadata, *metadata.values()] if isinstance(metadata, dict) else []:
        if isinstance(value, dict) and (ms := _whole(value.get("durationMs"))) is not None:
            return ms
    return None


def _whole(value: Json) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
