"""Execution of one leg of a run, from its claim to its end. Whatever happens, the run ends up in exactly one recorded state."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

import anyio

from moot.agents.journal import HAND_OVER, kill_noted
from moot.convert.exchanges import close_open, settle_calls, totals
from moot.convert.fold import Folder, in_history
from moot.errors import Busy, FenceLost, MootError, Refused, StoreCorrupt
from moot.plugins import AGENTS
from moot.plugins.registry import attribute
from moot.runtime.journal import LEG, PARKED, Journal, worked
from moot.runtime.leg import Leg, check_budgets, close_checkpoint, keep_folders, mend, successor
from moot.runtime.runtime import Runtime, first_error, log_fields
from moot.runtime.setup import confined, find_agent, has_folder, in_project, load_project_agents, options_of, servers_to_hand_out
from moot.types import chunk
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.context import AgentService, Parked
from moot.types.conversation import Conversation
from moot.types.crash import point
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.findings import FINDINGS, findings_in
from moot.types.hooks import HOOKS, PROMPT, RunHooks
from moot.types.message import is_tool, text_of
from moot.types.run import TERMINAL, Run, RunOutcome, RunRequest
from moot.types.store import End, Fence, Fold, HandOver, Park, RunSnapshot, Store
from moot.types.token import LOCAL_USER
from moot.types.workflow import WORKFLOW


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

SETTLING = 20.0
"""Time limit in seconds for determining which files a run has changed. Undo asks about the remaining files."""

NO_HOOKS = RunHooks()

WORKTREES = "/.worktrees/"
"""Part of the path of every folder in one of moot's worktrees. Few runs use one, so `guard.worktrees` is loaded by path."""

_WORKFLOW_RUNNER = "moot.agents.workflow:WorkflowRunner"
"""Loaded by path, because few runs carry out a workflow."""

NO_FOLDER = "This agent is a program on the server's machine, and you have no folder there."

log = logging.getLogger("moot.runtime")


async def drive(runtime: Runtime, fence: Fence, snapshot: RunSnapshot, scope: anyio.CancelScope) -> Run:
    """Run one leg of a claimed run and return the run in its new state. Cancelling `scope` ends the run as cancelled.

    After a cancellation from outside or the loss of the fence, the run can be resumed.
    """
    if runtime.telemetry is None:
        return await _drive(runtime, fence, snapshot, scope)
    async with runtime.telemetry.leg(snapshot) as observed:
        run = observed.run = await _drive(runtime, fence, snapshot, scope)
    return run


async def _drive(runtime: Runtime, fence: Fence, snapshot: RunSnapshot, scope: anyio.CancelScope) -> Run:
    leg = await _open(runtime, fence, snapshot)
    ended = False
    try:
        with scope:
            while not ended:
                outcome = await _within(leg)
                if outcome is not None and outcome.status == "parked":
                    raise Parked
                ended = outcome is not None and await _ended(leg, outcome)
                if not ended:
                    with anyio.CancelScope(shield=True):
                        leg = await _open(runtime, fence, await runtime.store.records.snapshot(fence.run))
        if not ended:
            ended = await _ended(leg, RunOutcome("cancelled", finish_reason="other"))
    except Parked as parked:  # an answer or the clock resumes it later
        parking = leg.parking if parked.wake_at is None else Park("time", parked.wake_at)
        with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLING):
            await close_checkpoint(leg)
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING):
            await leg.append(Event("meta", body=PARKED), changes=(parking,), sync=True, fold=True)
            point("run.parked")
    except FenceLost:
        pass  # another owner has claimed the run and records its state
    if ended:
        await _leave_worktree(leg)
    return await runtime.store.records.run(fence.run)


async def _leave_worktree(leg: Leg) -> None:
    """Remove the run's own worktree if nothing is left in it, unless a sub-agent is still working there."""
    conversation, records = leg.request.conversation, leg.runtime.store.records
    if conversation.owner != LOCAL_USER or WORKTREES not in conversation.directory:
        return
    if all(run.status in TERMINAL for run in await records.children(conversation=conversation.id)):
        await attribute("moot.guard.worktrees:settle")(conversation.directory)


async def _restore_worktree(conversation: Conversation) -> None:
    """Create the conversation's own worktree again if it was removed after an earlier run."""
    if conversation.owner == LOCAL_USER and WORKTREES in conversation.directory:
        try:
            await attribute("moot.guard.worktrees:restore")(conversation.directory)
        except MootError as error:
            log.warning("the worktree %s can't be created again: %s", conversation.directory, error.message)


async def _ended(leg: Leg, outcome: RunOutcome) -> bool:
    """Record the run's end. Return False if a message arrived just before the end, so that the run must continue."""
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(CLOSING):
            await kill_leftovers(leg.index)
        with anyio.move_on_after(SETTLING):
            await close_checkpoint(leg)
        with anyio.move_on_after(CLOSING):
            try:
                await _end(leg, outcome)
            except Busy:
                return False
    return True


async def _open(runtime: Runtime, fence: Fence, snapshot: RunSnapshot) -> Leg:
    run, events = snapshot.run, snapshot.events
    options = options_of(run.settings, snapshot.conversation)
    conversation = confined(snapshot.conversation, snapshot.project)
    await _restore_worktree(conversation)
    try:
        await load_project_agents(runtime.settings, conversation.directory)
        agent = in_project(find_agent(runtime.settings, run.agent, options, conversation.directory), snapshot.project)
    except MootError:
        agent = Agent(name=run.agent)  # the agent was removed from the configuration; the first step reports this
    request = RunRequest(run, conversation, agent, options, await servers_to_hand_out(runtime.settings, agent))
    leg = Leg(runtime, request, fence, snapshot.message, events, snapshot.inbox, snapshot.project, has_background=snapshot.has_background)
    if "run" not in leg.index.starts and not _damaged(events):
        facts: JsonObject = {"agent": run.agent, "agent_type": run.agent_type}
        await leg.append(Event("chunks", (chunk.start(fence.message, facts),), phase="start", key="run"))
        point("run.started")
    elif events:
        await leg.append(Event("meta", body=LEG))
        point("leg.begun")
    return leg


