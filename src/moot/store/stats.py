"""Usage statistics over answers, and the records they are summed from."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any, LiteralString, NamedTuple, cast

from moot.convert.imports import without_copies
from moot.errors import StoreError
from moot.store.database.connection import Connection
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log import segments
from moot.store.log.rows import Row, before_redaction
from moot.store.rows import AGENT_OR_FORMAT, EVENT, parse_stored, parse_stored_object, plain
from moot.types.budget import Spending, SpendingQuery
from moot.types.canonical import Json, JsonObject, loads
from moot.types.message import Part, is_tool, tool_name
from moot.types.stats import AuxiliaryCounts, ContextSize, Counts, ToolCounts, UsageReport
from moot.types.usage import NO_USAGE, Usage

log = logging.getLogger("moot.store")


class RunFacts(NamedTuple):
    """Fields from the row of an answer's run."""

    agent: str
    model: str
    status: str
    error: str
    """Kind of the run's error; empty if it has none."""
    usage: Usage
    cost: int | None


class AnswerUsage(NamedTuple):
    """The columns of an answer's row, from `agent` on."""

    agent: str
    model: str
    status: str
    error: str
    steps: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: int | None
    first_ms: int | None
    ms: int
    timed: int
    context: int


@dataclass(slots=True)
class ToolCalls:
    """Statistics of one tool's calls."""

    calls: int = 0
    failed: int = 0
    denied: int = 0
    ms: int = 0
    timed: int = 0


def usage_of(metadata: JsonObject, status: str, run: RunFacts | None) -> AnswerUsage:
    """Return the run's own sums, or for an imported answer without a run, sums over the steps in its metadata."""
    stored = metadata.get("steps")
    steps = [_Step.of(step) for step in stored if isinstance(step, dict)] if isinstance(stored, list) else []
    if run is None:
        usage = sum((step.usage for step in steps), Usage())
        costs = [step.cost for step in steps if step.cost is not None or step.usage != NO_USAGE]
        run = RunFacts(_text(metadata.get("agent")), _text(metadata.get("model")), status, "", usage, None)
        if costs and None not in costs:
            run = run._replace(cost=sum(cost for cost in costs if cost is not None))
    timed = [step for step in steps if step.ms is not None]
    usage = run.usage
    return AnswerUsage(
        *(run.agent, run.model, run.status, run.error, len(steps)),
        *(usage.input or 0, usage.output or 0, usage.cache_read or 0, usage.cache_write or 0, usage.reasoning or 0),
        *(run.cost, steps[0].first_ms if steps else None, sum(step.ms or 0 for step in timed)),
        *(sum(step.usage.output or 0 for step in timed), max((step.usage.input or 0 for step in steps), default=0)),
    )


def tool_calls(parts: Sequence[Part], times: Mapping[str, int]) -> dict[str, ToolCalls]:
    """Count the calls by tool; `times` has the known durations in ms by call id."""
    found: dict[str, ToolCalls] = {}
    for part in parts:
        if not is_tool(part):
            continue
        one = found.setdefault(tool_name(part), ToolCalls())
        one.calls += 1
        one.failed += part.get("state") == "output-error"
        one.denied += part.get("state") == "output-denied"
        metadata = part.get("toolMetadata")  # some agents report durations themselves
        inner = [metadata, *metadata.values()] if isinstance(metadata, dict) else []
        known = [times.get(str(part.get("toolCallId"))), *(_whole(value.get("durationMs")) for value in inner if isinstance(value, dict))]
        if (ms := next((ms for ms in known if ms is not None), None)) is not None:
            one.ms += ms
            one.timed += 1
    return found


class _Step(NamedTuple):
    usage: Usage
    cost: int | None
    ms: int | None
    first_ms: int | None
    at: int | None
    """Time of the end in ms; None if it is not known."""

    @classmethod
    def of(cls, step: JsonObject) -> _Step:
        usage = step.get("usage")
        return cls(
            Usage.from_json(usage) if isinstance(usage, dict) else Usage(),
            _whole(step.get("cost")),
            _whole(step.get("ms")),
            _whole(step.get("first_ms")),
            _whole(step.get("at")),
        )


