"""Usage statistics: totals over answers by time, model, agent, project and tool."""

from __future__ import annotations

import logging
import re
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import PurePath
from typing import Any, LiteralString

from moot.errors import StoreError
from moot.store.database.connection import Connection
from moot.store.database.reader import Reader
from moot.store.database.writer import Writer
from moot.store.lookup import match_cursor
from moot.store.stats.answers import answers_to_count, put, remaining
from moot.store.stats.costs import spent
from moot.store.stats.windows import usage_windows
from moot.types.limits import Spending, SpendingQuery
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
from moot.types.windows import UsageWindows

log = logging.getLogger("moot.store")

_EVER = 1 << 62
_DAY = 86_400_000
_SLOT = 900_000
_SUMMED: LiteralString = (
    "runs, failed, input, output, cache_read, cache_write, reasoning, cost, unpriced, steps, ms, timed, first_ms, firsts, context"
)
_SUMS: LiteralString = (
    "sum(runs), sum(failed), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(reasoning), sum(cost), sum(unpriced),"
    " sum(steps), sum(ms), sum(timed), sum(first_ms), sum(firsts), sum(context)"
)
_OF_ANSWER: LiteralString = (
    "1 AS runs, a.status = 'failed' AS failed, a.input, a.output, a.cache_read, a.cache_write, a.reasoning, coalesce(a.cost, 0) AS cost,"
    " a.unpriced, a.steps, a.ms, a.timed,"
    " coalesce(a.first_ms, 0) AS first_ms, a.first_ms IS NOT NULL AS firsts, a.context"
)
_OWNED: LiteralString = "c.owner_id = coalesce(:owner, c.owner_id)"
_EARLY: LiteralString = f"a.at >= :since AND a.at < :first AND {_OWNED}"
_LATE: LiteralString = f"a.at >= :last AND a.at < :until AND {_OWNED}"
_WITHIN: LiteralString = (
    "a.conversation IN (WITH RECURSIVE tree(no, id) AS (SELECT no, id FROM conversation WHERE id = :conversation"
    " UNION SELECT k.no, k.id FROM tree AS t JOIN conversation AS k ON k.parent_id = t.id WHERE NOT :apart) SELECT no FROM tree)"
    f" AND a.at >= :since AND a.at < :until AND {_OWNED}"
)
_JOINED: LiteralString = "answer AS a JOIN conversation AS c ON c.no = a.conversation"
_PLACED: LiteralString = f"{_JOINED} JOIN counted_project AS g ON g.no = c.no"


def _named(where: LiteralString) -> LiteralString:
    return f"SELECT g.project_id, c.host, a.agent, a.lead, a.model, {_OF_ANSWER} FROM {_PLACED} WHERE {where}"


def _timed(where: LiteralString) -> LiteralString:
    return f"SELECT a.at / 900000 AS slot, {_OF_ANSWER} FROM {_JOINED} WHERE {where}"


_TOOL: LiteralString = "t.tool, t.calls, t.failed, t.denied, t.ms, t.timed"


def _tools(where: LiteralString) -> LiteralString:
    return f"SELECT {_TOOL} FROM {_JOINED} JOIN answer_tool AS t ON t.message = a.message WHERE {where}"


