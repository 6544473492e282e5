"""Routes for usage statistics and recent file changes."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator

from moot.config.schedules import zone_of
from moot.features.projects.git import place_conversations
from moot.runtime.approvals.budgets import budget_states
from moot.server.auth import Reader, Router
from moot.server.models import ListOut, Out
from moot.server.resources import LATEST, Limit, conversation_of
from moot.server.state import CurrentServer
from moot.types.limits import Budget, Spending
from moot.types.stats import (
    GROUPINGS,
    AuxiliaryCounts,
    ContextSize,
    Counts,
    FileEdit,
    Grouping,
    ToolCounts,
    UsageReport,
)
from moot.types.windows import UsageWindow


class CountsOut(
    Out,
    of=Counts,
    fields="""runs failed input output cache_read cache_write reasoning cost unpriced_runs steps ms timed_output first_ms firsts contexts
    context first rate""",
):
    """Totals for answers, including imported ones. Money is in nano-dollars."""

    context: int
    """Mean context size of the answers, in tokens."""
    first: int | None
    """Mean time to the first output in ms."""
    rate: float | None
    """Output tokens per second of working time."""


class GroupOut(CountsOut):
    """Totals for one day, model, agent or project."""

    name: str


class ToolCountsOut(Out, of=ToolCounts, fields="name calls failed denied ms timed"):
    """Totals for one tool."""

    name: str


class ErrorCountOut(Out):
    """Number of answers that failed with one kind of error."""

    name: str
    runs: int


class AsideCountsOut(Out, of=AuxiliaryCounts, fields="name calls input output cost unpriced"):
    """Auxiliary model calls (titles, summaries, pictures); their cost is not included in other totals."""

    name: str


class ContextSizeOut(Out, of=ContextSize, fields="at tokens"):
    """Context size of one answer."""


def _groups(groups: dict[str, Counts]) -> list[GroupOut]:
    return [GroupOut.of(counts, name=name) for name, counts in groups.items()]


def _named(counts: dict[str, ToolCounts | AuxiliaryCounts]) -> list[dict[str, Any]]:
    return [{"name": name, **asdict(each)} for name, each in counts.items()]


def _errors(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": kind, "runs": runs} for kind, runs in counts.items()]


Groups = Annotated[list[GroupOut], BeforeValidator(_groups)]


class StatsOut(
    Out,
    of=UsageReport,
    fields="""conversations messages total days models agents projects hosts tools errors asides contexts uncounted hours weeks months
    hours_of_day""",
):
    """Usage statistics."""

    total: CountsOut
    days: Groups
    """By day in the time zone, newest first."""
    models: Groups
    """Most runs first."""
    agents: Groups
    """A sub-agent's usage is counted for the agent that started it, unless `sub_agents` is set."""
    projects: Groups
    hosts: Groups
    """By machine that the conversations were imported from; an empty name means this machine. No entries if there are no other machines."""
    tools: Annotated[list[ToolCountsOut], BeforeValidator(_named)]
    """Most calls first."""
    errors: Annotated[list[ErrorCountOut], BeforeValidator(_errors)]
    asides: Annotated[list[AsideCountsOut], BeforeValidator(_named)]
    contexts: list[ContextSizeOut]
    """Context sizes of the requested conversation, oldest first."""
    hours: Groups
    """By hour, such as `2026-12-24 18:00`, newest first; empty unless requested, like `weeks` and `months`."""
    weeks: Groups
    """By week, named by its Monday."""
    months: Groups
    hours_of_day: Groups
    """By hour of the day, from `00` to `23`, without hours that have no answers."""


class ActivityOut(Out):
    """Totals for one day. Money is in nano-dollars."""

    day: str
    """Such as `2026-12-24`."""
    runs: int
    """Number of answers."""
    cost: int
    """Known cost of the answers."""
    unpriced: int
    """Number of answers whose cost is completely or partly unknown."""
    input: int
    output: int


class WindowOut(
    Out,
    of=UsageWindow,
    fields="agent minutes since until resets used at runs input output cache_read cache_write cost unpriced first last",
):
    """The usage of one agent in a period that is limited by its subscription. Times are in ms, money in nano-dollars."""

    tokens_per_minute: float | None
    """Mean between the first and the last call, as for `cost_per_hour`; null if there is only one call."""
    cost_per_hour: float | None
    projected_cost: int | None
    """Projected cost at the end of the period, at the current rate; null if unknown."""
    projected_tokens: int | None


class WindowsOut(Out):
    """Usage in the periods that are limited by subscriptions."""

    now: int
    data: list[WindowOut]
    """The current periods: the 5-hour block and the last seven days of Claude Code, and the limits that Codex recorded."""
    blocks: list[WindowOut]
    """The 5-hour blocks of Claude Code in recent days, newest first."""


class EditOut(Out, of=FileEdit, fields="path conversation message at agent tool added removed"):
    """A change to a file by a tool call."""


