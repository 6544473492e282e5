"""Spending of runs, for budgets."""

from __future__ import annotations

from typing import Any, LiteralString

from moot.store.database.connection import Connection
from moot.store.rows import readable
from moot.store.stats.answers import Step
from moot.types.limits import Spending, SpendingQuery

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
    "SELECT coalesce(sum((SELECT sum(s.value ->> '$.cost') FROM message AS m, "
    " json_each(iif(json_valid(CAST(m.metadata AS TEXT)), CAST(m.metadata AS TEXT), '{}'), '$.steps') AS s"
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


def spent(connection: Connection, query: SpendingQuery, owner: str | None) -> Spending:
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
    """Return what a run has spent since a time (ms). Steps without a time, which old versions stored, count as new."""
    facts = readable(metadata) if metadata is not None else None
    stored = facts.get("steps") if isinstance(facts, dict) else None
    steps = [Step.of(step) for step in stored if isinstance(step, dict)] if isinstance(stored, list) else []
    before = [step for step in steps if step.at is not None and step.at < since]
    later = [step for step in steps if step not in before] if before else steps
    if ended_at is not None and cost is not None:  # the totals of the run also include attempts that failed
        return Spending(cost - sum(step.cost or 0 for step in before), tokens - sum(map(_tokens_of, before)))
    is_unpriced = any(step.cost is None for step in later) or (ended_at is not None and model != "" and not before)
    return Spending(sum(step.cost or 0 for step in later), sum(map(_tokens_of, later)), int(is_unpriced))


def _tokens_of(step: Step) -> int:
    return (step.usage.input or 0) + (step.usage.output or 0)
