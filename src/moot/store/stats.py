"""Sums over the rows of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from moot.store.connect import Connection
from moot.store.lookup import OF_THEIRS
from moot.store.reader import Reader
from moot.store.rows import RUN_TABLES
from moot.types.stats import Counts, Usages

__all__ = ["RunStats"]

_SUMS = (
    "count(*), sum(r.status = 'failed'), "
    "coalesce(sum(CAST(r.usage AS TEXT) ->> '$.input'), 0), coalesce(sum(CAST(r.usage AS TEXT) ->> '$.output'), 0), "
    "coalesce(sum(CAST(r.usage AS TEXT) ->> '$.cache_read'), 0), coalesce(sum(CAST(r.usage AS TEXT) ->> '$.cache_write'), 0), "
    "coalesce(sum(CAST(r.usage AS TEXT) ->> '$.reasoning'), 0), coalesce(sum(r.cost), 0), sum(r.cost IS NULL)"
)
_ENDED = "r.status IN ('finished', 'failed', 'cancelled') AND r.created_at >= ? AND r.created_at < ? AND c.id = coalesce(?, c.id)"
_DAY = "strftime('%Y-%m-%d', r.created_at / 1000, 'unixepoch')"
_PROJECT = "(SELECT p.name FROM project AS p WHERE p.id = c.project_id)"
_EVER = 1 << 62


class RunStats:
    """`Stats` on SQLite."""

    def __init__(self, reader: Reader, owner: str | None = None) -> None:
        self._reader = reader
        self._owner = owner

    async def usage(self, *, since: int = 0, until: int | None = None, conversation: str | None = None) -> Usages:
        values = (since, _EVER if until is None else until, conversation, self._owner)
        mine = (conversation, self._owner)

        def work(connection: Connection) -> Usages:
            stored: Any = connection.execute(
                f"SELECT count(*), coalesce(sum(c.message_count), 0) FROM conversation AS c WHERE c.id = coalesce(?, c.id){OF_THEIRS}", mine
            ).fetchone()
            return Usages(
                stored[0],
                stored[1],
                _grouped(connection, "''", "1", values).get("", Counts()),
                _grouped(connection, _DAY, "1 DESC", values),
                _grouped(connection, "r.model", "2 DESC, 1", values),
                _grouped(connection, "r.agent", "2 DESC, 1", values),
                _grouped(connection, _PROJECT, "2 DESC, 1", values),
            )

        return await self._reader.read(work)


def _grouped(connection: Connection, by: LiteralString, order: LiteralString, values: Sequence[object]) -> dict[str, Counts]:
    sql = f"SELECT {by}, {_SUMS} FROM {RUN_TABLES} WHERE {_ENDED}{OF_THEIRS} GROUP BY 1 ORDER BY {order}"
    return {row[0]: Counts(*row[1:]) for row in connection.execute(sql, values)}
