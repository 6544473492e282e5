"""Execution of one leg of a run, from claim to end. Whatever happens, the run ends up in exactly one recorded state."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

import anyio

from moot.agents.journal import kill_noted
from moot.convert.exchanges import close_open, settle_calls, totals
from moot.convert.fold import Folder
from moot.errors import Busy, FenceLost, MootError, StoreCorrupt
from moot.plugins import AGENTS
from moot.runtime.journal import LEG, PARKED, Journal, worked
from moot.runtime.leg import Leg, mend
from moot.runtime.runtime import Runtime, first_error, log_fields
from moot.runtime.setup import find_agent, in_project, servers_of
from moot.types import chunk
from moot.types.agent import Agent
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.context import AgentService, Parked
from moot.types.crash import point
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.run import Run, RunOutcome, RunRequest
from moot.types.store import End, Fence, Fold, Park, RunSnapshot, Store


async def kill_leftovers(journal: Journal) -> None:
    """Kill the commands of calls that have no recorded end because a crash interrupted them."""
    for key, note in journal.notes.items():
        if key not in journal.ends:
            await kill_noted(note)


async def kill_left_by(store: Store, conversation: str, run: str) -> None:
    """Kill leftover commands of a run that ends without being resumed. Not cancellable."""
    with anyio.CancelScope(shield=True):
        events: list[Event] = []
        while page := await store.log.read(conversation, after=events[-1].seq if events else 0, run=run):
            events += page
        await kill_leftovers(Journal(events))


CLOSING = 2.0
"""Time limit in seconds for closing a run while everything else is being cancelled."""

log = logging.getLogger("moot.runtime")


async def drive(runtime: Runtime, fence: Fence, standing: RunSnapshot, scope: anyio.CancelScope) -> Run:
    """Run one leg from the claimed state and return the run as it is afterwards. Cancelling `scope` ends the run as cancelled.

    Cancellation from outside and loss of the fence leave the run to be resumed.
    """
    leg = await _open(runtime, fence, standing)
    ended = False
    try:
        with scope:
            while not ended:
                outcome = await _within(leg)
                if outcome.status == "parked":
                    raise Parked
                ended = await _ended(leg, outcome)
                if not ended:
                    with anyio.CancelScope(shield=True):
                        leg = await _open(runtime, fence, await runtime.store.records.standing(fence.run))
        if not ended:
            await _ended(leg, RunOutcome("cancelled", finish_reason="other"))
    except Parked:  # an answer claims it again
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING):
            await leg.append(Event("meta", body=PARKED), changes=(Park(),), sync=True, fold=True)
            point("run.parked")
    except FenceLost:
        pass  # another owner has taken the run and records its state
    return await runtime.store.records.run(fence.run)


async def _ended(leg: Leg, outcome: RunOutcome) -> bool:
    """Record the run's end. Return False if a message arrived just before the end, so that the run must continue."""
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(CLOSING):
            await kill_leftovers(leg.index)
        with anyio.move_on_after(CLOSING):
            try:
                await _end(leg, outcome)
            except Busy:
                return False
    return True


async def _open(runtime: Runtime, fence: Fence, standing: RunSnapshot) -> Leg:
    run, events = standing.run, standing.events
    limits = runtime.settings.limits
    cost, seconds = run.settings.get("max_cost"), run.settings.get("timeout")
    if isinstance(cost, int):
        limits = dataclasses.replace(limits, cost=cost)
    if isinstance(seconds, int | float):
        limits = dataclasses.replace(limits, seconds=float(seconds))
    try:
        agent = in_project(find_agent(runtime.settings, run.agent, run.settings), standing.project)
    except MootError:
        agent = Agent(name=run.agent)  # removed from the configuration; the first step reports it
    request = RunRequest(run, standing.conversation, agent, limits, run.settings, servers_of(runtime.settings, agent))
    leg = Leg(runtime, request, fence, standing.message, events, standing.inbox, standing.project)
    if "run" not in leg.index.starts and not _damaged(events):
        facts: JsonObject = {"agent": run.agent, "agent_type": run.agent_type}
        await leg.append(Event("chunks", (chunk.start(fence.message, facts),), phase="start", key="run"))
        point("run.started")
    elif events:
        await leg.append(Event("meta", body=LEG))
        point("leg.begun")
    return leg


