"""Usage in the periods that are limited by subscriptions: 5-hour blocks of Claude Code, limits that Codex records, and the last seven days.

Claude Code records no limits. As in other programs, a block starts at the full hour (UTC) of the first call after the previous block, or
after five hours without a call. Each block lasts five hours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, LiteralString, NamedTuple

from moot.plugins import BLOCKS
from moot.store.database.connection import Connection
from moot.types.usage import Usage
from moot.types.windows import UsageWindow, UsageWindows

HOUR = 3_600_000
WEEK = 7 * 24 * HOUR
_MINUTE = 60_000
_QUARTER = 15 * _MINUTE
_LONGEST = 366 * 24 * 60
"""Maximum length of a limit's period in minutes."""
_FULL = 1000.0
"""Maximum used share of a limit, in percent. It is above 100 because a program may let users exceed their limit."""
_NEVER = 1 << 42
"""Upper limit for times in ms, in the year 2109."""
_SEARCHED = 8 * 24 * HOUR
"""Length of the past period that is always divided into blocks, so that the current block doesn't depend on the number of listed days."""
_LONG = 24 * HOUR
"""Answers that started up to this long before a period are also searched for model calls in it."""

_ANSWERS: LiteralString = (
    "SELECT a.at, a.program, a.calls, a.steps, a.input, a.output, a.cache_read, a.cache_write, a.cost,"
    " a.unpriced"
    " FROM answer AS a INDEXED BY answer_at JOIN conversation AS c ON c.no = a.conversation"
    " WHERE a.at >= ?1 AND a.at <= ?2 AND a.program IN (SELECT value FROM json_each(?3)) AND c.owner_id = coalesce(?4, c.owner_id)"
    " ORDER BY a.at"
)
_LIMITS: LiteralString = (
    "SELECT a.program, a.limits FROM answer AS a INDEXED BY answer_limits JOIN conversation AS c ON c.no = a.conversation"
    " WHERE a.limits IS NOT NULL AND a.at >= ?1 AND a.at <= ?2 AND c.owner_id = coalesce(?3, c.owner_id) ORDER BY a.at DESC LIMIT 200"
)


class Usages(NamedTuple):
    """Model calls within a quarter of an hour."""

    first: int
    last: int
    runs: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: int
    unpriced: int


class _Limit(NamedTuple):
    """The used share of a subscription's limit, as recorded by a program."""

    name: str
    minutes: int
    used: float
    resets_at: int
    at: int

    @classmethod
    def of(cls, value: object) -> _Limit | None:
        """Parse a recorded limit. Return None for anything else, because answers are imported from files that any program can write."""
        match value:
            case {"limit": str(name), "minutes": int(minutes), "used": float() | int() as used, "resets_at": int(resets), "at": int(at)}:
                is_possible = 0 < minutes <= _LONGEST and 0 <= used <= _FULL and 0 <= resets < _NEVER and 0 <= at < _NEVER
                return cls(name, minutes, used, resets, at) if is_possible else None
            case _:
                return None


