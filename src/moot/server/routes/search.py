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
from moot.server.state import Here
from moot.store.search.query import OPERATORS
from moot.types.search import SemanticQuery
from moot.types.stats import Counts


class HitOut(Out):
    """A message in which the words occur."""

    id: str
    """Of the message."""
    conversation: str
    title: str
    role: str
    at: int
    snippet: str
    """Plain text; matches stand between U+0002 and U+0003."""
    column: Literal["text", "tools", "reasoning"]
    """Where the snippet is from: what was said, tool calls with their outputs, or reasoning."""
    seq: int
    """First seq of the message in its conversation's log; 0 = none."""


class IndexOut(Out):
    """How far the index goes."""

    done: int
    total: int


class FoundOut(ListOut[HitOut]):
    """What was found so far."""

    index: IndexOut
    ranked: int | None
    """Only so many of the matches were ranked, the newest ones; null = all, or none were."""
    cut: bool
    """A piece of a word occurs in so many words that only the most common of them were looked for."""
    loose: bool
    """Nothing has all of the words: these have some of them, the best first, on one page."""


class CountsOut(Out):
    """What answers took: runs, and what was brought in. Money is nano-dollars."""

    runs: int
    failed: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: int
    """Of the answers whose price is known."""
    unpriced_runs: int
    steps: int
    ms: int
    """That models worked, where it is known."""
    timed_output: int
    """Output tokens of that time."""
    first_ms: int
    """Sum of the times to the first that was shown, where it is known."""
    firsts: int
    contexts: int
    """Sum of the input tokens of each answer's largest model call."""
    context: int
    """Their mean."""
    first: int | None
    """Mean ms to the first that was shown."""
    rate: float | None
    """Output tokens a second while models worked."""


class GroupOut(CountsOut):
    """The same of one day, model, agent or project."""

    name: str


class ToolCountsOut(Out):
    """What calls of one tool came to."""

    name: str
    calls: int
    failed: int
    denied: int
    ms: int
    """Of the calls whose time is known."""
    timed: int
    """How many those are."""


class ErrorCountOut(Out):
    """Answers that failed for one kind of reason."""

    name: str
    runs: int


class AsideCountsOut(Out):
    """Model calls that belong to no answer (titles, summaries, pictures); their cost is in no other sum."""

    name: str
    calls: int
    input: int
    output: int
    cost: int
    unpriced: int


class ContextSizeOut(Out):
    """How large the context was for an answer."""

    at: int
    tokens: int


class StatsOut(Out):
    """What was stored and what it took."""

    conversations: int
    messages: int
    total: CountsOut
    days: list[GroupOut]
    """UTC, newest first."""
    models: list[GroupOut]
    """The most runs first."""
    agents: list[GroupOut]
    projects: list[GroupOut]
    tools: list[ToolCountsOut]
    """The most calls first."""
    errors: list[ErrorCountOut]
    asides: list[AsideCountsOut]
    contexts: list[ContextSizeOut]
    """Of the one conversation that was asked for, oldest first."""
    uncounted: int
    """Answers that are over and in no sum yet."""


_OPERATORS = ", ".join(f"{name}:" for name in OPERATORS)

router = Router(prefix="/api/search", tags=["search"])


@router.get("")
async def search(
    caller: Reader,
    here: Here,
    q: Annotated[str, Query(max_length=1000, description=f'Words, "phrases", -not, and operators: {_OPERATORS}.')],
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only in this one.")] = None,
    sort: Annotated[Literal["newest", "best"], Query(description="What comes first.")] = "newest",
    mode: Annotated[
        Literal["words", "meaning"],
        Query(description="`meaning`: answers about what `q` is about, the nearest first, on one page; `sort` and `cursor` don't matter."),
    ] = "words",
    wait: Annotated[float, Query(ge=0, le=2, description="Seconds to index what is missing before the answer.")] = 2.0,
) -> FoundOut:
    """Finds messages. What is missing in the index is indexed first, for up to `wait` seconds; `index` says how far it goes.

    By meaning, `index` counts the answers that were read. Without the extra or the weights that is an error which says how to get them.
    """
    if not q.strip():
        raise UsageError("there is nothing to search for: the query is empty", fix="give a word or several")
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    if mode == "meaning":
        embedder = await here.engine.meanings.embedder()
        return FoundOut.model_validate(found_json(await caller.store.meaning.search(SemanticQuery(q, limit, within), embedder=embedder)))
    page = await caller.store.search.search(q, limit=limit, cursor=cursor, conversation=within, best=sort == "best", wait=wait)
    return FoundOut.model_validate(found_json(page))


stats_router = Router(prefix="/api/stats", tags=["stats"])


@stats_router.get("")
async def get_stats(
    caller: Reader,
    since: Annotated[int, Query(ge=0, description="ms: only answers that began then or later.")] = 0,
    until: Annotated[int | None, Query(ge=0, description="ms: only answers that began before.")] = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only of this one.")] = None,
) -> StatsOut:
    """Counts answers that are over: tokens, money and time, in all, by day, model, agent and project; tools, errors, calls besides."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    stats = await caller.store.stats.usage(since=since, until=until, conversation=within)
    return StatsOut(
        conversations=stats.conversations,
        messages=stats.messages,
        total=CountsOut(**_told(stats.total)),
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
    return [GroupOut(name=name, **_told(counts)) for name, counts in groups.items()]


def _told(counts: Counts) -> dict[str, Any]:
    return {**asdict(counts), "first": counts.first, "rate": counts.rate, "context": counts.context}
