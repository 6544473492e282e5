"""`moot stats`: what runs took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Literal

from moot.cli.configured import here
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.parameters import Parameter
from moot.cli.references import find_conversation
from moot.cli.tables import print_table
from moot.types.canonical import Json, JsonObject
from moot.types.stats import Counts, Usages

_DAY_MS = 24 * 3600 * 1000
_NANO = 1_000_000_000

By = Literal["day", "model", "agent", "project"]


async def stats(
    *,
    by: Annotated[By | None, Parameter(name="--by", help="Only sums by this; all four otherwise.")] = None,
    days: Annotated[int | None, Parameter(name="--days", help="Only runs of so many days, today included.", least=1)] = None,
    conversation: Annotated[str | None, Parameter(name=("--conversation", "-c"), kind="conversation", help="Only of this one.")] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Sums over runs that have ended; of what has no known price it says how much that is."""
    now = int(time.time() * 1000)
    since = 0 if days is None else (now // _DAY_MS - days + 1) * _DAY_MS
    async with opened(output) as engine:
        within = (await find_conversation(engine, conversation, str(here()))).id if conversation else None
        found = await engine.store.stats.usage(since=since, conversation=within)
    if json:
        output.json(_json(found, since))
        return
    _print(found, output, [by] if by else ["day", "model", "agent", "project"])


def _groups(found: Usages) -> dict[By, Mapping[str, Counts]]:
    return {"day": found.days, "model": found.models, "agent": found.agents, "project": found.projects}


def _json(found: Usages, since: int) -> JsonObject:
    told: JsonObject = {"since": since, "conversations": found.conversations, "messages": found.messages, "total": asdict(found.total)}
    for name, groups in _groups(found).items():
        told[f"{name}s"] = list[Json]([{"name": key, **asdict(counts)} for key, counts in groups.items()])
    return told


def _print(found: Usages, output: Output, wanted: list[By]) -> None:
    if not found.total.runs:
        output.say("moot: no run has ended in that time", "dim")
        return
    groups = _groups(found)
    for number, name in enumerate(wanted):
        if number:
            output.data("\n")
        rows = [_row(key or "unknown", counts) for key, counts in groups[name].items()]
        if number == len(wanted) - 1:
            rows.append(_row("total", found.total))
        print_table(output, [name.upper(), "RUNS", "FAILED", "INPUT", "CACHED", "OUTPUT", "COST"], rows)


def _row(name: str, counts: Counts) -> list[str]:
    tokens = [f"{number:,}" for number in (counts.input, counts.cache_read, counts.output)]
    return [name, f"{counts.runs:,}", f"{counts.failed:,}", *tokens, _cost(counts)]


def _cost(counts: Counts) -> str:
    """What is known, and of how many runs it is not."""
    unknown = f"{counts.unpriced_runs:,} of unknown price" if counts.unpriced_runs else ""
    if counts.unpriced_runs == counts.runs:
        return unknown or "-"
    known = f"${counts.cost / _NANO:,.4f}"
    return f"{known} + {unknown}" if unknown else known
