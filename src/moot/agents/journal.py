"""Entries of a run's journal that moot's loop and outside agents share: incoming messages, step facts, leftover processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moot.convert.vendor import as_list, as_object
from moot.guard.processes import kill_leftover
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.context import RunContext
from moot.types.event import Event
from moot.types.exchange import Ending
from moot.types.store import HandleInbox

HAND_OVER = "handover:"
"""Prefix of the keys of events that mark where another agent continues a run."""


def steps_before(events: Iterable[Event]) -> int:
    """Return how many steps or turns of the run were done by agents before the current one."""
    handed = [event.body for event in events if is_hand_over(event)]
    steps = as_object(handed[-1]).get("steps") if handed else 0
    return steps if isinstance(steps, int) else 0


def is_hand_over(event: Event) -> bool:
    """Return True if another agent continues the run from this event on."""
    return event.key is not None and event.phase == "end" and event.key.startswith(HAND_OVER)


class Timing(NamedTuple):
    """Start and end of a model's work, in µs. Time spent waiting for people is not included."""

    began: int
    ended: int
    first: int
    """Time of the first visible output; 0 = none."""


async def take_steers(context: RunContext) -> bool:
    """Add the messages that users sent while the answer was being written to the answer, in one commit.
    Return False if hooks blocked all of them.
    """
    items = [item for item in await context.inbox() if item.kind == "steer" and isinstance(item.body, dict)]
    if not items:
        return False
    chunks: list[Chunk] = []
    for item in items:
        body = as_object(item.body)
        id, parts = str(body.get("id", f"steer-{item.no}")), body.get("parts", [])
        if (hooks := context.ports.hooks) is not None:
            parts = list[Json](await hooks.steered(id, [part for part in as_list(parts) if isinstance(part, dict)]))
            if not parts:
                continue
        chunks.append({"type": "steering-message", "id": id, "parts": parts})
    event = Event("chunks", tuple(chunks)) if chunks else Event("meta", body={"blocked": len(items)})
    await context.append(event, changes=(HandleInbox(max(item.no for item in items)),), sync=True, fold=True)
    return bool(chunks)


def answer_metadata(
    context: RunContext, ending: Ending, step: JsonObject, cost: Json, timing: Timing, *, agent: str, model: Json, provider: str
) -> JsonObject:
    """Return the answer's metadata, updated with one more step."""
    facts: JsonObject = {
        **step,
        "finish_reason": ending.finish_reason,
        "usage": ending.usage.to_json(),
        "cost": cost,
        "at": timing.ended // 1000,
        "ms": max(0, timing.ended - timing.began) // 1000,
        **({"first_ms": max(0, timing.first - timing.began) // 1000} if timing.first else {}),
        **ending.metadata,
    }
    steps: list[Json] = [*as_list(context.message().metadata.get("steps")), facts]
    return {"agent": agent, "model": model, "provider": provider, "finish_reason": ending.finish_reason, "steps": steps}


async def kill_noted(note: JsonObject) -> None:
    """Kill the process that is recorded in a note of the journal if it is still running after a crash of moot."""
    group, started = note.get("pgid"), note.get("started")
    if isinstance(group, int) and isinstance(started, int | float | str):
        await kill_leftover(group, started)