class EditsOut(Out):
    """A page of file changes, newest first."""

    data: list[EditOut]
    next: str | None
    """Send as `before` to get the next page; null on the last page."""


class SpendingOut(Out, of=Spending, fields="cost tokens unpriced"):
    """The total spending of several runs."""


class BudgetOut(Out, of=Budget, fields="name per cost tokens user project agent tz ends_run"):
    """A budget. Times are in milliseconds, money in nano-dollars."""

    spent: SpendingOut | None
    """Spending in the current period; null for budgets per run and budgets with a problem."""
    share: float | None
    """The used share of the budget; 1 = used up. Null if `spent` is null."""
    since: int
    """Start of the current period; 0 for budgets per run."""
    resets_at: int | None
    """End of the current period; null for budgets per run."""
    problem: str
    """Why the budget covers no runs; empty if there is no problem."""


router = Router(prefix="/api/stats", tags=["stats"])


edits_router = Router(prefix="/api/edits", tags=["stats"])

From = Annotated[int, Query(alias="from", ge=0, le=LATEST, description="Only answers started at or after this time, in ms.")]
To = Annotated[int | None, Query(ge=0, le=LATEST, description="Only answers started before this time, in ms.")]
Zone = Annotated[str, Query(max_length=100, description="Time zone for hours, days, weeks and months, such as `Europe/Berlin`.")]


@router.get("")
async def get_stats(
    caller: Reader,
    since: Annotated[int, Query(ge=0, le=LATEST, description="Only answers started at or after this time, in ms.")] = 0,
    until: Annotated[int | None, Query(ge=0, le=LATEST, description="Only answers started before this time, in ms.")] = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only answers of this conversation and its sub-agents.")] = None,
    by: Annotated[
        list[Grouping] | None, Query(max_length=10, description="Groupings to return; by default all but hours, weeks and months.")
    ] = None,
    tz: Zone = "UTC",
    sub_agents: Annotated[
        bool, Query(description="Count sub-agents separately, and leave them out of the conversation that started them.")
    ] = False,
    first: Annotated[int | None, Query(alias="from", ge=0, le=LATEST, description="The same as `since`.")] = None,
    to: Annotated[int | None, Query(ge=0, le=LATEST, description="The same as `until`.")] = None,
) -> StatsOut:
    """Get token usage, cost and time of finished answers, in total and by time, model, agent, project and host. Tool calls,
    errors and auxiliary model calls are counted too.
    """
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    await place_conversations(caller.store)
    found = await caller.store.stats.usage(
        since=since if first is None else first,
        until=until if to is None else to,
        conversation=within,
        by=by or GROUPINGS,
        zone=zone_of(tz),
        apart=sub_agents,
    )
    return StatsOut.of(found)


@router.get("/activity")
async def get_activity(caller: Reader, first: From = 0, to: To = None, tz: Zone = "UTC") -> ListOut[ActivityOut]:
    """Get the totals of each day with answers, oldest first."""
    await place_conversations(caller.store)
    found = await caller.store.stats.usage(since=first, until=to, by=("day",), zone=zone_of(tz))
    days = reversed(found.days.items())
    return ListOut[ActivityOut](data=[ActivityOut.of(counts, day=day, unpriced=counts.unpriced_runs) for day, counts in days])


@router.get("/windows")
async def get_windows(caller: Reader) -> WindowsOut:
    """Get the usage in the current periods of subscriptions, and the 5-hour blocks of recent days."""
    now = int(time.time() * 1000)
    await place_conversations(caller.store)
    found = await caller.store.stats.windows(now)
    return WindowsOut(now=now, data=[_window(one, now) for one in found.current], blocks=[_window(one, now) for one in found.blocks])


def _window(window: UsageWindow, now: int) -> WindowOut:
    return WindowOut.of(window, projected_cost=window.projected_cost(now), projected_tokens=window.projected_tokens(now))


@router.get("/budgets")
async def get_budgets(caller: Reader, server: CurrentServer) -> ListOut[BudgetOut]:
    """List the caller's budgets, with the amounts spent in their current periods."""
    found = await budget_states(server.engine.runtime, caller.owner_id)
    return ListOut[BudgetOut](data=[BudgetOut.model_validate(state.to_json()) for state in found])


@edits_router.get("")
async def list_edits(
    caller: Reader,
    limit: Limit = 50,
    before: Annotated[str | None, Query(max_length=100, description="`next` of the previous page.")] = None,
) -> EditsOut:
    """List file changes by tool calls, newest first, each with its answer. Changes by shell commands are not included."""
    await place_conversations(caller.store)  # or a request at the same moment does it, and their answers aren't counted until it has
    found, following = await caller.store.stats.edits(limit=limit, before=before)
    return EditsOut(data=[EditOut.of(edit) for edit in found], next=following)