_WHOLE_DAYS: LiteralString = "day >= :first / 86400000 AND day < :last / 86400000 AND owner_id = coalesce(:owner, owner_id)"
_NAMED: LiteralString = (
    f"(SELECT project_id, '' AS host, agent, lead, model, {_SUMMED} FROM answer_day WHERE {_WHOLE_DAYS}"
    f" UNION ALL {_named(_EARLY)} UNION ALL {_named(_LATE)})"
)
"""Whole days, and the answers before and after them."""
_TIMED: LiteralString = (
    f"(SELECT slot, {_SUMMED} FROM answer_slot WHERE slot >= :first / 900000 AND slot < :last / 900000"
    f" AND owner_id = coalesce(:owner, owner_id) UNION ALL {_timed(_EARLY)} UNION ALL {_timed(_LATE)})"
)
_TOOLS: LiteralString = f"(SELECT {_TOOL} FROM tool_day AS t WHERE {_WHOLE_DAYS} UNION ALL {_tools(_EARLY)} UNION ALL {_tools(_LATE)})"
_PERIOD: LiteralString = f"a.at >= :since AND a.at < :until AND {_OWNED} AND (:conversation IS NULL OR {_WITHIN})"
_ERRORS: LiteralString = f"SELECT a.error, count(*) FROM {_JOINED} WHERE a.error <> '' AND {_PERIOD} GROUP BY 1 ORDER BY 2 DESC, 1"
_ASIDES: LiteralString = (
    "SELECT a.purpose, count(*), sum(a.input), sum(a.output), coalesce(sum(a.cost), 0), sum(a.cost IS NULL) FROM aside AS a"
    f" JOIN conversation AS c ON c.no = a.conversation WHERE {_PERIOD} GROUP BY 1 ORDER BY 2 DESC, 1"
)
_CONTEXTS: LiteralString = (
    f"SELECT a.at, a.context FROM {_JOINED} WHERE a.context > 0 AND c.id = :conversation AND a.at >= :since AND a.at < :until AND {_OWNED}"
    " ORDER BY a.at, a.message"
)
_EDITS: LiteralString = (
    "SELECT e.at, e.message, e.number, e.path, c.id, m.id, a.lead, e.tool, e.added, e.removed FROM answer_edit AS e"
    " CROSS JOIN answer AS a ON a.message = e.message CROSS JOIN message AS m ON m.no = e.message"
    " CROSS JOIN conversation AS c ON c.no = a.conversation"
    " WHERE e.owner_id = ? AND (e.at, e.message, e.number) < (?, ?, ?) AND c.deleted_at IS NULL"
    " ORDER BY e.at DESC, e.message DESC, e.number DESC LIMIT ?"
)
_CURSOR = re.compile("([0-9a-f]{1,15})-([0-9a-f]{1,15})-([0-9a-f]{1,15})")
_PROJECT: LiteralString = "coalesce((SELECT p.name FROM project AS p WHERE p.id = s.project_id), s.project_id)"
_REPOSITORY = "repository:"
"""Prefix of the groups of conversations in a repository without a project."""
_TIMES: Mapping[Grouping, tuple[LiteralString, LiteralString, LiteralString]] = {
    "hour": ("strftime('%Y-%m-%d %H:00', at, 'unixepoch')", "at / 3600", "1 DESC"),
    "day": ("strftime('%Y-%m-%d', at, 'unixepoch')", "at / 86400", "1 DESC"),
    "week": ("strftime('%Y-%m-%d', (at / 86400 + 3) / 7 * 604800 - 259200, 'unixepoch')", "(at / 86400 + 3) / 7", "1 DESC"),
    "month": ("strftime('%Y-%m', at, 'unixepoch')", "strftime('%Y-%m', at, 'unixepoch')", "1 DESC"),
    "hour-of-day": ("strftime('%H', at, 'unixepoch')", "at / 3600 % 24", "1"),
}
"""SQL for the name, grouping and order of groups, for a local time `at` in seconds."""
_TRANSITION = 4 * 86_400
"""Seconds between two checks for a change of the offset from UTC."""


