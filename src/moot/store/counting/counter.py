"""The rows of what answers took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moot.store import segments
from moot.store.connect import Connection
from moot.store.counting.taken import Called, Ran, Taken, called, taken
from moot.store.rows import EVENT, WHOSE, kept, kept_object
from moot.store.stored import Row, former
from moot.store.transaction import Transaction
from moot.types.canonical import Json
from moot.types.usage import Usage

__all__ = ["Counted", "put", "remaining", "uncounted"]

_BATCH = 256
_OVER = "m.status IN ('finished', 'failed', 'cancelled')"
_DUE = (
    f"SELECT m.no, m.conversation, m.created_at, m.status, m.parts, m.metadata, {WHOSE}, c.model, r.no, r.agent, r.model, r.status,"
    " r.error, r.usage, r.cost FROM to_count AS t JOIN message AS m ON m.no = t.message JOIN conversation AS c ON c.no = m.conversation"
    f" LEFT JOIN run AS r ON r.id = m.run WHERE {_OVER} ORDER BY t.message LIMIT ?"
)
_OF_TOOLS = "WHERE run = ? AND key GLOB 'tool:*' AND phase IN ('start', 'end')"
_SEALED = (
    "SELECT r.first_seq, min(coalesce(r.last_seq, h.sealed_through), h.sealed_through)"
    " FROM run AS r JOIN log_head AS h ON h.conversation = r.conversation"
    " WHERE r.no = ? AND r.first_seq <= h.sealed_through"
)

Counted = tuple[int, int, int, Taken | None, dict[str, Called]]
"""Message no, conversation no, ms, what it took (None = it is not counted), its calls."""


def uncounted(connection: Connection) -> list[Counted]:
    """The next answers that are over and not counted as they stand, with what they took."""
    return [_counted(connection, row) for row in connection.execute(_DUE, (_BATCH,)).fetchall()]


def put(found: list[Counted], transaction: Transaction) -> None:
    """Writes their rows. An answer that went on meanwhile is counted again with the next."""
    for no, conversation, at, took, calls in found:
        if transaction.execute("DELETE FROM to_count WHERE message = ?", (no,)).rowcount != 1:
            continue  # purged
        transaction.execute("DELETE FROM answer_tool WHERE message = ?", (no,))
        transaction.execute("DELETE FROM answer WHERE message = ?", (no,))
        if took is None:
            continue
        transaction.execute(
            "INSERT INTO answer (message, conversation, at, agent, model, status, error, steps, input, output, cache_read, cache_write,"
            " reasoning, cost, first_ms, ms, timed, context) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (no, conversation, at, *took),
        )
        for tool, one in calls.items():
            transaction.execute(
                "INSERT INTO answer_tool (message, tool, calls, failed, denied, ms, timed) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (no, tool, one.calls, one.failed, one.denied, one.ms, one.timed),
            )


def remaining(connection: Connection) -> int:
    """How many answers are over and not counted."""
    return connection.execute(f"SELECT count(*) FROM to_count AS t JOIN message AS m ON m.no = t.message WHERE {_OVER}").fetchone()[0]


def _counted(connection: Connection, row: Any) -> Counted:
    no, conversation, at, status, parts, data, agent, model, run = row[:9]
    metadata = kept_object(data)
    if "source" in metadata:
        return no, conversation, at, None, {}  # a fork's copy: what it took is counted where it was said
    ran = None if run is None else Ran(row[9], row[10], row[11], _kind(row[12]), Usage.from_json(kept_object(row[13])), row[14])
    took = taken(metadata, status, ran)
    if run is None:
        took = took._replace(agent=took.agent or agent, model=took.model or model)
    said = kept(parts)
    pieces = [part for part in said if isinstance(part, dict)] if isinstance(said, list) else []
    return no, conversation, at, took, called(pieces, {} if run is None else _times(connection, conversation, run))


def _times(connection: Connection, conversation: int, run: int) -> dict[str, int]:
    """Tool call → ms, by the run's journal."""
    begun: dict[str, tuple[str, int]] = {}
    ended: dict[str, int] = {}
    for phase, key, at, data in _journal(connection, conversation, run):
        if phase == "end":
            ended[key] = at
        else:
            begun[key] = (str((kept_object(data) if data is not None else {}).get("call", "")), at)
    return {call: max(0, ended[key] - at) // 1000 for key, (call, at) in begun.items() if key in ended}


def _journal(connection: Connection, conversation: int, run: int) -> Iterator[tuple[str, str, int, bytes | None]]:
    """Starts and ends of its tools. Answers are counted long before they are sealed, but for those that are counted again."""
    sealed: Any = connection.execute(_SEALED, (run,)).fetchone()
    if sealed is not None:
        for values in segments.rows(connection, conversation, sealed[0] - 1, sealed[1]):
            if values[2] == run and values[7] and (values[8] or "").startswith("tool:"):
                row = former(segments.whole(values))
                yield str(row.phase), str(row.key), row.at, row.body
    for values in connection.execute(f"SELECT {EVENT} FROM event {_OF_TOOLS}", (run,)):
        row = former(Row(*values))
        yield str(row.phase), str(row.key), row.at, row.body


def _kind(data: bytes | None) -> str:
    error: Json = None if data is None else kept(data)
    return str(error.get("kind", "failed")) if isinstance(error, dict) else ""
