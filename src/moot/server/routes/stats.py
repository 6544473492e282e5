"""What runs took."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Query

from moot.server.auth import Reader
from moot.server.finding import conversation_of
from moot.server.routing import Router
from moot.server.wire.finding import CountsOut, GroupOut, StatsOut
from moot.types.stats import Counts

router = Router(prefix="/api/stats", tags=["stats"])


@router.get("")
async def get_stats(
    caller: Reader,
    since: Annotated[int, Query(ge=0, description="ms: only runs that began then or later.")] = 0,
    until: Annotated[int | None, Query(ge=0, description="ms: only runs that began before.")] = None,
    conversation: Annotated[str | None, Query(max_length=200, description="Only of this one.")] = None,
) -> StatsOut:
    """Counts runs that have ended, tokens and money: in all, by day, by model, by agent and by project."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    stats = await caller.store.stats.usage(since=since, until=until, conversation=within)
    return StatsOut(
        conversations=stats.conversations,
        messages=stats.messages,
        total=CountsOut(**asdict(stats.total)),
        days=_groups(stats.days),
        models=_groups(stats.models),
        agents=_groups(stats.agents),
        projects=_groups(stats.projects),
    )


def _groups(groups: dict[str, Counts]) -> list[GroupOut]:
    return [GroupOut(name=name, **asdict(counts)) for name, counts in groups.items()]