class AnswerStats:
    """The SQLite implementation of `Stats`."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def usage(
        self,
        *,
        since: int = 0,
        until: int | None = None,
        conversation: str | None = None,
        by: Sequence[Grouping] = GROUPINGS,
        zone: tzinfo = UTC,
        apart: bool = False,
        wait: float = 2.0,
    ) -> UsageReport:
        left = await self._counted(wait)
        values = {"since": since, "until": _EVER if until is None else until, "conversation": conversation, "owner": self._owner}

        def work(connection: Connection) -> UsageReport:
            return _report(connection, {**values, "apart": apart}, by, zone, left)

        return await self._reader.read(work)

    async def windows(self, now: int, *, days: int = 8, wait: float = 2.0) -> UsageWindows:
        await self._counted(wait)
        return await self._reader.read(partial(usage_windows, now=now, days=days, owner=self._owner))

    async def edits(self, *, limit: int = 50, before: str | None = None, wait: float = 2.0) -> tuple[list[FileEdit], str | None]:
        await self._counted(wait)
        return await self._reader.read(partial(_edits, owner=self._owner, limit=limit, before=before))

    async def spent(self, queries: Sequence[SpendingQuery]) -> list[Spending]:
        def work(connection: Connection) -> list[Spending]:
            return [spent(connection, query, self._owner) for query in queries]

        return await self._reader.read(work)

    async def count(self, *, seconds: float = 30.0) -> int:
        until = time.monotonic() + seconds
        while found := await self._reader.read(answers_to_count):
            if time.monotonic() >= until:
                return await self._reader.read(remaining)
            await self._writer.write(partial(put, found))
            for id in filter(None, (record.damaged for record in found)):
                log.warning("the answer %s is damaged and only partly counted in usage; to list all damage, run: moot verify", id)
        return 0

    async def _counted(self, wait: float) -> int:
        try:
            return await self.count(seconds=wait)
        except StoreError as error:  # such as a full disk: what was counted before can still be read
            log.warning("new answers can't be counted: %s", error)
            return await self._reader.read(remaining)


def _report(connection: Connection, values: dict[str, Any], by: Sequence[Grouping], zone: tzinfo, left: int) -> UsageReport:
    conversation = values["conversation"]
    stored: Any = connection.execute(
        "SELECT count(*), coalesce(sum(message_count), 0) FROM conversation"
        " WHERE (:conversation IS NULL OR id = :conversation) AND owner_id = coalesce(:owner, owner_id)",
        values,
    ).fetchone()
    days, slots = _inside(values, _DAY), _inside(values, _SLOT)
    named: LiteralString = _NAMED if conversation is None else f"({_named(_WITHIN)})"
    tools: LiteralString = _TOOLS if conversation is None else f"({_tools(_WITHIN)})"
    timed: LiteralString = _TIMED if conversation is None else f"({_timed(_WITHIN)})"
    times: list[Grouping] = [name for name in _TIMES if name in by]
    if times:
        _convert_times(connection, timed, slots, zone)
    names: dict[Grouping, LiteralString] = {"model": "model", "agent": "agent" if values["apart"] else "lead", "project": _PROJECT}
    groups: dict[Grouping, dict[str, Counts]] = {
        name: _grouped(connection, names[name], "2 DESC, 1", named, days) for name in names if name in by
    }
    for name in times:
        groups[name] = _by_time(connection, name, timed, slots)
    return UsageReport(
        stored[0],
        stored[1],
        _grouped(connection, "''", "1", named, days).get("", Counts()),
        groups.get("day", {}),
        groups.get("model", {}),
        groups.get("agent", {}),
        _with_names(groups.get("project", {})),
        _by_host(connection, values) if "host" in by else {},
        {row[0]: ToolCounts(*row[1:]) for row in _tool_rows(connection, tools, days)} if "tool" in by else {},
        dict(connection.execute(_ERRORS, values).fetchall()) if "error" in by else {},
        {row[0]: AuxiliaryCounts(*row[1:]) for row in connection.execute(_ASIDES, values)},
        tuple(ContextSize(*row) for row in connection.execute(_CONTEXTS, values)) if conversation is not None else (),
        left,
        groups.get("hour", {}),
        groups.get("week", {}),
        groups.get("month", {}),
        groups.get("hour-of-day", {}),
    )


def _inside(values: Mapping[str, Any], unit: int) -> dict[str, Any]:
    """Add the first and last boundaries of whole units in the period. If the period contains no whole unit, both are its end."""
    first, last = -(-values["since"] // unit) * unit, values["until"] // unit * unit
    return {**values, "first": first, "last": last} if first <= last else {**values, "first": values["until"], "last": values["until"]}


def _tool_rows(connection: Connection, source: LiteralString, values: Mapping[str, Any]) -> list[Any]:
    sums = "sum(calls), sum(failed), sum(denied), sum(ms), sum(timed)"
    return connection.execute(f"SELECT tool, {sums} FROM {source} GROUP BY 1 ORDER BY 2 DESC, 1", values).fetchall()


def _grouped(
    connection: Connection, by: LiteralString, order: LiteralString, source: LiteralString, values: Mapping[str, Any]
) -> dict[str, Counts]:
    rows = connection.execute(f"SELECT {by}, {_SUMS} FROM {source} AS s GROUP BY 1 ORDER BY {order}", values)
    return {row[0]: Counts(*row[1:]) for row in rows if row[1] is not None}


def _convert_times(connection: Connection, source: LiteralString, values: Mapping[str, Any], zone: tzinfo) -> None:
    """Define the SQL function `local_seconds`, which returns the local time of a slot in seconds since 1970."""
    first, last = connection.execute(f"SELECT min(slot) * 900, max(slot) * 900 FROM {source}", values).fetchone()
    periods = _offsets(zone, first or 0, last or 0)
    ends, offsets = [until for until, _ in periods[:-1]], [offset for _, offset in periods]

    def local_seconds(slot: int) -> int:
        return slot * 900 + offsets[bisect_right(ends, slot * 900)]

    connection.create_function("local_seconds", 1, local_seconds, deterministic=True)


def _offsets(zone: tzinfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return the offsets from UTC between two times, each with the time at which it ends. All values are in seconds."""
    found: list[tuple[int, int]] = []
    at, offset = first, _offset(zone, first)
    while at < last:
        after = min(at + _TRANSITION, last)
        if (changed := _offset(zone, after)) != offset:
            low, high = at, after
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
            found.append((high, offset))
            offset = changed
        at = after
    return [*found, (last, offset)]


