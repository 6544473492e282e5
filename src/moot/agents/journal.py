"""A run's journal: entries that moot's loop and outside agents share, and the run's position, determined from its journal alone.

A resumed leg continues exactly at this position. The shared entries are incoming messages, step facts and leftover processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from moot.convert.vendor import as_list, as_object
from moot.guard.processes import kill_leftover
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.context import RunContext
from moot.types.event import Event
from moot.types.exchange import Ending
from moot.types.store import HandleInbox
from moot.types.usage import Usage

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


HANDED: JsonObject = {"handed": True}
"""In the body of a step's end event: another program runs the tool calls, so the run is over."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that a model, a hook or a workflow made."""

    id: str
    tool: str
    input: Json
    error: str = ""
    """The reason why the input is invalid; empty if it is valid."""
    chosen: bool = False
    """True if a person chose to make the call. Then only rules can require an approval, not the mode."""
    repeated: bool = False
    """True if the call is made again when its outcome is unknown because moot was stopped while the call was running."""

    @property
    def arguments(self) -> bytes:
        """Return the exact bytes that an approval applies to and that the tool is run with."""
        return dumps(self.input)


@dataclass(slots=True)
class Attempt:
    """One try of a step's model call, as recorded in the journal."""

    step: int
    number: int
    exchange: str
    ending: Ending | None = None
    """None if it is still in progress, or was interrupted."""
    calls: list[Call] = field(default_factory=list["Call"])
    visible: bool = False
    """True if it has produced visible output."""
    marked: bool = False
    """True if its `data-attempt` chunk has been written."""
    at: int = 0
    """Start time in µs."""
    first_at: int = 0
    """Time of its first visible output; 0 if there is none yet."""
    ended_at: int = 0
    """End time in µs; 0 if it has not ended."""
    tools: frozenset[str] | None = None
    """Names of the tools in its request, or None if they were not recorded."""


@dataclass(slots=True)
class Position:
    """The state of a run so far."""

    step: int = 1
    """The step to start or continue, from 1."""
    attempts: list[Attempt] = field(default_factory=list["Attempt"])
    """Attempts of that step."""
    signatures: list[bytes] = field(default_factory=list[bytes])
    """Tool and arguments of every call so far, for the limit on repeated calls."""
    tool_call_ids: list[str] = field(default_factory=list[str])
    endings: list[Ending] = field(default_factory=list["Ending"])
    """The endings of all attempts of all steps, with usage and cost."""
    costs: list[int | None] = field(default_factory=list["int | None"])
    """Cost of each ended attempt in nano-dollars."""
    cut: int = 0
    """Number of attempts that a crash interrupted: their usage is unknown."""
    finished: bool = False
    """True if nothing is left to do after the last step, so that only the run's end event is missing."""
    tools: frozenset[str] | None = None
    """Names of the tools in the request that the model last answered, or None if it has not answered yet."""

    @property
    def answered(self) -> Attempt | None:
        """Return the successful attempt of the current step, or None."""
        last = self.attempts[-1] if self.attempts else None
        return last if last is not None and last.ending is not None and last.ending.error is None else None

    @property
    def usage(self) -> Usage:
        return sum((ending.usage for ending in self.endings), Usage())

    @property
    def cost(self) -> int | None:
        """Return the total cost, or None if the cost of one attempt is unknown."""
        return self.spent if self.costs and None not in self.costs and not self.cut else None

    @property
    def spent(self) -> int:
        """Return the sum of the known costs."""
        return sum(cost for cost in self.costs if cost is not None)

    def finish_step(self, *, handed: bool) -> None:
        """Go to the next step. `handed` is True if another program runs the calls."""
        answered = self.answered
        calls = answered.calls if answered is not None else []
        paused = answered is not None and answered.ending is not None and answered.ending.metadata.get("continue") is True
        self.signatures.extend(signature(call) for call in calls)
        self.tools = answered.tools if answered is not None else self.tools
        self.finished = handed or (not calls and not paused)  # a vendor that paused the answer wants to be called again
        self.step += 1
        self.attempts = []

    def start_after(self, step: int) -> None:
        """Continue with the step after `step`, which was the last one of another agent."""
        self.step = step + 1
        self.attempts = []
        self.finished = False


def locate(events: Iterable[Event]) -> Position:
    """Return the position that a run has reached after these events."""
    position = Position()
    by_exchange: dict[str, Attempt] = {}
    for event in events:
        if event.kind == "exchange" and event.key is not None and event.key.startswith("llm:") and event.exchange is not None:
            _exchange(position, by_exchange, event)
        if is_hand_over(event):
            position.start_after(steps_before((event,)))
            by_exchange.clear()
            continue
        attempt = by_exchange.get(event.exchange) if event.exchange is not None else None
        if attempt is not None:
            note(position, attempt, event.chunks)
            attempt.first_at = attempt.first_at or (event.at if attempt.visible else 0)
        elif event.phase == "end" and event.key == f"step:{position.step}":
            position.finish_step(handed=event.body == HANDED)
        elif any(piece["type"] == "steering-message" for piece in event.chunks):
            position.finished = False  # received after the last step: it needs an answer
    return position


def note(position: Position, attempt: Attempt, chunks: Iterable[Chunk]) -> None:
    """Record the tool calls in an attempt's chunks, and whether any output is visible."""
    for chunk in chunks:
        kind = chunk["type"]
        if kind in ("tool-input-start", "tool-input-available", "tool-input-error"):
            id = str(chunk["toolCallId"])
            # an incomplete call occupies its id too, because the vendor may reuse the id in the next attempt
            if id not in position.tool_call_ids:
                position.tool_call_ids.append(id)
            if kind != "tool-input-start" and chunk.get("providerExecuted") is not True:
                error = str(chunk.get("errorText", "")) if kind == "tool-input-error" else ""
                attempt.calls.append(Call(id, str(chunk["toolName"]), chunk.get("input"), error))
        elif kind == "data-attempt":
            attempt.marked = True
            continue
        if kind != "start-step":
            attempt.visible = True


def _exchange(position: Position, by_exchange: dict[str, Attempt], event: Event) -> None:
    step, _, number = str(event.key).removeprefix("llm:").partition(".")
    if event.phase == "start":
        offered = event.body.get("tools") if isinstance(event.body, dict) else None
        tools = frozenset(map(str, offered)) if isinstance(offered, list) else None
        attempt = Attempt(int(step), int(number), str(event.exchange), at=event.at, tools=tools)
        by_exchange[attempt.exchange] = attempt
        position.attempts.append(attempt)
        position.cut += 1
    elif isinstance(event.body, dict) and (attempt := by_exchange.get(str(event.exchange))) is not None:
        position.cut -= 1
        ending = Ending.from_json(event.body)
        position.endings.append(ending)
        # interrupted by a shutdown of the process: the step was not answered, so it is sent again
        attempt.ending = None if event.body.get("ended") == "cancelled" else ending
        attempt.ended_at = event.at
        cost = event.body.get("charged")
        position.costs.append(cost if isinstance(cost, int) else None)


def signature(call: Call) -> bytes:
    """Return bytes that are equal for identical calls."""
    return call.tool.encode() + b"\0" + call.arguments
