"""The records that statistics are summed from: one for each finished answer, and one for each tool and file in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from moot.convert.files.edits import Edit, edits_of
from moot.convert.imports import without_copies
from moot.store.database.connection import Connection
from moot.store.database.transaction import Transaction
from moot.store.log import segments
from moot.store.log.rows import Row, before_redaction
from moot.store.rows import EVENT, readable
from moot.store.stats.windows import spans_of
from moot.types.canonical import Json, JsonObject, loads
from moot.types.message import Part, is_tool, tool_name
from moot.types.usage import LARGEST, NO_USAGE, Usage


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
    """Cost of the steps with a known price, in nano-dollars; None if no price is known."""
    unpriced: bool
    """True if the cost is completely or partly unknown."""
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


def usage_of(metadata: JsonObject, status: str, run: RunFacts | None, *, agent: str = "", model: str = "") -> AnswerUsage:
    """Return the run's own sums, or for an imported answer without a run, sums over the steps in its metadata.

    If the cost of the run is unknown, the known costs of its steps are added up. `agent` and `model` are those of an imported answer that
    names none.
    """
    steps = _steps_of(metadata)
    costs = [step.cost for step in steps if step.cost is not None]
    unpriced = run is not None and run.cost is None
    if run is None:
        used = [step.usage for step in steps if step.usage is not NO_USAGE]
        usage = Usage(
            sum([one.input or 0 for one in used]),
            sum([one.output or 0 for one in used]),
            sum([one.cache_read or 0 for one in used]),
            sum([one.cache_write or 0 for one in used]),
            sum([one.reasoning or 0 for one in used]),
        )
        run = RunFacts(_text(metadata.get("agent")) or agent, _text(metadata.get("model")) or model, status, "", usage, None)
        unpriced = not costs or any(step.cost is None and step.usage != NO_USAGE for step in steps)
    cost = run.cost if run.cost is not None or not costs else sum(costs)
    timed = [step for step in steps if step.ms is not None]
    usage = _plausible(run.usage)
    ms, timed_output = (
        _whole(sum(counts)) or 0 for counts in ([step.ms or 0 for step in timed], [step.usage.output or 0 for step in timed])
    )
    return AnswerUsage(
        *(run.agent, run.model, run.status, run.error, len(steps)),
        *(usage.input or 0, usage.output or 0, usage.cache_read or 0, usage.cache_write or 0, usage.reasoning or 0),
        *(_whole(cost), unpriced and (run.model != "" or (usage.input or 0) + (usage.output or 0) > 0)),
        *(steps[0].first_ms if steps else None, ms),
        *(timed_output, max((step.usage.input or 0 for step in steps), default=0)),
    )


def tool_calls(parts: Sequence[Part], times: Mapping[str, int]) -> dict[str, ToolCalls]:
    """Count the calls by tool; `times` contains the known durations in ms by call id."""
    found: dict[str, ToolCalls] = {}
    for part in parts:
        if not is_tool(part):
            continue
        one = found.setdefault(tool_name(part), ToolCalls())
        one.calls += 1
        one.failed += part.get("state") == "output-error"
        one.denied += part.get("state") == "output-denied"
        ms = times.get(str(part.get("toolCallId"))) if times else None
        metadata = part.get("toolMetadata")
        if ms is None and isinstance(metadata, dict):  # some agents report durations themselves
            inner = [metadata, *[value for value in metadata.values() if isinstance(value, dict)]]
            ms = next((ms for value in inner if (ms := _whole(value.get("durationMs"))) is not None), None)
        if ms is not None:
            one.ms += ms
            one.timed += 1
    return found


class Step(NamedTuple):
    usage: Usage
    cost: int | None
    ms: int | None
    first_ms: int | None
    at: int | None
    """Time of the end in ms; None if it is not known."""

    @classmethod
    def of(cls, step: JsonObject) -> Step:
        usage = step.get("usage")
        return cls(
            _plausible(Usage.from_json(usage)) if isinstance(usage, dict) else NO_USAGE,
            _whole(step.get("cost")),
            _whole(step.get("ms")),
            _whole(step.get("first_ms")),
            _whole(step.get("at")),
        )


def _steps_of(metadata: JsonObject) -> list[Step]:
    stored = metadata.get("steps")
    return [Step.of(step) for step in stored if isinstance(step, dict)] if isinstance(stored, list) else []


def _whole(value: Json) -> int | None:
    return value if type(value) is int and 0 <= value < LARGEST else None


def _plausible(usage: Usage) -> Usage:
    """Return the usage without impossible numbers, such as negative ones."""
    counts = usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning
    numbers = [count for count in counts if count is not None]
    if not numbers or (min(numbers) >= 0 and max(numbers) < LARGEST):
        return usage
    return Usage(*map(_whole, counts))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


_BATCH = 256
_OVER = "m.status IN ('finished', 'failed', 'cancelled')"
_PROGRAM = (
    "coalesce(json_extract(CAST(c.origin AS TEXT), '$.agent'), json_extract(CAST(c.origin AS TEXT), '$.program'),"
    " json_extract(CAST(c.origin AS TEXT), '$.format'), 'default')"
)
"""The producer of those answers in `conversation AS c` that name no agent. This is not the conversation's agent, which applies to the next
answer and can be changed."""
_MODEL = "iif(c.origin IS NULL, '', coalesce(json_extract(CAST(c.origin AS TEXT), '$.model'), c.model))"
"""The model of answers that name no model: the model of the source they were imported from. Imports by old versions did not record it."""
_DUE = (
    f"SELECT m.no, m.conversation, m.created_at, m.status, m.parts, m.metadata, {_PROGRAM}, {_MODEL}, r.no, r.agent, r.model,"
    " r.status, r.error, r.usage, r.cost, (SELECT json_group_array(json_array(i.step, i.is_copy)) FROM import_identity AS i"
    " WHERE i.message = m.no), c.owner_id, c.parent_id, r.parent_run, r.agent_type, m.id"
    " FROM to_count AS t JOIN message AS m ON m.no = t.message"
    " JOIN conversation AS c ON c.no = m.conversation"
    f" LEFT JOIN run AS r ON r.id = m.run WHERE {_OVER} ORDER BY t.message LIMIT ?"
)
_OF_TOOLS = "WHERE run = ? AND key GLOB 'tool:*' AND phase IN ('start', 'end')"
_SEALED = (
    "SELECT r.first_seq, min(coalesce(r.last_seq, h.sealed_through), h.sealed_through)"
    " FROM run AS r JOIN log_head AS h ON h.conversation = r.conversation"
    " WHERE r.no = ? AND r.first_seq <= h.sealed_through"
)

_TOP_RUN = (
    "WITH RECURSIVE above(agent, parent) AS (SELECT agent, parent_run FROM run WHERE id = ?1"
    " UNION SELECT r.agent, r.parent_run FROM above AS a JOIN run AS r ON r.id = a.parent) SELECT agent FROM above WHERE parent IS NULL"
)
_TOP_CONVERSATION = (
    "WITH RECURSIVE above(no, parent) AS (SELECT no, parent_id FROM conversation WHERE id = ?1"
    " UNION SELECT c.no, c.parent_id FROM above AS a JOIN conversation AS c ON c.id = a.parent)"
    " SELECT coalesce((SELECT iif(json_valid(CAST(m.metadata AS TEXT)), nullif(CAST(m.metadata AS TEXT) ->> '$.agent', ''), NULL)"
    f" FROM message AS m WHERE m.conversation = c.no AND m.role = 'assistant' LIMIT 1), {_PROGRAM})"
    " FROM above AS a JOIN conversation AS c ON c.no = a.no WHERE a.parent IS NULL"
)


class Record(NamedTuple):
    """The stored facts of one answer."""

    message: int
    conversation: int
    owner: str
    at: int
    usage: AnswerUsage | None = None
    """None if the answer is not counted."""
    lead: str = ""
    """The agent that started the work: the agent of the topmost conversation, or the answer's own agent."""
    program: str = ""
    """The program that made the model calls: the type of the run's agent, or the program that the answer was imported from."""
    spans: str | None = None
    """The model calls by quarter of an hour, as JSON; None if all were made when the answer started."""
    limits: str | None = None
    """Used shares of the subscription's limits, as recorded by the program, in JSON."""
    calls: Mapping[str, ToolCalls] = MappingProxyType({})
    edits: Sequence[Edit] = ()
    damaged: str = ""
    """Id of the message if part of it can't be read; otherwise empty."""


