"""Routes for search and usage statistics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BeforeValidator

from moot.convert.hits import found_json
from moot.errors import UsageError
from moot.features.projects.repositories import place_conversations
from moot.runtime.approvals.budgets import budget_states
from moot.server.auth import Reader, Router
from moot.server.models import ListOut, Out
from moot.server.resources import LATEST, Cursor, Limit, conversation_of
from moot.server.state import CurrentServer
from moot.store.search.query import CONTEXT, OPERATORS
from moot.types.budget import Budget, Spending
from moot.types.search import Hit, SemanticQuery
from moot.types.stats import AuxiliaryCounts, ContextSize, Counts, ToolCounts, UsageReport


class HitOut(Out, of=Hit, fields="id conversation title role at snippet column seq context"):
    """A message that matches the query."""

    id: str
    """Id of the message."""


class IndexOut(Out):
    """Progress of indexing: number of indexed messages, and of all messages."""

    done: int
    total: int


class FoundOut(ListOut[HitOut]):
    """Results of a search."""

    index: IndexOut
    ranked: int | None
    """Only this many of the newest matches were ranked; null = all, or no ranking."""
    cut: bool
    """True if a partial word matches so many words that only the most common ones were searched."""
    loose: bool
    """True if no message contains all words: the results contain some of them, best first, on one page."""
    stopped_at: int | None
    """Time in ms of the oldest message compared with a regular expression, if the time limit was reached; `next_cursor` continues."""


class CountsOut(
    Out,
    of=Counts,
    fields="""runs failed input output cache_read cache_write reasoning cost unpriced_runs steps ms timed_output first_ms firsts contexts
    context first rate""",
):
    """Totals of answers, including imported ones. Money is in nano-dollars."""

    context: int
    """Mean context size of the answers, in tokens."""
    first: int | None
    """Mean time to the first output in ms."""
    rate: float | None
    """Output tokens per second of working time."""


class GroupOut(CountsOut):
    """Totals of one day, model, agent or project."""

    name: str


class ToolCountsOut(Out, of=ToolCounts, fields="name calls failed denied ms timed"):
    """Totals of one tool."""

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
    fields="conversations messages total days models agents projects hosts tools errors asides contexts uncounted",
):
    """Usage statistics."""

    total: CountsOut
    days: Groups
    """By UTC day, newest first."""
    models: Groups
    """Most runs first."""
    agents: Groups
    projects: Groups
    hosts: Groups
    """By machine that the conversations were imported from; an empty name means this machine. Empty without other machines."""
    tools: Annotated[list[ToolCountsOut], BeforeValidator(_named)]
    """Most calls first."""
    errors: Annotated[list[ErrorCountOut], BeforeValidator(_errors)]
    asides: Annotated[list[AsideCountsOut], BeforeValidator(_named)]
    contexts: list[ContextSizeOut]
    """Context sizes of the requested conversation, oldest first."""


class SpendingOut(Out, of=Spending, fields="cost tokens unpriced"):
    """The spending of some runs."""


class BudgetOut(Out, of=Budget, fields="name per cost tokens user project agent tz ends_run"):
    """A budget. Times are in milliseconds, money in nano-dollars."""

    spent: SpendingOut | None
    """Spending in the current period; null for budgets per run and budgets with a problem."""
    share: float | None
    """The used part; 1 = used up. Null if `spent` is null."""
    since: int
    """Start of the current period; 0 for budgets per run."""
    resets_at: int | None
    """End of the current period; null for budgets per run."""
    problem: str
    """Why the budget covers no runs; empty if there is no problem."""


_OPERATORS = ", ".join(f"{name}:" for name in OPERATORS)

router = Router(prefix="/api/search", tags=["search"])


@router.get("")
async def search(
    caller: Reader,
    server: CurrentServer,
    q: Annotated[str, Query(max_length=1000, description=f'Words, "phrases", -not, /regex/, and operators: {_OPERATORS}.')],
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only search this conversation.")] = None,
    sort: Annotated[Literal["newest", "best"], Query(description="`newest` or `best` match first.")] = "newest",
    mode: Annotated[
        Literal["words", "meaning"],
        Query(description="`meaning` ranks answers by similarity to `q`, on one page; `sort` and `cursor` are ignored."),
    ] = "words",
    context: Annotated[int, Query(ge=0, le=CONTEXT, description="Number of lines before and after the match to return in `context`.")] = 0,
    wait: Annotated[float, Query(ge=0, le=2, description="Maximum seconds to spend indexing new messages first.")] = 2.0,
) -> FoundOut:
    """Search messages. New messages are indexed first, for up to `wait` seconds; `index` reports the progress.

    With mode `meaning`, `index` counts the answers that can be found so far. If the optional package or the model weights for it are not
    installed, the error explains how to install them.
    """
    if not q.strip():
        raise UsageError("The query is empty.", fix="Give one or more words.")
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    if mode == "meaning":
        embedder = await server.engine.meanings.embedder()
        return FoundOut.model_validate(found_json(await caller.store.meaning.search(SemanticQuery(q, limit, within), embedder=embedder)))
    page = await caller.store.search.search(
        q, limit=limit, cursor=cursor, conversation=within, best=sort == "best", context=context, wait=wait
    )
    return FoundOut.model_validate(found_json(page))


stats_router = Router(prefix="/api/stats", tags=["stats"])


@stats_router.get("")
async def get_stats(
    caller: Reader,
    since: Annotated[int, Query(ge=0, le=LATEST, description="Only answers started at or after this time, in ms.")] = 0,
    until: Annotated[int | None, Query(ge=0, le=LATEST, description="Only answers started before this time, in ms.")] = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only answers of this conversation.")] = None,
) -> StatsOut:
    """Get token usage, cost and time of finished answers, in total and by day, model, agent, project and host. Tool calls,
    errors and auxiliary model calls are counted too.
    """
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    await place_conversations(caller.store)
    return StatsOut.of(await caller.store.stats.usage(since=since, until=until, conversation=within))


@stats_router.get("/budgets")
async def get_budgets(caller: Reader, server: CurrentServer) -> ListOut[BudgetOut]:
    """List the caller's budgets, with what is spent of them in the current period."""
    found = await budget_states(server.engine.runtime, caller.owner_id)
    return ListOut[BudgetOut](data=[BudgetOut.model_validate(state.to_json()) for state in found])
