"""Storage sizes by table."""

from __future__ import annotations

from typing import Any, LiteralString

from moot.store.connect import Connection
from moot.store.lookup import OF_THEIRS
from moot.store.reader import Reader
from moot.types.canonical import dumps
from moot.types.upkeep import ConversationSize, Extent, Sizes

__all__ = ["measure"]

_ROW = 45
"""Approximate size of a log row in bytes without its content: id, time, run, exchange, kind and check."""
_ROWS = """
    SELECT id >> 32, count(*), sum(length(chunks) + coalesce(length(raw), 0) + coalesce(length(body), 0)), coalesce(sum(length(raw)), 0)
    FROM event GROUP BY id >> 32
"""
_SEGMENTS = """
    SELECT s.conversation, count(DISTINCT s.first_seq), count(*), sum(json_extract(f.value, '$[1]') - json_extract(f.value, '$[0]') + 1),
        sum(json_extract(f.value, '$[5]')), (SELECT sum(length(data) + length(frames)) FROM segment WHERE conversation = s.conversation)
    FROM segment AS s JOIN json_each(CAST(s.frames AS TEXT)) AS f GROUP BY s.conversation
"""


async def measure(reader: Reader, largest: int, owner: str | None) -> Sizes:
    """Measure the whole store. Each table is read in its own snapshot, so that other reads can run in between."""
    rows: list[Any] = await reader.read(lambda connection: connection.execute(_ROWS).fetchall())
    sealed: list[Any] = await reader.read(lambda connection: connection.execute(_SEGMENTS).fetchall())
    open_by = {no: Extent(count, size, size + _ROW * count) for no, count, size, _ in rows}
    sealed_by = {no: Extent(count, size, stored) for no, _, _, count, size, stored in sealed}
    database, free, mode = await reader.read(_file)
    messages, requests, (blobs, inside) = await reader.read(_other_tables)
    heaviest = sorted({*open_by, *sealed_by}, key=lambda no: -_stored(open_by, no) - _stored(sealed_by, no))
    names = await reader.read(lambda connection: _names(connection, heaviest, largest, owner))
    return Sizes(
        database,
        free,
        bool(mode),
        _sum(open_by),
        _sum(sealed_by),
        sum(row[1] for row in sealed),
        sum(row[2] for row in sealed),
        sum(row[3] for row in rows),
        messages,
        await reader.read(_index),
        requests,
        blobs,
        inside,
        tuple(ConversationSize(id, title, open_by.get(no, Extent()), sealed_by.get(no, Extent())) for no, id, title in names),
    )


def _stored(by: dict[int, Extent], no: int) -> int:
    return by[no].stored if no in by else 0


def _sum(by: dict[int, Extent]) -> Extent:
    return Extent(*(sum(getattr(one, name) for one in by.values()) for name in ("events", "bytes", "stored")))


def _file(connection: Connection) -> tuple[int, int, int]:
    names = ("page_count", "freelist_count", "page_size", "auto_vacuum")
    pages, free, size, mode = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
    return pages * size, free * size, mode


def _other_tables(connection: Connection) -> tuple[int, int, tuple[int, int]]:
    """Return the sizes of messages, requests and blobs."""
    messages = _one(connection, "SELECT sum(length(parts) + length(metadata)) FROM message")
    requests = _one(connection, "SELECT sum(length(request)) FROM exchange")
    return messages, requests, (_one(connection, "SELECT sum(size) FROM blob"), _one(connection, "SELECT sum(length(data)) FROM blob"))


def _one(connection: Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0] or 0)


_INDEX: tuple[LiteralString, ...] = (
    "SELECT count(*) * 20 FROM search",
    "SELECT sum(length(CAST(text || tools || reasoning || agent || model || facts AS BLOB))) FROM search_text",
    "SELECT sum(length(block)) FROM search_words_data",
    "SELECT sum(length(sz)) FROM search_words_docsize",
    "SELECT sum(length(CAST(term AS BLOB))) FROM search_term",
    "SELECT sum(length(block)) FROM search_infix_data",
    "SELECT sum(length(sz)) FROM search_infix_docsize",
)
"""Size of each table of the index; about exact for the numeric ones. FTS5 stores its index in tables too."""


def _index(connection: Connection) -> int:
    """Return the total size of the search tables."""
    return sum(_one(connection, sql) for sql in _INDEX)


def _names(connection: Connection, numbers: list[int], limit: int, owner: str | None) -> list[tuple[int, str, str]]:
    """Return the first of these conversations that belong to the owner, in the given order."""
    found: Any = connection.execute(
        "SELECT c.no, c.id, c.title FROM json_each(?) AS n JOIN conversation AS c ON c.no = n.value"
        f" WHERE true{OF_THEIRS} ORDER BY n.key LIMIT ?",
        (dumps(numbers).decode(), owner, limit),
    )
    return found.fetchall()
