"""The commands `moot stats` and `moot budgets`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Literal

from moot.agents.budgets import limit_text, reset_text, used_text
from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import plural, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.options import Out
from moot.config.tree import place_of
from moot.convert.serialization import describe_cost
from moot.engine import Engine
from moot.features.projects.repositories import place_conversations
from moot.runtime.approvals.budgets import budget_states
from moot.types.budget import BudgetState
from moot.types.canonical import Json, JsonObject
from moot.types.stats import Counts, UsageReport
from moot.types.token import LOCAL_USER

_DAY_MS = 24 * 3600 * 1000
_NANO = 1_000_000_000

By = Literal["day", "model", "agent", "project", "host", "tool", "error"]
_ALL: tuple[By, ...] = ("day", "model", "agent", "project", "host", "tool")
_WAIT = 30.0
"""Maximum seconds to count new answers before incomplete totals are printed."""


async def stats(
    *,
    by: Annotated[By | None, Parameter(metavar="GROUP", help="Grouping to show. By default, all groupings except error are shown.")] = None,
    days: Annotated[int | None, Parameter(help="Number of days to include, up to today.", minimum=1)] = None,
    conversation: Annotated[
        str | None, Parameter(name=("--conversation", "-c"), kind="conversation", help="Only this conversation.")
    ] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print token usage, cost, durations, tool calls and errors. Answers without a known price are counted separately."""
    now = int(time.time() * 1000)
    since = 0 if days is None else (now // _DAY_MS - days + 1) * _DAY_MS
    async with opened(output) as engine:
        within = (await find_conversation(engine, conversation, str(here()))).id if conversation else None
        await place_conversations(engine.store)
        found = await engine.store.stats.usage(since=since, conversation=within, wait=_WAIT)
    if json:
        output.json(_json(found, since))
        return
    _print(found, output, [by] if by else list(_ALL))
    if found.uncounted:
        output.say(f"moot: {found.uncounted:,} answers are not counted yet; run the command again", "yellow")


def _groups(found: UsageReport) -> dict[By, Mapping[str, Counts]]:
    return {"day": found.days, "model": found.models, "agent": found.agents, "project": found.projects, "host": found.hosts}


def _json(found: UsageReport, since: int) -> JsonObject:
    document: JsonObject = {"since": since, "conversations": found.conversations, "messages": found.messages, "total": _counts(found.total)}
    for name, groups in _groups(found).items():
        document[f"{name}s"] = list[Json]([{"name": key, **_counts(counts)} for key, counts in groups.items()])
    document["tools"] = list[Json]([{"name": tool, **asdict(one)} for tool, one in found.tools.items()])
    document["errors"] = list[Json]([{"name": kind, "runs": count} for kind, count in found.errors.items()])
    document["asides"] = list[Json]([{"name": purpose, **asdict(one)} for purpose, one in found.asides.items()])
    return {**document, "contexts": list[Json]([asdict(size) for size in found.contexts]), "uncounted": found.uncounted}


def _counts(counts: Counts) -> JsonObject:
    return {**asdict(counts), "first": counts.first, "rate": counts.rate, "context": counts.context}


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _print(found: UsageReport, output: Output, wanted: list[By]) -> None:
    if not found.total.runs:
        output.say("moot: no answers in this period", "dim")
        return
    groups = _groups(found)
    if not found.hosts:  # all conversations are of this machine
        groups = {**groups, "host": {"": found.total}}
        wanted = [name for name in wanted if name != "host" or len(wanted) == 1]
    for number, name in enumerate(wanted):
        if number and (name in groups or found.tools):
            output.data("\n")
        if name == "tool":
            _print_tools(found, output)
        elif name == "error":
            print_table(output, ["ERROR", "ANSWERS"], [[kind, f"{count:,}"] for kind, count in found.errors.items()])
        else:
            rows = [_row(key or ("local" if name == "host" else "unknown"), counts) for key, counts in groups[name].items()]
            last = name == ("project" if len(wanted) > 1 else name)
            print_table(output, [name.upper(), *_HEAD], [*rows, _row("total", found.total)] if last else rows)
    _print_auxiliary_calls(found, output)


_HEAD = ("ANSWERS", "FAILED", "STEPS", "INPUT", "CACHED", "OUTPUT", "FIRST TOKEN", "TOKENS/S", "COST")


def _row(name: str, counts: Counts) -> list[str]:
    tokens = [f"{number:,}" for number in (counts.input, counts.cache_read, counts.output)]
    first = "-" if counts.first is None else _duration(counts.first)
    rate = "-" if counts.rate is None else f"{counts.rate:,.0f}"
    return [name, f"{counts.runs:,}", f"{counts.failed:,}", f"{counts.steps:,}", *tokens, first, rate, _cost(counts)]


def _print_tools(found: UsageReport, output: Output) -> None:
    rows = [
        [tool, f"{one.calls:,}", f"{one.failed:,}", f"{one.denied:,}", _duration(round(one.ms / one.timed)) if one.timed else "-"]
        for tool, one in found.tools.items()
    ]
    if rows:
        print_table(output, ["TOOL", "CALLS", "FAILED", "DENIED", "TIME"], rows)


def _print_auxiliary_calls(found: UsageReport, output: Output) -> None:
    """Print model calls that belong to no answer, such as those for titles."""
    for purpose, one in found.asides.items():
        cost = describe_cost(one.cost, one.unpriced)
        output.say(f"also: {plural(one.calls, 'model call')} for {_PURPOSES.get(purpose, purpose)}, {cost}", "dim")


_PURPOSES = {"title": "titles", "compact": "summaries", "explain": "explanations", "picture": "pictures", "transcript": "transcripts"}


def _cost(counts: Counts) -> str:
    return describe_cost(counts.cost, counts.unpriced_runs) if counts.runs else "-"


async def budgets(*, json: AsJson = False, output: Out) -> None:
    """Print the configured budgets: how much is spent in the current period, and when it ends."""
    async with opened(output) as engine:
        found = await budget_states(engine.runtime, LOCAL_USER)
        places = [_place(engine, state) for state in found]
    if json:
        output.json({"data": [state.to_json() for state in found], "next_cursor": None})
        return
    if not found:
        output.say("moot: no budgets; add them to the section budgets of the configuration", "dim")
        return
    rows = [[state.budget.name, _covered(state), state.budget.per, *_spent(state)] for state in found]
    print_table(output, ["BUDGET", "FOR", "PER", "SPENT", "USED", "RESETS"], rows)
    for state, place in zip(found, places, strict=True):
        if state.problem:
            output.say(f"moot: {place}: budgets.{state.budget.name}: {state.problem}", "yellow")


def _place(engine: Engine, state: BudgetState) -> str:
    """Return the file and line of a budget with a problem."""
    if not state.problem or engine.configuration is None:
        return ""
    key = "user" if state.problem.startswith("User") else "project"
    place = place_of(engine.configuration.loaded.root, ("budgets", state.budget.name, key))
    return f"{place.source}:{place.line}:{place.column}"


def _covered(state: BudgetState) -> str:
    budget = state.budget
    named = (("user", budget.user), ("project", budget.project), ("agent", budget.agent))
    return ", ".join(f"{kind} {name}" for kind, name in named if name) or "all runs"


def _spent(state: BudgetState) -> list[str]:
    if state.problem or state.resets_at is None:
        return [f"limit {limit_text(state.budget)}", "-", "-"]
    return [used_text(state), f"{state.percent}%", reset_text(state)]
