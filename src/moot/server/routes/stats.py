"""What runs took."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query

from moot.server.auth import Reader
from moot.server.finding import conversation_of
from moot.server.routing import Router
from moot.server.wire.finding import AsideCountsOut, ContextSizeOut, CountsOut, ErrorCountOut, GroupOut, StatsOut, ToolCountsOut
from moot.types.stats import Counts

router = Router(prefix="/api/stats", tags=["stats"])


@router.get("")
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
