"""Usage statistics over answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, LiteralString

from moot.store.connect import Connection
from moot.store.counting.counter import put, remaining, uncounted
from moot.store.reader import Reader
from moot.store.writer import Writer
from moot.types.stats import AsideCounts, ContextSize, Counts, ToolCounts, Usages

__all__ = ["AnswerStats"]

_DAYS: LiteralString = "(SELECT * FROM answer_day WHERE day >= ?1 / 86400000 AND day < ?2 / 86400000 AND owner_id = coalesce(?4, owner_id))"
"""Whole days of all conversations, the most common case."""
_ANSWERS: LiteralString = (
    "(SELECT a.at / 86400000 AS day, c.project_id, a.agent, a.model, 1 AS runs, a.status = 'failed' AS failed, a.input, a.output,"
    " a.cache_read, a.cache_write, a.reasoning, coalesce(a.cost, 0) AS cost,"
    " a.cost IS NULL AND (a.model <> '' OR a.input + a.output > 0) AS unpriced, a.steps, a.ms, a.timed,"
    " coalesce(a.first_ms, 0) AS first_ms,"
    " a.first_ms IS NOT NULL AS firsts, a.context FROM answer AS a JOIN conversation AS c ON c.no = a.conversation"
    " WHERE a.at >= ?1 AND a.at < ?2 AND c.id = coalesce(?3, c.id) AND c.owner_id = coalesce(?4, c.owner_id))"
)
_SUMS: LiteralString = (
    "sum(runs), sum(failed), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(reasoning), sum(cost), sum(unpriced),"
    " sum(steps), sum(ms), sum(timed), sum(first_ms), sum(firsts), sum(context)"
)
_MINE: LiteralString = "a.at >= ?1 AND a.at < ?2 AND c.id = coalesce(?3, c.id) AND c.owner_id = coalesce(?4, c.owner_id)"
_ERRORS = (
    "SELECT a.error, count(*) FROM answer AS a JOIN conversation AS c ON c.no = a.conversation"
    f" WHERE a.error <> '' AND {_MINE} GROUP BY 1 ORDER BY 2 DESC, 1"
)
_TOOLS: LiteralString = "sum(t.calls), sum(t.failed), sum(t.denied), sum(t.ms), sum(t.timed)"
_TOOLS_OF_DAYS = (
    f"SELECT t.tool, {_TOOLS} FROM tool_day AS t WHERE t.day >= ?1 / 86400000 AND t.day < ?2 / 86400000"
    " AND t.owner_id = coalesce(?4, t.owner_id) AND ?3 IS NULL GROUP BY 1 ORDER BY 2 DESC, 1"
)
_TOOLS_OF_ANSWERS = (
    f"SELECT t.tool, {_TOOLS} FROM answer AS a JOIN conversation AS c ON c.no = a.conversation"
    " JOIN answer_tool AS t ON t.message = a.message"
    f" WHERE {_MINE} GROUP BY 1 ORDER BY 2 DESC, 1"
)
_ASIDES = (
    "SELECT a.purpose, count(*), sum(a.input), sum(a.output), coalesce(sum(a.cost), 0), sum(a.cost IS NULL) FROM aside AS a"
    f" JOIN conversation AS c ON c.no = a.conversation WHERE {_MINE} GROUP BY 1 ORDER BY 2 DESC, 1"
)
_CONTEXTS = (
    "SELECT a.at, a.context FROM answer AS a JOIN conversation AS c ON c.no = a.conversation"
    f" WHERE a.context > 0 AND {_MINE} ORDER BY a.at, a.message"
)
_EVER = 1 << 62
_DAY = 86_400_000
_PROJECT = "(SELECT p.name FROM project AS p WHERE p.id = s.project_id)"


class AnswerStats:
    """`Stats` on SQLite."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def usage(self, *, since: int = 0, until: int | None = None, conversation: str | None = None, wait: float = 2.0) -> Usages:
        left = await self.count(seconds=wait)
        values = (since, _EVER if until is None else until, conversation, self._owner)
        whole = conversation is None and since % _DAY == 0 and (until is None or until % _DAY == 0)

        def work(connection: Connection) -> Usages:
            source = _DAYS if whole else _ANSWERS
            stored: Any = connection.execute(
                "SELECT count(*), coalesce(sum(message_count), 0) FROM conversation"
                " WHERE id = coalesce(?3, id) AND owner_id = coalesce(?4, owner_id)",
                values,
            ).fetchone()
            tools = connection.execute(_TOOLS_OF_DAYS if whole else _TOOLS_OF_ANSWERS, values)
            return Usages(
                stored[0],
                stored[1],
                _grouped(connection, "''", "1", source, values).get("", Counts()),
                _grouped(connection, "strftime('%Y-%m-%d', day * 86400, 'unixepoch')", "1 DESC", source, values),
                _grouped(connection, "model", "2 DESC, 1", source, values),
                _grouped(connection, "agent", "2 DESC, 1", source, values),
                _grouped(connection, _PROJECT, "2 DESC, 1", source, values),
                {row[0]: ToolCounts(*row[1:]) for row in tools},
                dict(connection.execute(_ERRORS, values).fetchall()),
                {row[0]: AsideCounts(*row[1:]) for row in connection.execute(_ASIDES, values)},
                tuple(ContextSize(*row) for row in connection.execute(_CONTEXTS, values)) if conversation is not None else (),
                left,
            )

        return await self._reader.read(work)

    async def count(self, *, seconds: float = 30.0) -> int:
        until = time.monotonic() + seconds
        while found := await self._reader.read(uncounted):
            if time.monotonic() >= until:
                return await self._reader.read(remaining)
            await self._writer.write(partial(put, found))
        return 0


def _grouped(
    connection: Connection, by: LiteralString, order: LiteralString, source: LiteralString, values: Sequence[object]
) -> dict[str, Counts]:
    rows = connection.execute(f"SELECT {by}, {_SUMS} FROM {source} AS s GROUP BY 1 ORDER BY {order}", values)
    return {row[0]: Counts(*row[1:]) for row in rows}
