"""Creating usage records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moot.store import segments
from moot.store.connect import Connection
from moot.store.counting.taken import AnswerUsage, RunFacts, ToolCalls, tool_calls, usage_of
from moot.store.rows import EVENT, WHOSE, kept, kept_object
from moot.store.stored import Row, former
from moot.store.transaction import Transaction
from moot.types.canonical import Json
from moot.types.usage import Usage

__all__ = ["Record", "put", "remaining", "uncounted"]

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

Record = tuple[int, int, int, AnswerUsage | None, dict[str, ToolCalls]]
"""Message no, conversation no, ms, usage (None = not counted), tool calls."""


def uncounted(connection: Connection) -> list[Record]:
    """Return records of the next finished answers that are not counted in their current state."""
    return [_record(connection, row) for row in connection.execute(_DUE, (_BATCH,)).fetchall()]


def put(found: list[Record], transaction: Transaction) -> None:
    """Store the records. An answer that continued meanwhile is counted again later."""
    for no, conversation, at, usage, calls in found:
        if transaction.execute("DELETE FROM to_count WHERE message = ?", (no,)).rowcount != 1:
            continue  # purged
        transaction.execute("DELETE FROM answer_tool WHERE message = ?", (no,))
        transaction.execute("DELETE FROM answer WHERE message = ?", (no,))
        if usage is None:
            continue
        transaction.execute(
            "INSERT INTO answer (message, conversation, at, agent, model, status, error, steps, input, output, cache_read, cache_write,"
            " reasoning, cost, first_ms, ms, timed, context) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (no, conversation, at, *usage),
        )
        for tool, one in calls.items():
            transaction.execute(
                "INSERT INTO answer_tool (message, tool, calls, failed, denied, ms, timed) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (no, tool, one.calls, one.failed, one.denied, one.ms, one.timed),
            )


def remaining(connection: Connection) -> int:
    """Return the number of finished answers that are not counted."""
    return connection.execute(f"SELECT count(*) FROM to_count AS t JOIN message AS m ON m.no = t.message WHERE {_OVER}").fetchone()[0]


def _record(connection: Connection, row: Any) -> Record:
    no, conversation, at, status, parts, data, agent, model, run = row[:9]
    metadata = kept_object(data)
    if "source" in metadata:
        return no, conversation, at, None, {}  # a fork's copy: its usage counts in the original conversation
    facts = None if run is None else RunFacts(row[9], row[10], row[11], _kind(row[12]), Usage.from_json(kept_object(row[13])), row[14])
    usage = usage_of(metadata, status, facts)
    if run is None:
        usage = usage._replace(agent=usage.agent or agent, model=usage.model or model)
    value = kept(parts)
    pieces = [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
    return no, conversation, at, usage, tool_calls(pieces, {} if run is None else _times(connection, conversation, run))


def _times(connection: Connection, conversation: int, run: int) -> dict[str, int]:
    """Map tool call ids to ms, according to the run's journal."""
    started: dict[str, tuple[str, int]] = {}
    ended: dict[str, int] = {}
    for phase, key, at, data in _journal(connection, conversation, run):
        if phase == "end":
            ended[key] = at
        else:
            started[key] = (str((kept_object(data) if data is not None else {}).get("call", "")), at)
    return {call: max(0, ended[key] - at) // 1000 for key, (call, at) in started.items() if key in ended}


def _journal(connection: Connection, conversation: int, run: int) -> Iterator[tuple[str, str, int, bytes | None]]:
    """Yield starts and ends of the run's tool calls. Most answers are counted long before they are sealed."""
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
