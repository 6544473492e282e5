"""The tables of `moot stats`, and the command `moot budgets`."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta, tzinfo

from moot.agents.budgets import limit_text, reset_text, used_text
from moot.cli.arguments.signatures import AsJson
from moot.cli.commands.history.stats import By, length_of, span
from moot.cli.console.format import plural, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.context.output import Out
from moot.config.schedules import local_zone, zone_of
from moot.config.tree import place_of
from moot.convert.serialization import describe_cost
from moot.engine import Engine
from moot.features.projects.git import place_conversations
from moot.runtime.approvals.budgets import budget_states
from moot.types.canonical import Json, JsonObject
from moot.types.limits import BudgetState
from moot.types.stats import GROUPINGS, Counts, Grouping, UsageReport
from moot.types.token import LOCAL_USER
from moot.types.windows import UsageWindow, UsageWindows

_ALL: tuple[By, ...] = ("day", "model", "agent", "project", "host", "tool", "window")
_WAIT = 30.0
"""Maximum number of seconds to spend counting new answers. After that, incomplete totals are printed."""
_RECENT = 31
"""Number of days to show if no period is given, so that the table fits on a screen."""


async def show_usage(
    *, by: By | None, days: int | None, conversation: str | None, sub_agents: bool, tz: str | None, json: bool, output: Output
) -> None:
    """Print usage statistics. Raise UsageError for an unknown time zone, and NotFound for an unknown conversation."""
    zone = zone_of(tz or local_zone())
    now = int(time.time() * 1000)
    since = 0 if days is None else _midnight(now, days, zone)
    wanted: tuple[Grouping, ...] = GROUPINGS if by in (None, "window") else (by,)
    async with opened(output) as engine:
        within = (await find_conversation(engine, conversation, str(here()))).id if conversation else None
        await place_conversations(engine.store)
        groupings = (*dict.fromkeys((*GROUPINGS, *wanted)),) if json else wanted
        store = engine.store
        found = await store.stats.usage(since=since, conversation=within, by=groupings, zone=zone, apart=sub_agents, wait=_WAIT)
        has_windows = conversation is None and (json or by in (None, "window"))
        windows = await store.stats.windows(now, days=days or 8, wait=0) if has_windows else UsageWindows()
        limits = await budget_states(engine.runtime, LOCAL_USER) if conversation is None and by is None else []
    if json:
        output.json(_json(found, windows, since, now))
        return
    if by == "window":
        _print_windows(windows, output, zone, now, blocks=True)
    else:
        _print(found, output, [by] if by else list(_ALL))
        _print_windows(windows, output, zone, now, blocks=False)
        for state in limits:
            if not state.problem and state.resets_at is not None:
                output.say(f"budget {state.budget.name}: {used_text(state)}, {state.percent}%; resets {reset_text(state)}", "dim")
    if found.uncounted:
        output.say(f"moot: {found.uncounted:,} answers are not counted yet; run the command again", "yellow")


def _midnight(now: int, days: int, zone: tzinfo) -> int:
    today = datetime.fromtimestamp(now / 1000, zone).date()
    first = today - timedelta(days=min(days - 1, (today - date(1970, 1, 2)).days))
    return int(datetime(first.year, first.month, first.day, tzinfo=zone).timestamp() * 1000)


def _groups(found: UsageReport) -> dict[By, Mapping[str, Counts]]:
    return {
        "hour": found.hours,
        "day": found.days,
        "week": found.weeks,
        "month": found.months,
        "hour-of-day": found.hours_of_day,
        "model": found.models,
        "agent": found.agents,
        "project": found.projects,
    }


def _json(found: UsageReport, windows: UsageWindows, since: int, now: int) -> JsonObject:
    document: JsonObject = {"since": since, "conversations": found.conversations, "messages": found.messages, "total": _counts(found.total)}
    for name, groups in _groups(found).items():
        plural_name = "hours_of_day" if name == "hour-of-day" else f"{name}s"
        document[plural_name] = list[Json]([{"name": key, **_counts(counts)} for key, counts in groups.items()])
    document["tools"] = list[Json]([{"name": tool, **asdict(one)} for tool, one in found.tools.items()])
    document["errors"] = list[Json]([{"name": kind, "runs": count} for kind, count in found.errors.items()])
    document["asides"] = list[Json]([{"name": purpose, **asdict(one)} for purpose, one in found.asides.items()])
    document["windows"] = list[Json]([_window_json(one, now) for one in windows.current])
    document["blocks"] = list[Json]([_window_json(one, now) for one in windows.blocks])
    return {**document, "contexts": list[Json]([asdict(size) for size in found.contexts]), "uncounted": found.uncounted}


def _window_json(window: UsageWindow, now: int) -> JsonObject:
    rates: JsonObject = {"tokens_per_minute": window.tokens_per_minute, "cost_per_hour": window.cost_per_hour}
    return {**asdict(window), **rates, "projected_cost": window.projected_cost(now), "projected_tokens": window.projected_tokens(now)}


def _counts(counts: Counts) -> JsonObject:
    return {**asdict(counts), "first": counts.first, "rate": counts.rate, "context": counts.context}


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _print(found: UsageReport, output: Output, wanted: list[By]) -> None:
    if not found.total.runs:
        output.say("moot: no answers in this period", "dim")
        return
    groups = _groups(found)
    if not found.hosts:  # all conversations are from this machine
        groups = {**groups, "host": {"": found.total}}
        wanted = [name for name in wanted if name != "host" or len(wanted) == 1]
    for number, name in enumerate(wanted):
        if number and (name in groups or (name == "tool" and found.tools)):
            output.data("\n")
        if name == "tool":
            _print_tools(found, output, alone=len(wanted) == 1)
        elif name == "error" and not found.errors:
            output.say("moot: no failed answers in this period", "dim")
        elif name == "error":
            print_table(output, ["ERROR", "ANSWERS"], [[kind, f"{count:,}"] for kind, count in found.errors.items()])
        elif name in groups:
            rows = [_row(key or ("local" if name == "host" else "unknown"), counts) for key, counts in groups[name].items()]
            hidden = len(rows) - _RECENT if name == "day" and len(wanted) > 1 and output.stdout_terminal else 0
            last = name == ("project" if len(wanted) > 1 else name)
            _print_fitted(
                output, [name.upper(), *_HEAD], [*rows[: _RECENT if hidden > 0 else None], *([_row("total", found.total)] if last else [])]
            )
            if hidden > 0:
                output.say(f"and {plural(hidden, 'earlier day')}; show all with --by day", "dim")
    _print_auxiliary_calls(found, output)


_HEAD = ("ANSWERS", "FAILED", "STEPS", "INPUT", "CACHED", "OUTPUT", "FIRST TOKEN", "TOKENS/S", "COST")
_SELDOM = ("FIRST TOKEN", "TOKENS/S", "STEPS", "FAILED", "CACHED", "PROJECTED", "RATE", "ANSWERS", "CALLS")
"""Columns to leave out in a narrow terminal, in this order."""
_NARROWEST = 12


def _row(name: str, counts: Counts) -> list[str]:
    tokens = [f"{number:,}" for number in (counts.input, counts.cache_read, counts.output)]
    first = "-" if counts.first is None else _duration(counts.first)
    rate = "-" if counts.rate is None else f"{counts.rate:,.0f}"
    return [name, f"{counts.runs:,}", f"{counts.failed:,}", f"{counts.steps:,}", *tokens, first, rate, _cost(counts)]


def _print_fitted(output: Output, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print lines with a name and numbers. In a terminal, leave out columns and shorten names until the lines fit."""
    table = [[output.fit(" ".join(cell.split())) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    kept = list(range(len(head)))
    room = shutil.get_terminal_size().columns if output.stdout_terminal else sys.maxsize
    for name in _SELDOM:
        if sum(widths[at] + 2 for at in kept) - 2 > room and name in head:
            kept.remove(head.index(name))
    over = sum(widths[at] + 2 for at in kept) - 2 - room
    widths[0] = max(min(widths[0], _NARROWEST), widths[0] - max(0, over))
    for number, row in enumerate(table):
        name = row[0] if len(row[0]) <= widths[0] else row[0][: widths[0] - 1] + "…"
        text = "  ".join([f"{name:<{widths[0]}}", *(f"{row[at]:>{widths[at]}}" for at in kept[1:])])
        is_total = number and row[0] == "total"
        output.data((output.styled(text, "bold") if number == 0 or is_total else _coloured(text, row, output)) + "\n")


def _coloured(text: str, row: Sequence[str], output: Output) -> str:
    """Color the cost at the end of the line: yellow if part of the cost is unknown."""
    cost = row[-1]
    style = "yellow" if "unpriced" in cost else "green"
    return text[: -len(cost)] + output.styled(cost, style) if cost.startswith(("$", "1", "2", "3", "4", "5", "6", "7", "8", "9")) else text


def _print_windows(windows: UsageWindows, output: Output, zone: tzinfo, now: int, *, blocks: bool) -> None:
    """Print the current periods of subscriptions and, if `blocks` is True, also the earlier blocks."""
    if windows.current:
        output.data("" if blocks else "\n")
        rows = [_window_row(one, _left(one, now), one.projected_cost(now)) for one in windows.current]
        _print_fitted(output, ["WINDOW", "USED", "LEFT", *_WINDOW_HEAD], rows)
    if blocks and windows.blocks:
        output.data("\n" if windows.current else "")
        rows = [_window_row(one, f"{datetime.fromtimestamp(one.since / 1000, zone):%Y-%m-%d %H:%M}", None) for one in windows.blocks]
        _print_fitted(output, ["BLOCK", "START", *_WINDOW_HEAD], [[row[0], *row[2:]] for row in rows])
    elif blocks and not windows.current:
        output.say("moot: no usage by an agent with a subscription in this period", "dim")


_WINDOW_HEAD = ("CALLS", "INPUT", "CACHED", "OUTPUT", "RATE", "PROJECTED", "COST")


def _window_row(window: UsageWindow, time: str, projected: int | None) -> list[str]:
    used = "-" if window.used is None else f"{window.used:.0f}%"
    tokens = [f"{number:,}" for number in (window.input, window.cache_read, window.output)]
    rate = "-" if window.cost_per_hour is None else f"{describe_cost(round(window.cost_per_hour), 0, digits=2)}/h"
    expected = "-" if projected is None else describe_cost(projected, 0, digits=2)
    cost = describe_cost(window.cost, window.unpriced) if window.runs else "-"
    return [f"{window.agent} {length_of(window)}", used, time, f"{window.runs:,}", *tokens, rate, expected, cost]


def _left(window: UsageWindow, now: int) -> str:
    return span(window.until - now) if window.resets else "-"


def _print_tools(found: UsageReport, output: Output, *, alone: bool) -> None:
    rows = [
        [tool, f"{one.calls:,}", f"{one.failed:,}", f"{one.denied:,}", _duration(round(one.ms / one.timed)) if one.timed else "-"]
        for tool, one in found.tools.items()
    ]
    if not rows and alone:
        output.say("moot: no tool calls in this period", "dim")
    if rows:
        _print_fitted(output, ["TOOL", "CALLS", "FAILED", "DENIED", "TIME"], rows)


def _print_auxiliary_calls(found: UsageReport, output: Output) -> None:
    """Print model calls that don't belong to an answer, such as those for titles."""
    for purpose, one in found.asides.items():
        cost = describe_cost(one.cost, one.unpriced)
        output.say(f"also: {plural(one.calls, 'model call')} for {_PURPOSES.get(purpose, purpose)}, {cost}", "dim")


_PURPOSES = {"title": "titles", "compact": "summaries", "explain": "explanations", "picture": "pictures", "transcript": "transcripts"}


def _cost(counts: Counts) -> str:
    return describe_cost(counts.cost, counts.unpriced_runs) if counts.runs else "-"


async def budgets(*, json: AsJson = False, output: Out) -> None:
    """Print the configured budgets: how much has been spent in the current period, and when the period ends."""
    async with opened(output) as engine:
        found = await budget_states(engine.runtime, LOCAL_USER)
        places = [_place(engine, state) for state in found]
    if json:
        output.json({"data": [state.to_json() for state in found], "next_cursor": None})
        return
    if not found:
        output.say("moot: no budgets; add them to the section 'budgets' in the configuration", "dim")
        return
    rows = [[state.budget.name, _covered(state), state.budget.per, *_spent(state)] for state in found]
    print_table(output, ["BUDGET", "FOR", "PER", "SPENT", "USED", "RESETS"], rows)
    for state, place in zip(found, places, strict=True):
        if state.problem:
            output.say(f"moot: {place}: budgets.{state.budget.name}: {state.problem}", "yellow")


def _place(engine: Engine, state: BudgetState) -> str:
    """Return the file and line in which a budget with a problem is defined."""
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
