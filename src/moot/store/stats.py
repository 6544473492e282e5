"""Sums over what answers took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from moot.store.connect import Connection
from moot.store.counting.counter import put, remaining, uncounted
from moot.store.lookup import OF_THEIRS
from moot.store.reader import Reader
from moot.store.writer import Writer
from moot.types.stats import AsideCounts, ContextSize, Counts, ToolCounts, Usages

__all__ = ["AnswerStats"]

_SUMS = (
    "count(*), sum(a.status = 'failed'), sum(a.input), sum(a.output), sum(a.cache_read), sum(a.cache_write), sum(a.reasoning),"
    " coalesce(sum(a.cost), 0), sum(a.cost IS NULL AND (a.model <> '' OR a.input + a.output > 0)), sum(a.steps), sum(a.ms), sum(a.timed),"
    " coalesce(sum(a.first_ms), 0), count(a.first_ms), max(a.context)"
)
_WITHIN = f"a.at >= ? AND a.at < ? AND c.id = coalesce(?, c.id){OF_THEIRS}"
_ANSWERS = f"FROM answer AS a JOIN conversation AS c ON c.no = a.conversation WHERE {_WITHIN}"
_GROUPED = f"SELECT a.at / 86400000, a.model, a.agent, c.project_id, {_SUMS} {_ANSWERS} GROUP BY 1, 2, 3, 4"
_TOOLS = (
    "SELECT t.tool, sum(t.calls), sum(t.failed), sum(t.denied), sum(t.ms), sum(t.timed) FROM answer_tool AS t"
    f" JOIN answer AS a ON a.message = t.message JOIN conversation AS c ON c.no = a.conversation WHERE {_WITHIN}"
    " GROUP BY 1 ORDER BY 2 DESC, 1"
)
_ERRORS = f"SELECT a.error, count(*) {_ANSWERS} AND a.error <> '' GROUP BY 1 ORDER BY 2 DESC, 1"
_ASIDES = (
    "SELECT a.purpose, count(*), sum(a.input), sum(a.output), coalesce(sum(a.cost), 0), sum(a.cost IS NULL) FROM aside AS a"
    f" JOIN conversation AS c ON c.no = a.conversation WHERE {_WITHIN} GROUP BY 1 ORDER BY 2 DESC, 1"
)
_CONTEXTS = f"SELECT a.at, a.context {_ANSWERS} AND a.context > 0 ORDER BY a.at, a.message"
_EVER = 1 << 62
_DAY = 86400

T = TypeVar("T")


class AnswerStats:
    """`Stats` on SQLite."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def usage(self, *, since: int = 0, until: int | None = None, conversation: str | None = None, wait: float = 2.0) -> Usages:
        left = await self.count(seconds=wait)
        values = (since, _EVER if until is None else until, conversation, self._owner)

        def work(connection: Connection) -> Usages:
            mine = (conversation, self._owner)
            stored: Any = connection.execute(
                f"SELECT count(*), coalesce(sum(c.message_count), 0) FROM conversation AS c WHERE c.id = coalesce(?, c.id){OF_THEIRS}", mine
            ).fetchone()
            groups = [(tuple(row[:4]), Counts(*row[4:])) for row in connection.execute(_GROUPED, values)]
            names = dict(connection.execute("SELECT id, name FROM project").fetchall())
            return Usages(
                stored[0],
                stored[1],
                sum((counts for _, counts in groups), Counts()),
                dict(sorted(_by(groups, lambda key: time.strftime("%Y-%m-%d", time.gmtime(key[0] * _DAY))).items(), reverse=True)),
                _most(_by(groups, lambda key: str(key[1]))),
                _most(_by(groups, lambda key: str(key[2]))),
                _most(_by(groups, lambda key: str(names.get(key[3], "")))),
                {row[0]: ToolCounts(*row[1:]) for row in connection.execute(_TOOLS, values)},
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


def _by(groups: list[tuple[tuple[Any, ...], Counts]], name: Callable[[tuple[Any, ...]], str]) -> dict[str, Counts]:
    found: dict[str, Counts] = {}
    for key, counts in groups:
        found[name(key)] = found.get(name(key), Counts()) + counts
    return found


def _most(groups: Mapping[str, Counts]) -> dict[str, Counts]:
    return dict(sorted(groups.items(), key=lambda group: (-group[1].runs, group[0])))