def usage_windows(connection: Connection, *, now: int, days: int, owner: str | None) -> UsageWindows:
    """Return the current periods, and the 5-hour blocks of the last `days` days."""
    since = now - days * 24 * HOUR
    limits = _limits(connection, now, owner)
    programs = {*BLOCKS, *(limit.agent for limit in limits)}
    usages = _usages(connection, min(since, now - _SEARCHED) - _LONG, now, programs, owner)
    blocks: list[UsageWindow] = []
    current: list[UsageWindow] = []
    for program in BLOCKS:
        mine = usages.get(program, [])
        recent = blocks_of(program, (one for one in mine if one.first >= now - _SEARCHED))
        listed = recent if since >= now - _SEARCHED else blocks_of(program, mine)
        blocks += [block for block in reversed(listed) if block.until > since]
        current += [block for block in recent if block.until > now]
        week = UsageWindow(program, WEEK // _MINUTE, now - WEEK, now)
        current.append(_summed(week, (one for one in mine if one.first >= week.since)))
    for limit in limits:
        current.append(_summed(limit, (one for one in usages.get(limit.agent, ()) if limit.since <= one.first <= limit.until)))
    return UsageWindows(tuple(one for one in current if one.runs or one.used is not None), tuple(blocks))


def blocks_of(program: str, usages: Iterable[Usages]) -> list[UsageWindow]:
    """Divide calls, oldest first, into blocks."""
    length = BLOCKS[program] * _MINUTE
    found: list[tuple[int, list[Usages]]] = []
    last = 0
    for one in usages:
        if not found or one.first >= found[-1][0] + length or one.first >= last + length:
            found.append((one.first // HOUR * HOUR, []))
        found[-1][1].append(one)
        last = max(last, one.last)
    return [_summed(UsageWindow(program, BLOCKS[program], start, start + length, resets=True), within) for start, within in found]


def _summed(window: UsageWindow, usages: Iterable[Usages]) -> UsageWindow:
    ones = list(usages)
    if not ones:
        return window
    runs, input, output, read, write, cost, unpriced = (sum(column) for column in list(zip(*ones, strict=True))[2:])
    first, last = min(one.first for one in ones), max(one.last for one in ones)
    tokens: dict[str, int] = {"input": input, "output": output, "cache_read": read, "cache_write": write}
    return replace(window, runs=runs, cost=cost, unpriced=unpriced, first=first, last=last, **tokens)


def _usages(connection: Connection, since: int, until: int, programs: Iterable[str], owner: str | None) -> dict[str, list[Usages]]:
    """Return the calls by program, oldest first."""
    found: dict[str, list[Usages]] = {}
    rows: Any = connection.execute(_ANSWERS, (since, until, json.dumps(sorted(programs)), owner))
    for at, program, calls, steps, *counts, cost, unpriced in rows:
        spans = [Usages._make((at, at, max(1, steps), *counts, cost or 0, unpriced))]
        if calls is not None:
            stored: list[list[int]] = json.loads(calls)
            spans = [Usages._make((*span, 0)) for span in stored]
            spans[0] = spans[0]._replace(unpriced=unpriced)
        found.setdefault(program, []).extend(spans)
    return {program: sorted(spans) for program, spans in found.items()}


def _limits(connection: Connection, now: int, owner: str | None) -> list[UsageWindow]:
    """Return the newest report of each limit. After a limit was reset, its used share is unknown."""
    newest: dict[tuple[str, str, int], _Limit] = {}
    for program, text in connection.execute(_LIMITS, (now - WEEK - _LONG, now, owner)):
        for limit in filter(None, map(_Limit.of, json.loads(text))):
            key = (program, limit.name, limit.minutes)
            if key not in newest or newest[key].at < limit.at:
                newest[key] = limit
    found: list[UsageWindow] = []
    for (program, _, minutes), limit in sorted(newest.items()):
        length, resets = minutes * _MINUTE, limit.resets_at
        if resets > now:
            found.append(UsageWindow(program, minutes, resets - length, resets, resets=True, used=limit.used, at=limit.at))
        else:
            found.append(UsageWindow(program, minutes, now - length, now))
    return found


def spans_of(at: int, calls: Sequence[tuple[int | None, Usage, int | None]], whole: Usage, cost: int | None) -> str | None:
    """Return the calls of an answer by quarter of an hour, as JSON; None if the times of the calls add nothing to the time of the answer.

    Tokens and costs of the answer that belong to no call, such as those of failed attempts, count in the first quarter.
    """
    if not any(moment is not None and moment - at >= _QUARTER for moment, _, _ in calls):
        return None
    spans: list[list[int]] = []
    left = [*_counts(whole), cost or 0]
    moment = at
    for told, usage, price in calls:
        moment = max(moment, told or 0)
        counts = [*_counts(usage), price or 0]
        left = [total - count for total, count in zip(left, counts, strict=True)]
        if spans and spans[-1][0] // _QUARTER == moment // _QUARTER:
            spans[-1][1:] = [moment, *map(sum, zip(spans[-1][2:], [1, *counts], strict=True))]
        else:
            spans.append([moment, moment, 1, *counts])
    spans[0][3:] = [count + rest for count, rest in zip(spans[0][3:], left, strict=True)]
    return json.dumps(spans, separators=(",", ":"))


def _counts(usage: Usage) -> tuple[int, int, int, int]:
    return usage.input or 0, usage.output or 0, usage.cache_read or 0, usage.cache_write or 0