def answers_to_count(connection: Connection) -> list[Record]:
    """Return records of the next finished answers whose current state is not counted yet."""
    return [_record(connection, row) for row in connection.execute(_DUE, (_BATCH,)).fetchall()]


def put(found: list[Record], transaction: Transaction) -> None:
    """Store the records. An answer that continued meanwhile is counted again later."""
    for record in found:
        no = record.message
        if transaction.execute("DELETE FROM to_count WHERE message = ?", (no,)).rowcount != 1:
            continue  # purged
        transaction.execute("DELETE FROM answer_tool WHERE message = ?", (no,))
        transaction.execute("DELETE FROM answer WHERE message = ?", (no,))
        if record.usage is None:
            continue
        transaction.execute(
            "INSERT INTO answer (message, conversation, at, lead, program, calls, limits, agent, model, status, error, steps, input,"
            " output, cache_read, cache_write, reasoning, cost, unpriced, first_ms, ms, timed, context)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (no, record.conversation, record.at, record.lead, record.program, record.spans, record.limits, *record.usage),
        )
        for tool, one in record.calls.items():
            transaction.execute(
                "INSERT INTO answer_tool (message, tool, calls, failed, denied, ms, timed) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (no, tool, one.calls, one.failed, one.denied, one.ms, one.timed),
            )
        for number, edit in enumerate(record.edits):
            transaction.execute(
                "INSERT INTO answer_edit (owner_id, at, message, number, path, tool, added, removed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (record.owner, record.at, no, number, *edit),
            )


