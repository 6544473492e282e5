"""Search and statistics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Query

from moot.convert.hits import found_json
from moot.errors import UsageError
from moot.server.auth import Reader, Router
from moot.server.models import ListOut, Out
from moot.server.resources import Cursor, Limit, conversation_of
from moot.server.state import CurrentServer
from moot.store.search.query import OPERATORS
from moot.types.search import SemanticQuery
from moot.types.stats import Counts


class HitOut(Out):
    """A message that matches the query."""

    id: str
    """Id of the message."""
    conversation: str
    title: str
    role: str
    at: int
    snippet: str
    """Plain text; matches are enclosed in U+0002 and U+0003."""
    column: Literal["text", "tools", "reasoning"]
    """Source of the snippet: text, tool calls with their outputs, or reasoning."""
    seq: int
    """First seq of the message in its conversation's log; 0 = none."""


class IndexOut(Out):
    """Progress of the index."""

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


class CountsOut(Out):
    """Totals of answers, including imported ones. Money is in nano-dollars."""

    runs: int
    failed: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: int
    """Cost of the answers with a known price."""
    unpriced_runs: int
    steps: int
    ms: int
    """Working time of models, where known."""
    timed_output: int
    """Output tokens during that time."""
    first_ms: int
    """Sum of the times to the first output, where known."""
    firsts: int
    contexts: int
    """Sum of the input tokens of each answer's largest model call."""
    context: int
    """Mean of `contexts` per answer."""
    first: int | None
    """Mean time to the first output in ms."""
    rate: float | None
    """Output tokens per second of working time."""


class GroupOut(CountsOut):
    """Totals of one day, model, agent or project."""

    name: str


class ToolCountsOut(Out):
    """Totals of one tool."""

    name: str
    calls: int
    failed: int
    denied: int
    ms: int
    """Total time of the calls with a known time."""
    timed: int
    """Number of calls with a known time."""


class ErrorCountOut(Out):
    """Failed answers by kind of error."""

    name: str
    runs: int


class AsideCountsOut(Out):
    """Auxiliary model calls (titles, summaries, pictures); their cost is not included in other totals."""

    name: str
    calls: int
    input: int
    output: int
    cost: int
    unpriced: int


class ContextSizeOut(Out):
    """Context size of an answer."""

    at: int
    tokens: int


class StatsOut(Out):
    """Usage statistics."""

    conversations: int
    messages: int
    total: CountsOut
    days: list[GroupOut]
    """By UTC day, newest first."""
    models: list[GroupOut]
    """Most runs first."""
    agents: list[GroupOut]
    projects: list[GroupOut]
    tools: list[ToolCountsOut]
    """Most calls first."""
    errors: list[ErrorCountOut]
    asides: list[AsideCountsOut]
    contexts: list[ContextSizeOut]
    """Context sizes of the requested conversation, oldest first."""
    uncounted: int
    """Finished answers that are not counted yet."""


_OPERATORS = ", ".join(f"{name}:" for name in OPERATORS)

router = Router(prefix="/api/search", tags=["search"])


@router.get("")
async def search(
    caller: Reader,
    server: CurrentServer,
    q: Annotated[str, Query(max_length=1000, description=f'Words, "phrases", -not, and operators: {_OPERATORS}.')],
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only search this conversation.")] = None,
    sort: Annotated[Literal["newest", "best"], Query(description="Sort order.")] = "newest",
    mode: Annotated[
        Literal["words", "meaning"],
        Query(description="`meaning` ranks answers by similarity to `q`, on one page; `sort` and `cursor` are ignored."),
    ] = "words",
    wait: Annotated[float, Query(ge=0, le=2, description="Maximum seconds to spend indexing new messages first.")] = 2.0,
) -> FoundOut:
    """Search messages. New messages are indexed first, for up to `wait` seconds; `index` reports the progress.

    With mode `meaning`, `index` counts the answers read so far. Without the required extra or model weights the error explains how to
    install them.
    """
    if not q.strip():
        raise UsageError("the query is empty", fix="give one or more words")
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    if mode == "meaning":
        embedder = await server.engine.meanings.embedder()
        return FoundOut.model_validate(found_json(await caller.store.meaning.search(SemanticQuery(q, limit, within), embedder=embedder)))
    page = await caller.store.search.search(q, limit=limit, cursor=cursor, conversation=within, best=sort == "best", wait=wait)
    return FoundOut.model_validate(found_json(page))


stats_router = Router(prefix="/api/stats", tags=["stats"])


@stats_router.get("")
async def get_stats(
    caller: Reader,
    since: Annotated[int, Query(ge=0, description="Only answers started at or after this time, in ms.")] = 0,
    until: Annotated[int | None, Query(ge=0, description="Only answers started before this time, in ms.")] = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only answers of this conversation.")] = None,
) -> StatsOut:
    """Get token usage, cost and time of finished answers: total and by day, model, agent and project; tools, errors and auxiliary calls."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    stats = await caller.store.stats.usage(since=since, until=until, conversation=within)
    return StatsOut(
        conversations=stats.conversations,
        messages=stats.messages,
        total=CountsOut(**_counts(stats.total)),
        days=_groups(stats.days),
        models=_groups(stats.models),
        agents=_groups(stats.agents),
        projects=_groups(stats.projects),
        tools=[ToolCountsOut(name=tool, **asdict(one)) for tool, one in stats.tools.items()],
        errors=[ErrorCountOut(name=kind, runs=count) for kind, count in stats.errors.items()],
        asides=[AsideCountsOut(name=purpose, **asdict(one)) for purpose, one in stats.asides.items()],
        contexts=[ContextSizeOut(**asdict(size)) for size in stats.contexts],
        uncounted=stats.uncounted,
    )


def _groups(groups: dict[str, Counts]) -> list[GroupOut]:
    return [GroupOut(name=name, **_counts(counts)) for name, counts in groups.items()]


def _counts(counts: Counts) -> dict[str, Any]:
    return {**asdict(counts), "first": counts.first, "rate": counts.rate, "context": counts.context}
