"""A leg of an outside agent: a turn for the prompt, and another one for each message that arrives in the meantime.

Nothing runs twice: the journal records each turn before its process starts and after it has ended. A turn that a crash interrupted is not
run again, because its effects are unknown. The run then ends, and the next prompt continues the turn's session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from moot.agents.journal import kill_noted, steps_before, take_steers
from moot.agents.outside.prompts import work_so_far
from moot.convert.exchanges import InterruptedExchange
from moot.convert.files.attachments import with_texts
from moot.convert.history import added_parts
from moot.convert.vendor import as_list, as_object
from moot.guard.processes import Child
from moot.types.canonical import JsonObject
from moot.types.context import Result, RunContext, Unknown
from moot.types.crash import point
from moot.types.event import Event
from moot.types.exchange import Ending, ExchangeOptions, Failure
from moot.types.ids import exchange_id
from moot.types.message import Part, text_of, text_part
from moot.types.run import RunOutcome, RunRequest
from moot.types.store import CloseExchange

CUT_OFF = "The agent was interrupted and is not run again automatically, because what it has done is unknown."


@dataclass(frozen=True, slots=True)
class TurnInput:
    """The input of a turn."""

    parts: tuple[Part, ...]
    """The user's message: text and files."""
    number: int
    """Number of the turn in its run, from 1."""
    first: bool = True
    """True for the agent's first turn in the run."""

    @property
    def text(self) -> str:
        return text_of(self.parts)


RunTurn = Callable[[TurnInput], Awaitable[RunOutcome]]
"""Callback that runs one turn, including its exchange and process, to its end. A MootError or a failed outcome ends the run."""


def key_of(number: int) -> str:
    """Return the journal key of a turn."""
    return f"agent:{number}"


async def run_leg(request: RunRequest, context: RunContext, talk: RunTurn) -> RunOutcome:
    """Run all turns that are needed, starting at the position recorded in the journal."""
    before = number = steps_before(await context.journal())
    outcome = RunOutcome("finished")
    while True:
        number += 1
        first = number == before + 1
        standing = context.standing(key_of(number))
        parts = await _turn_parts(context, first=first, continues=before > 0)
        if standing == "new" and not parts and not first:
            return outcome
        if standing == "begun":
            await _close_what_was_cut(request, context, number)
        said = TurnInput(parts, number, first)

        async def work(said: TurnInput = said) -> Result:
            ended = await talk(said)
            error = ended.error.to_json() if ended.error is not None else None
            return Result({"status": ended.status, "finish_reason": ended.finish_reason, "error": error})

        result = await context.once(key_of(number), idempotent=False, work=work, body={"turn": number})
        if isinstance(result, Unknown):
            await kill_noted(result.note)
            await context.append(Event("journal", phase="end", key=result.key, body={"value": None}), sync=True)
            return RunOutcome("failed", "error", Failure(CUT_OFF, kind="cut"))
        outcome = _outcome(result.value if isinstance(result.value, dict) else None)
        if outcome.status != "finished":
            return outcome


async def record_child(context: RunContext, number: int, child: Child) -> None:
    """Record the turn's process in the journal, so that it can be killed after a crash of moot."""
    await context.append(Event("journal", key=f"{key_of(number)}.0", body={"pgid": child.group, "started": child.started}), sync=True)
    point("agent.noted")


def outcome_of(ending: Ending) -> RunOutcome:
    """Return the leg's outcome for a closed turn."""
    if ending.error is not None:
        return RunOutcome("failed", "error", ending.error)
    return RunOutcome("finished", ending.finish_reason)


async def _turn_parts(context: RunContext, *, first: bool, continues: bool) -> tuple[Part, ...]:
    """Return the turn's input: the prompt (and the work so far if another agent started the answer),
    or unanswered messages since the last step.
    """
    if first:
        prompts = [message for message in await context.history(1) if message.role == "user"]
        added = [text_part(f"{part['text']}\n\n") for part in added_parts(context.message().parts)]
        begun = [text_part(f"\n\n{text}") for text in (work_so_far(context.message()),) if continues and text]
        return with_texts((*added, *prompts[-1].parts, *begun)) if prompts else ()
    await take_steers(context)
    unanswered: list[Part] = []
    for part in reversed(context.message().parts):
        if part.get("type") == "step-start":
            break
        if part.get("type") == "steering-message":
            unanswered.append(part)
    return with_texts([piece for part in reversed(unanswered) for piece in as_list(part.get("parts")) if isinstance(piece, dict)])


def _outcome(value: JsonObject | None) -> RunOutcome:
    if value is None:
        return RunOutcome("failed", "error", Failure(CUT_OFF, kind="cut"))
    error = value.get("error")
    failure = Failure.from_json(error) if isinstance(error, dict) else None
    return RunOutcome("finished" if value.get("status") == "finished" else "failed", str(value.get("finish_reason", "stop")), failure)


async def _close_what_was_cut(request: RunRequest, context: RunContext, number: int) -> None:
    """Close the exchange of an interrupted process, which has no end event yet, by translating its raw lines."""
    exchange = exchange_id(request.run.id, number, 0)
    events = [event for event in await context.journal() if event.exchange == exchange]
    started = next((event.body for event in events if event.phase == "start" and isinstance(event.body, dict)), None)
    if started is None:
        return
    told = as_object(started.get("options"))
    ids = tuple(map(str, as_list(told.get("tool_call_ids"))))
    options = ExchangeOptions(f"{number}.0", number, ids, as_object(told.get("extra")))
    cut = InterruptedExchange(exchange, str(started.get("converter")), options)
    for event in events:
        cut.take(event)
    if cut.is_open:
        end = cut.end(None, Failure(CUT_OFF, kind="cut"))
        await context.append(end, changes=(CloseExchange(exchange, "cut"),), fold=True)
        point("agent.cut")