def remaining(connection: Connection) -> int:
    """Return the number of finished answers that are not counted yet."""
    return connection.execute(f"SELECT count(*) FROM to_count AS t JOIN message AS m ON m.no = t.message WHERE {_OVER}").fetchone()[0]


def _record(connection: Connection, row: Any) -> Record:
    no, conversation, at, status, parts, data, agent, model, run = row[:9]
    owner, parent, parent_run, agent_type, id = row[16:]
    facts = readable(data)
    metadata = facts if isinstance(facts, dict) else {}
    if "source" in metadata:
        return Record(no, conversation, owner, at)  # a fork's copy: its usage counts in the original conversation
    identities = cast("list[tuple[int, int]]", loads(row[15]))
    copies = {step for step, is_copy in identities if is_copy}
    if copies and len(copies) == len(identities):
        return Record(no, conversation, owner, at)  # a copy made by the program that it was imported from
    value = readable(parts)
    is_damaged = not isinstance(facts, dict) or not isinstance(value, list)
    pieces = [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
    pieces, metadata = without_copies(pieces, metadata, copies)
    if run is None:
        usage = usage_of(metadata, status, None, agent=agent, model=model)
    else:
        error, spent = None if row[12] is None else readable(row[12]), readable(row[13])
        kind = str(error.get("kind", "failed")) if isinstance(error, dict) else ""
        spent = Usage.from_json(spent) if isinstance(spent, dict) else Usage()
        usage = usage_of(metadata, status, RunFacts(row[9], row[10], row[11], kind, spent, row[14]))
    top: Any = None
    if parent_run is not None:
        top = connection.execute(_TOP_RUN, (parent_run,)).fetchone()
    elif parent is not None:
        top = connection.execute(_TOP_CONVERSATION, (parent,)).fetchone()
    limits = metadata.get("limits")
    return Record(
        *(no, conversation, owner, at, usage),
        lead=usage.agent if top is None else top[0],
        program=usage.agent if run is None else agent_type,
        spans=_spans(at, metadata, usage),
        limits=json.dumps(limits) if isinstance(limits, list) and limits and not copies else None,
        calls=tool_calls(pieces, {} if run is None else _times(connection, conversation, run)),
        edits=tuple(edits_of(pieces)),
        damaged=id if is_damaged else "",
    )


def _spans(at: int, metadata: JsonObject, usage: AnswerUsage) -> str | None:
    stored = metadata.get("steps")
    if not isinstance(stored, list) or not any(isinstance(step, dict) and "at" in step for step in stored):
        return None  # true for most imported answers, whose steps need not be parsed again
    whole = Usage(usage.input, usage.output, usage.cache_read, usage.cache_write)
    return spans_of(at, [(step.at, step.usage, step.cost) for step in _steps_of(metadata)], whole, usage.cost)


def _times(connection: Connection, conversation: int, run: int) -> dict[str, int]:
    started: dict[str, tuple[str, int]] = {}
    ended: dict[str, int] = {}
    for row in _journal(connection, conversation, run):
        if row.phase == "end":
            ended[str(row.key)] = row.at
            continue
        try:
            started[str(row.key)] = (str(segments.read_object(before_redaction(row).body).get("call", "")), row.at)
        except ValueError:
            continue  # a damaged event, so that the duration is unknown
    return {call: max(0, ended[key] - at) // 1000 for key, (call, at) in started.items() if key in ended}


def _journal(connection: Connection, conversation: int, run: int) -> Iterator[Row]:
    """Yield starts and ends of the run's tool calls. Most answers are counted long before their events are sealed."""
    sealed: Any = connection.execute(_SEALED, (run,)).fetchone()
    if sealed is not None:
        for values in segments.rows(connection, conversation, sealed[0] - 1, sealed[1]):
            if values[2] == run and values[7] and (values[8] or "").startswith("tool:"):
                yield segments.with_check(values)
    yield from (Row(*values) for values in connection.execute(f"SELECT {EVENT} FROM event {_OF_TOOLS}", (run,)))