def _offset(zone: tzinfo, at: int) -> int:
    try:
        delta = datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return 0
    return 0 if delta is None else int(delta.total_seconds())


def _by_time(connection: Connection, name: Grouping, source: LiteralString, values: Mapping[str, Any]) -> dict[str, Counts]:
    shown, group, order = _TIMES[name]
    local: LiteralString = f"WITH local AS MATERIALIZED (SELECT local_seconds(slot) AS at, {_SUMMED} FROM {source})"
    rows = connection.execute(f"{local} SELECT coalesce({shown}, ''), {_SUMS} FROM local GROUP BY {group} ORDER BY {order}", values)
    return {row[0]: Counts(*row[1:]) for row in rows}


def _by_host(connection: Connection, values: Mapping[str, Any]) -> dict[str, Counts]:
    if connection.execute("SELECT 1 FROM conversation WHERE host <> '' LIMIT 1").fetchone() is None:
        return {}
    return _grouped(connection, "host", "2 DESC, 1", f"({_named(_PERIOD if values['conversation'] is None else _WITHIN)})", values)


def _edits(connection: Connection, *, owner: str | None, limit: int, before: str | None) -> tuple[list[FileEdit], str | None]:
    """Return changes to files, newest first, and the cursor of the next page."""
    place = (_EVER, 0, 0) if before is None else tuple(int(group, 16) for group in match_cursor(_CURSOR, before).groups())
    owners = [owner] if owner is not None else [row[0] for row in connection.execute("SELECT id FROM user")]
    found: list[Any] = []
    for each in owners:
        found += connection.execute(_EDITS, (each, *place, limit + 1)).fetchall()
    found.sort(key=lambda row: row[:3], reverse=True)
    edits = [FileEdit(*row[3:], at=row[0]) for row in found[:limit]]
    return edits, "-".join(f"{number:x}" for number in found[limit - 1][:3]) if len(found) > limit else None


def _with_names(groups: Mapping[str, Counts]) -> dict[str, Counts]:
    """Replace the paths of repositories with their names, with as many parent folders as needed to tell them apart."""
    paths = {group: PurePath(group.removeprefix(_REPOSITORY)).parts for group in groups if group.startswith(_REPOSITORY)}
    taken = groups.keys() - paths.keys()
    found: dict[str, Counts] = {}
    for group, counts in groups.items():
        parts = paths.get(group, ())
        others = [other for name, other in paths.items() if name != group]
        shown = (parts[-size:] for size in range(1, len(parts) + 1))
        is_clear = (end for end in shown if "/".join(end) not in taken and not any(other[-len(end) :] == end for other in others))
        found["/".join(next(is_clear, parts)) or group] = counts
    return found
