"""Entries of a run's journal that moot's loop and outside agents share: incoming messages, step facts, leftover processes."""

from __future__ import annotations

from moot.convert.vendor import as_list, as_object
from moot.guard.processes import kill_leftover
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.context import RunContext
from moot.types.event import Event
from moot.types.exchange import Ending
from moot.types.store import HandleInbox


async def take_steers(context: RunContext) -> bool:
    """Add the messages that users sent meanwhile to the answer, in one commit. Return True if there were any."""
    items = [item for item in await context.inbox() if item.kind == "steer" and isinstance(item.body, dict)]
    if not items:
        return False
    bodies = [(item.no, as_object(item.body)) for item in items]
    chunks: tuple[Chunk, ...] = tuple(
        {"type": "steering-message", "id": str(body.get("id", f"steer-{no}")), "parts": body.get("parts", [])} for no, body in bodies
    )
    await context.append(Event("chunks", chunks), changes=(HandleInbox(max(item.no for item in items)),), sync=True, fold=True)
    return True


def answer_metadata(
    context: RunContext, ending: Ending, step: JsonObject, cost: Json, *, agent: str, model: Json, provider: str, began: int, first: int
) -> JsonObject:
    """Return the answer's metadata with the facts of one more step. `first` is the time of its first visible output; 0 = none."""
    facts: JsonObject = {
        **step,
        "finish_reason": ending.finish_reason,
        "usage": ending.usage.to_json(),
        "cost": cost,
        "ms": max(0, context.ports.now() - began) // 1000,
        **({"first_ms": max(0, first - began) // 1000} if first else {}),
        **ending.metadata,
    }
    steps: list[Json] = [*as_list(context.message().metadata.get("steps")), facts]
    return {"agent": agent, "model": model, "provider": provider, "finish_reason": ending.finish_reason, "steps": steps}


async def kill_noted(note: JsonObject) -> None:
    """Kill the process that journaled work recorded, if a crash of moot left it running."""
    group, started = note.get("pgid"), note.get("started")
    if isinstance(group, int) and isinstance(started, int | float | str):
        await kill_leftover(group, started)