async def _within(leg: Leg) -> RunOutcome:
    """Return the agent service's outcome. Errors become failed outcomes; Parked and cancellation propagate."""
    limit = leg.request.limits.seconds
    if seq := _damaged(await leg.journal()):
        # it is unknown which calls were started or completed, and no call must run twice
        message = f"Event {seq} of this run is damaged in the store, so the run can't be resumed. Its readable events are kept."
        return RunOutcome("failed", "error", Failure(message, StoreCorrupt.code))
    try:
        service: AgentService = AGENTS.make(leg.request.run.agent_type)
        with leg.deadline.limit(max(0.0, limit - worked(await leg.journal())) if limit else None) as timer:
            return await service.run(leg.request, leg)
        assert timer.cancelled_caught
        late = Failure(f"The run stopped after {limit:g} s.", kind="deadline", fix="Raise the limit with --timeout or limits.seconds.")
        return RunOutcome("failed", "other", late)
    except FenceLost:
        raise
    except MootError as error:
        return RunOutcome("failed", "error", Failure.of(error))
    except BaseExceptionGroup as group:
        return _unwrap(group, log_fields(leg.request.run))
    except Exception as error:
        log.exception("run %s failed", leg.fence.run, extra=log_fields(leg.request.run))
        return RunOutcome("failed", "error", Failure(f"Internal error: {type(error).__name__}: {error}", "internal"))


def _damaged(events: Sequence[Event]) -> int:
    """Return the seq of the first damaged event; 0 = none."""
    damaged = (event.seq for event in events if event.kind == "meta" and isinstance(event.body, dict) and event.body.get("damaged") is True)
    return next(damaged, 0)


def _unwrap(group: BaseExceptionGroup[BaseException], extra: dict[str, str]) -> RunOutcome:
    """Return a task group's failures as one outcome. Raise exceptions that must propagate."""
    for kind in (Parked, FenceLost):
        if (found := group.subgroup(kind)) is not None:
            raise first_error(found)
    error = first_error(group)
    if isinstance(error, MootError):
        return RunOutcome("failed", "error", Failure.of(error))
    if not isinstance(error, Exception):
        raise error
    log.error("run failed", exc_info=error, extra=extra)
    return RunOutcome("failed", "error", Failure(f"Internal error: {type(error).__name__}: {error}", "internal"))


async def _end(leg: Leg, outcome: RunOutcome) -> None:
    status = outcome.status
    assert status != "parked"
    await mend(leg)
    usage, cost, model = totals([*leg.index.starts.values(), *leg.index.ends.values()])
    chunks = _closing(leg, outcome)
    folder = Folder(leg.folder.parts(), leg.folder.metadata())
    folder.feed_all(chunks)
    context_usage = folder.metadata().get("context_usage")
    fold = Fold(folder.parts(), folder.metadata(), status)
    end = End(status, outcome.error, usage, cost, context_usage if isinstance(context_usage, float) else None, model)
    body: JsonObject = {"status": status, "finish_reason": outcome.finish_reason}
    # not with leg.append, because this Fold contains the message's final status
    event = Event("chunks", chunks, None, leg.fence.run, None, "end", "run", body, leg.runtime.now())
    conversation = leg.fence.conversation
    seqs = await leg.runtime.store.log.append(conversation, (event,), fence=leg.fence, changes=(fold, end), sync=True)
    leg.runtime.hub.publish(conversation, seqs, (event,))
    point("run.ended")


def _closing(leg: Leg, outcome: RunOutcome) -> tuple[Chunk, ...]:
    parts = leg.folder.parts()
    why = "Cancelled before it completed." if outcome.status == "cancelled" else "Not executed because the run ended."
    chunks: list[Chunk] = [*close_open(parts), *settle_calls(parts, why)]
    if outcome.error is not None:
        chunks.append(chunk.error(outcome.error.advice()))
    if leg.step_open:
        chunks.append(chunk.FINISH_STEP)
    if outcome.status == "cancelled":
        chunks.append(chunk.abort("cancelled"))
    else:
        chunks.append(chunk.finish(outcome.finish_reason, outcome.metadata or None))
    return tuple(chunks)