async def _within(leg: Leg) -> RunOutcome | None:
    """Return the agent service's outcome, or None if a hook or another agent continues the run.

    Errors become failed outcomes; Parked and cancellation propagate.
    """
    if seq := _damaged(await leg.journal()):
        # it is unknown which calls were started or completed, and no call must run twice
        message = f"Event {seq} of this run is damaged in the store, so the run can't be resumed. Its readable events are kept."
        return RunOutcome("failed", "error", Failure(message, StoreCorrupt.code))
    if leg.request.run.agent_type != "moot" and not has_folder(leg.request.conversation):
        return RunOutcome("failed", "error", Failure(NO_FOLDER, Refused.code, fix="Ask the administrator for a project with a folder."))
    try:
        with leg.deadline.limit(leg.limits.seconds, worked(await leg.journal())) as timer:
            return await _worked(leg)
        assert timer.cancelled_caught
        late = Failure(
            f"The run stopped after {leg.deadline.seconds:g} s.", kind="deadline", fix="Raise the limit with --timeout or limits.seconds."
        )
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


async def _worked(leg: Leg) -> RunOutcome | None:
    """Run the agent service, with the hooks before and after it."""
    settings, run = leg.runtime.settings, leg.request.run
    service: AgentService = attribute(_WORKFLOW_RUNNER)() if WORKFLOW in run.settings else AGENTS.make(run.agent_type)
    hooked = settings.hooks or leg.request.agent.hooks != NO_HOOKS or HOOKS in run.settings or PROMPT in leg.index.starts
    if hooked and (ended := await attribute("moot.runtime.hooks.calls:before_run")(leg)) is not None:
        return ended
    if run.agent_type != "moot":  # its own tools change files without asking moot
        await check_budgets(leg)
        await keep_folders(leg)
    outcome = await service.run(leg.request, leg)
    if outcome.error is not None and _is_refused(outcome.error) and (agent := await successor(leg)) is not None:
        await _hand_over(leg, agent, outcome.error)
        return None
    if run.settings.get(FINDINGS) is True and outcome.status == "finished":
        await _add_findings(leg)
    return await attribute("moot.runtime.hooks.calls:after_run")(leg, outcome) if hooked else outcome


async def _add_findings(leg: Leg) -> None:
    """Add the findings in a review's answer to the answer, as data."""
    parts = in_history(leg.folder.parts())
    last = max((at for at, part in enumerate(parts, 1) if is_tool(part)), default=0)
    found: list[Json] = [{"path": one.path, "line": one.line, "text": one.text} for one in findings_in(text_of(parts[last:]))]
    if found:
        await leg.append(Event("chunks", (chunk.data(FINDINGS, {"findings": found}, id=FINDINGS),)), fold=True)


_USED_UP = re.compile(r"usage limit|limit reached|hit your limit|quota|out of credits|credit balance", re.IGNORECASE)
"""Messages with which outside agents report that an account is used up. They don't report it in any other way."""


def _is_refused(failure: Failure) -> bool:
    """Return whether a provider refuses further calls, for a time or until the account is topped up."""
    return failure.kind == "rate_limit" or (failure.kind == "failed" and _USED_UP.search(failure.message) is not None)


async def _hand_over(leg: Leg, agent: Agent, failure: Failure) -> None:
    """Let another agent continue the run in the same answer. It starts with the next leg."""
    run, starts = leg.request.run, leg.index.starts
    steps = max((int(key.removeprefix("llm:").partition(".")[0]) for key in starts if key.startswith("llm:")), default=0)
    number = sum(key.startswith(HAND_OVER) for key in leg.index.ends)
    parts = leg.folder.parts()
    text = f"{failure.message.rstrip('.')}. The agent {agent.name} continues."
    chunks: tuple[Chunk, ...] = (
        *close_open(parts),
        *settle_calls(parts, "Not executed because another agent continues."),
        chunk.data("note", {"text": text}, id=f"{HAND_OVER}{number}"),
        *((chunk.FINISH_STEP,) if leg.step_open else ()),
        chunk.message_metadata({"agent": agent.name, "agent_type": agent.agent_type}),
    )
    body: JsonObject = {"from": run.agent, "to": agent.name, "steps": steps}
    event = Event("chunks", chunks, phase="end", key=f"{HAND_OVER}{number}", body=body)
    await leg.append(event, changes=(HandOver(agent.name, agent.agent_type),), sync=True, fold=True)
    point("run.handed")
    log.info("the agent %s continues for %s: %s", agent.name, run.agent, failure.message, extra=log_fields(run))


def _damaged(events: Sequence[Event]) -> int:
    """Return the seq of the first damaged event, or 0 if there is none."""
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
    if status != "finished":
        leg.runtime.hub.touch(conversation)  # messages that the run did not read were stored too
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
        reason = outcome.finish_reason
        if reason not in chunk.FINISH_REASONS:
            chunks.append(chunk.message_metadata({"finish_reason": reason}))
            reason = "other"
        chunks.append(chunk.finish(reason, outcome.metadata or None))
    return tuple(chunks)