def _whole(value: Json) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


_BATCH = 256
_OVER = "m.status IN ('finished', 'failed', 'cancelled')"
_DUE = (
    f"SELECT m.no, m.conversation, m.created_at, m.status, m.parts, m.metadata, {AGENT_OR_FORMAT}, c.model, r.no, r.agent, r.model,"
    " r.status, r.error, r.usage, r.cost, (SELECT json_group_array(json_array(i.step, i.is_copy)) FROM import_identity AS i"
    " WHERE i.message = m.no) FROM to_count AS t JOIN message AS m ON m.no = t.message"
    " JOIN conversation AS c ON c.no = m.conversation"
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


def answers_to_count(connection: Connection) -> list[Record]:
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
    metadata = parse_stored_object(data)
    if "source" in metadata:
        return no, conversation, at, None, {}  # a fork's copy: its usage counts in the original conversation
    identities = cast("list[tuple[int, int]]", loads(row[15]))
    copies = {step for step, is_copy in identities if is_copy}
    if copies and len(copies) == len(identities):
        return no, conversation, at, None, {}  # a copy made by the program that it was imported from
    value = parse_stored(plain(parts))
    pieces = [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
    pieces, metadata = without_copies(pieces, metadata, copies)
    if run is None:
        usage = usage_of(metadata, status, None)
        usage = usage._replace(agent=usage.agent or agent, model=usage.model or model)
    else:
        error = None if row[12] is None else parse_stored(row[12])
        kind = str(error.get("kind", "failed")) if isinstance(error, dict) else ""
        usage = usage_of(metadata, status, RunFacts(row[9], row[10], row[11], kind, Usage.from_json(parse_stored_object(row[13])), row[14]))
    return no, conversation, at, usage, tool_calls(pieces, {} if run is None else _times(connection, conversation, run))


def _times(connection: Connection, conversation: int, run: int) -> dict[str, int]:
    started: dict[str, tuple[str, int]] = {}
    ended: dict[str, int] = {}
    for row in map(before_redaction, _journal(connection, conversation, run)):
        if row.phase == "end":
            ended[str(row.key)] = row.at
        else:
            started[str(row.key)] = (str(segments.read_object(row.body).get("call", "")), row.at)
    return {call: max(0, ended[key] - at) // 1000 for key, (call, at) in started.items() if key in ended}


def _journal(connection: Connection, conversation: int, run: int) -> Iterator[Row]:
    """Yield starts and ends of the run's tool calls. Most answers are counted long before their events are sealed."""
    sealed: Any = connection.execute(_SEALED, (run,)).fetchone()
    if sealed is not None:
        for values in segments.rows(connection, conversation, sealed[0] - 1, sealed[1]):
            if values[2] == run and values[7] and (values[8] or "").startswith("tool:"):
                yield segments.with_check(values)
    yield from (Row(*values) for values in connection.execute(f"SELECT {EVENT} FROM event {_OF_TOOLS}", (run,)))


_DAYS: LiteralString = "(SELECT * FROM answer_day WHERE day >= ?1 / 86400000 AND day < ?2 / 86400000 AND owner_id = coalesce(?4, owner_id))"
"""Whole days of all conversations, the most common case."""
_ANSWERS: LiteralString = (
    "(SELECT a.at / 86400000 AS day, g.project_id, c.host, a.agent, a.model, 1 AS runs, a.status = 'failed' AS failed, a.input, a.output,"
    " a.cache_read, a.cache_write, a.reasoning, coalesce(a.cost, 0) AS cost,"
    " a.cost IS NULL AND (a.model <> '' OR a.input + a.output > 0) AS unpriced, a.steps, a.ms, a.timed,"
    " coalesce(a.first_ms, 0) AS first_ms,"
    " a.first_ms IS NOT NULL AS firsts, a.context FROM answer AS a JOIN conversation AS c ON c.no = a.conversation"
    " JOIN counted_project AS g ON g.no = c.no"
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
_TOKENS = "coalesce(json_extract(CAST(r.usage AS TEXT), '$.input'), 0) + coalesce(json_extract(CAST(r.usage AS TEXT), '$.output'), 0)"
_OF_AGENT: LiteralString = (
    "(?4 = '' OR r.agent = ?4 OR r.parent_run IS NOT NULL AND EXISTS ("
    "WITH RECURSIVE above(agent, parent) AS (SELECT p.agent, p.parent_run FROM run AS p WHERE p.id = r.parent_run"
    " UNION ALL SELECT p.agent, p.parent_run FROM above AS a JOIN run AS p ON p.id = a.parent) SELECT 1 FROM above WHERE agent = ?4))"
)
_SPENDING_RUNS: LiteralString = f"c.owner_id = ?1 AND r.trigger <> 'import' AND (?3 = '' OR c.project_id = ?3) AND {_OF_AGENT}"
_ENDED: LiteralString = (  # the end of a run sets the time of its conversation
    " FROM conversation AS c INDEXED BY conversation_owner CROSS JOIN run AS r ON r.conversation = c.no"
    f" WHERE c.updated_at >= ?2 AND r.ended_at >= ?2 AND {_SPENDING_RUNS}"
)
_STEPS: LiteralString = f"SELECT r.cost, {_TOKENS}, r.model, (SELECT m.metadata FROM message AS m WHERE m.id = r.message), r.ended_at"
_SPENT: LiteralString = (
    f"SELECT coalesce(sum(r.cost), 0), coalesce(sum({_TOKENS}), 0), 0{_ENDED} AND r.cost IS NOT NULL AND r.started_at >= ?2"
)
_SPENT_UNPRICED: LiteralString = (  # the known costs of runs whose cost is unknown are those of some steps
    "SELECT coalesce(sum((SELECT sum(s.value ->> '$.cost') FROM message AS m, json_each(CAST(m.metadata AS TEXT), '$.steps') AS s"
    " WHERE m.id = r.message AND s.type = 'object')), 0),"
    f" coalesce(sum({_TOKENS}), 0), coalesce(sum(r.model <> ''), 0){_ENDED} AND r.cost IS NULL AND r.started_at >= ?2"
)
_SPENT_BY_STEPS: LiteralString = (
    f"{_STEPS}{_ENDED} AND r.started_at < ?2 UNION ALL"
    f" {_STEPS} FROM run AS r CROSS JOIN conversation AS c ON c.no = r.conversation"
    f" WHERE r.status IN ('running', 'waiting', 'interrupted') AND {_SPENDING_RUNS}"
)
_SPENT_BY_TREE: LiteralString = (
    "WITH RECURSIVE tree(id) AS (SELECT ?1 UNION SELECT k.id FROM tree AS t JOIN run AS k ON k.parent_run = t.id)"
    f" {_STEPS} FROM tree AS t JOIN run AS r ON r.id = t.id JOIN conversation AS c ON c.no = r.conversation"
    " WHERE c.owner_id = coalesce(?2, c.owner_id)"
)
_EVER = 1 << 62
_DAY = 86_400_000
_PROJECT = "coalesce((SELECT p.name FROM project AS p WHERE p.id = s.project_id), s.project_id)"
_REPOSITORY = "repository:"
"""Prefix of the groups of conversations in a repository without a project."""


class AnswerStats:
    """The SQLite implementation of `Stats`."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def usage(self, *, since: int = 0, until: int | None = None, conversation: str | None = None, wait: float = 2.0) -> UsageReport:
        try:
            left = await self.count(seconds=wait)
        except StoreError as error:  # such as a full disk: what was counted before can still be read
            log.warning("new answers can't be counted: %s", error)
            left = await self._reader.read(remaining)
        values = (since, _EVER if until is None else until, conversation, self._owner)
        whole = conversation is None and since % _DAY == 0 and (until is None or until % _DAY == 0)

        def work(connection: Connection) -> UsageReport:
            source = _DAYS if whole else _ANSWERS
            stored: Any = connection.execute(
                "SELECT count(*), coalesce(sum(message_count), 0) FROM conversation"
                " WHERE id = coalesce(?3, id) AND owner_id = coalesce(?4, owner_id)",
                values,
            ).fetchone()
            tools = connection.execute(_TOOLS_OF_DAYS if whole else _TOOLS_OF_ANSWERS, values)
            return UsageReport(
                stored[0],
                stored[1],
                _grouped(connection, "''", "1", source, values).get("", Counts()),
                _grouped(connection, "strftime('%Y-%m-%d', day * 86400, 'unixepoch')", "1 DESC", source, values),
                _grouped(connection, "model", "2 DESC, 1", source, values),
                _grouped(connection, "agent", "2 DESC, 1", source, values),
                _with_names(_grouped(connection, _PROJECT, "2 DESC, 1", source, values)),
                _by_host(connection, values),
                {row[0]: ToolCounts(*row[1:]) for row in tools},
                dict(connection.execute(_ERRORS, values).fetchall()),
                {row[0]: AuxiliaryCounts(*row[1:]) for row in connection.execute(_ASIDES, values)},
                tuple(ContextSize(*row) for row in connection.execute(_CONTEXTS, values)) if conversation is not None else (),
                left,
            )

        return await self._reader.read(work)

    async def spent(self, queries: Sequence[SpendingQuery]) -> list[Spending]:
        def work(connection: Connection) -> list[Spending]:
            return [_spent(connection, query, self._owner) for query in queries]

        return await self._reader.read(work)

    async def count(self, *, seconds: float = 30.0) -> int:
        until = time.monotonic() + seconds
        while found := await self._reader.read(answers_to_count):
            if time.monotonic() >= until:
                return await self._reader.read(remaining)
            await self._writer.write(partial(put, found))
        return 0


def _grouped(
    connection: Connection, by: LiteralString, order: LiteralString, source: LiteralString, values: Sequence[object]
) -> dict[str, Counts]:
    rows = connection.execute(f"SELECT {by}, {_SUMS} FROM {source} AS s GROUP BY 1 ORDER BY {order}", values)
    return {row[0]: Counts(*row[1:]) for row in rows}


def _by_host(connection: Connection, values: Sequence[object]) -> dict[str, Counts]:
    if connection.execute("SELECT 1 FROM conversation WHERE host <> '' LIMIT 1").fetchone() is None:
        return {}
    return _grouped(connection, "host", "2 DESC, 1", _ANSWERS, values)


def _with_names(groups: Mapping[str, Counts]) -> dict[str, Counts]:
    """Replace the paths of repositories by their names, with as many parent folders as needed to tell them apart."""
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


def _spent(connection: Connection, query: SpendingQuery, owner: str | None) -> Spending:
    if query.run:
        rows: Any = connection.execute(_SPENT_BY_TREE, (query.run, owner))
        return sum((_spent_since(0, *row) for row in rows), Spending())
    if owner not in (None, query.owner):
        return Spending()
    values = (query.owner, query.since, query.project, query.agent)
    whole = (Spending(*connection.execute(sql, values).fetchone()) for sql in (_SPENT, _SPENT_UNPRICED))
    rows = connection.execute(_SPENT_BY_STEPS, values)
    return sum((_spent_since(query.since, *row) for row in rows), sum(whole, Spending()))


def _spent_since(since: int, cost: int | None, tokens: int, model: str, metadata: bytes | None, ended_at: int | None) -> Spending:
    """Return what a run has spent since a time (ms). Steps without a time, of old versions, count as new."""
    stored = parse_stored_object(metadata).get("steps") if metadata is not None else None
    steps = [_Step.of(step) for step in stored if isinstance(step, dict)] if isinstance(stored, list) else []
    before = [step for step in steps if step.at is not None and step.at < since]
    later = [step for step in steps if step not in before] if before else steps
    if ended_at is not None and cost is not None:  # the totals of the run also include attempts that failed
        return Spending(cost - sum(step.cost or 0 for step in before), tokens - sum(map(_tokens_of, before)))
    is_unpriced = any(step.cost is None for step in later) or (ended_at is not None and model != "" and not before)
    return Spending(sum(step.cost or 0 for step in later), sum(map(_tokens_of, later)), int(is_unpriced))


def _tokens_of(step: _Step) -> int:
    return (step.usage.input or 0) + (step.usage.output or 0)
