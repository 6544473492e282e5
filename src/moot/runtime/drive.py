"""The run border: one leg from its claim to its end. Whatever happens inside, the run reaches one recorded state."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

import anyio

from moot.convert.closing import close_open, settle_calls
from moot.convert.fold import Folder
from moot.convert.totals import totals
from moot.errors import Busy, FenceLost, MootError, StoreCorrupt
from moot.plugins import AGENTS
from moot.runtime.journal import LEG, PARKED, worked
from moot.runtime.leftovers import kill_leftovers
from moot.runtime.leg import Leg, mend
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, in_project, servers_of
from moot.types import chunk
from moot.types.agent import Agent
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.context import AgentService, Parked
from moot.types.crash import point
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.message import MessageStatus
from moot.types.run import Run, RunOutcome, RunRequest
from moot.types.store import End, Fence, Fold, Park, Standing

CLOSING = 2.0
"""Seconds that a run's closing may take when everything else is being cancelled."""

log = logging.getLogger("moot.runtime")


async def drive(runtime: Runtime, fence: Fence, standing: Standing, scope: anyio.CancelScope) -> Run:
    """Runs one leg from where the run stood when it was claimed; the run as it stands afterwards. Cancelling `scope` ends it as cancelled.

    Cancellation from outside passes through and leaves the run to be resumed; so does the loss of the fence.
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
    except Parked:
        await _park(leg)
    except FenceLost:
        pass  # somebody else goes on with it, and what it stands at is theirs to say
    return await runtime.store.records.run(fence.run)


async def _ended(leg: Leg, outcome: RunOutcome) -> bool:
    """Records the run's end; False when somebody has said more just as it was to be finished: it goes on where its journal stands."""
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(CLOSING):
            await kill_leftovers(leg.index)
        with anyio.move_on_after(CLOSING):
            try:
                await _end(leg, outcome)
            except Busy:
                return False
    return True


async def _open(runtime: Runtime, fence: Fence, standing: Standing) -> Leg:
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
        agent = Agent(name=run.agent)  # gone from the configuration: the first step says so
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
    """The agent service's outcome; its failures as outcomes, its cancellation and Parked as they are."""
    limit = leg.request.limits.seconds
    if seq := _damaged(await leg.journal()):
        # what has begun and what has ended can't be told any more, and nothing is done twice on a guess
        words = f"event {seq} of this run is damaged in the store, so it can't be taken up; what can be read of it is kept"
        return RunOutcome("failed", "error", Failure(words, StoreCorrupt.code))
    try:
        service: AgentService = AGENTS.make(leg.request.run.agent_type)
        with leg.deadline.limit(max(0.0, limit - worked(await leg.journal())) if limit else None) as timer:
            return await service.run(leg.request, leg)
        assert timer.cancelled_caught
        late = Failure(f"stopped after {limit:g} s", kind="deadline", fix="raise it with --timeout or limits.seconds")
        return RunOutcome("failed", "other", late)
    except FenceLost:
        raise
    except MootError as error:
        return RunOutcome("failed", "error", Failure.of(error))
    except BaseExceptionGroup as group:
        return _unwrap(group, _about(leg))
    except Exception as error:
        log.exception("run %s failed", leg.fence.run, extra=_about(leg))
        return RunOutcome("failed", "error", Failure(f"internal error: {type(error).__name__}: {error}", "internal"))


def _damaged(events: Sequence[Event]) -> int:
    """The seq of the first event that the store could not read; 0 = all is well."""
    damaged = (event.seq for event in events if event.kind == "meta" and isinstance(event.body, dict) and event.body.get("damaged") is True)
    return next(damaged, 0)


def _about(leg: Leg) -> dict[str, str]:
    """What a log record about a run carries, for `moot logs --run`."""
    return {"run": leg.fence.run, "conversation": leg.request.run.conversation}


def _unwrap(group: BaseExceptionGroup[BaseException], about: dict[str, str]) -> RunOutcome:
    """A task group's failures as one outcome; what must pass through is raised alone."""
    for kind in (Parked, FenceLost):
        if (found := group.subgroup(kind)) is not None:
            raise _first(found)
    error = _first(group)
    if isinstance(error, MootError):
        return RunOutcome("failed", "error", Failure.of(error))
    if not isinstance(error, Exception):
        raise error
    log.error("run failed", exc_info=error, extra=about)
    return RunOutcome("failed", "error", Failure(f"internal error: {type(error).__name__}: {error}", "internal"))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return error  # pyright: ignore[reportUnknownVariableType]


async def _park(leg: Leg) -> None:
    """The run waits and its owner lets go; an answer claims it again."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING):
        await leg.append(Event("meta", body=PARKED), changes=(Park(),), sync=True, fold=True)
        point("run.parked")


async def _end(leg: Leg, outcome: RunOutcome) -> None:
    status = outcome.status
    assert status != "parked"
    await mend(leg)
    usage, cost, model = totals([*leg.index.starts.values(), *leg.index.ends.values()])
    chunks = _closing(leg, outcome)
    folder = Folder(leg.folder.parts(), leg.folder.metadata())
    folder.feed_all(chunks)
    context_usage = folder.metadata().get("context_usage")
    message_status: MessageStatus = status
    fold = Fold(folder.parts(), folder.metadata(), message_status)
    end = End(status, outcome.error, usage, cost, context_usage if isinstance(context_usage, float) else None, model)
    body: JsonObject = {"status": status, "finish_reason": outcome.finish_reason}
    # not by leg.append: here Fold carries the message's last status
    event = Event("chunks", chunks, None, leg.fence.run, None, "end", "run", body, leg.runtime.now())
    conversation = leg.fence.conversation
    seqs = await leg.runtime.store.log.append(conversation, (event,), fence=leg.fence, changes=(fold, end), sync=True)
    leg.runtime.hub.publish(conversation, seqs, (event,))
    point("run.ended")


def _closing(leg: Leg, outcome: RunOutcome) -> tuple[Chunk, ...]:
    parts = leg.folder.parts()
    why = "cancelled before it ended" if outcome.status == "cancelled" else "not run: the run ended before it"
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
