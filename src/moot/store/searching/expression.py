"""Queries as FTS5 expressions. Pure: typed text is always quoted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.store.searching.facts import conversation_fact, cost_fact, owner_fact
from moot.store.searching.query import Condition, Cost, Query
from moot.store.words import phrase, quoted

__all__ = ["expression"]

_COSTS = 63
_WORDY = ("agent", "model")


def expression(
    query: Query, terms: Sequence[Sequence[str]], *, owner: str | None = None, conversation: int | None = None, exclude: int | None = None
) -> str:
    """Return an FTS5 expression that requires one phrase of each entry in `terms`; owner or conversation None = any.

    Costs are matched only approximately; projects and times are not part of it.
    """
    columns = f"{{{' '.join(query.columns)}}}"
    wanted = [f"{columns} : {_any(phrases)}" for phrases in terms]
    wanted += [_condition(each) for each in query.conditions if not each.negated and each.operator != "project"]
    if query.cost != Cost():
        wanted.append(_facts(cost_fact(1 << bits >> 1) for bits in _bits(query.cost)))
    if owner is not None:
        wanted.append(_facts([owner_fact(owner)]))
    if conversation is not None:
        wanted.append(_facts([conversation_fact(conversation)]))
    unwanted = [f"{columns} : {phrase(term)}" for term in query.without]
    unwanted += [_condition(each) for each in query.conditions if each.negated and each.operator != "project"]
    if exclude is not None:
        unwanted.append(_facts([conversation_fact(exclude)]))
    found = " AND ".join(wanted or [_facts(["all"])])
    return f"({found}) NOT ({' OR '.join(unwanted)})" if unwanted else found


def _condition(condition: Condition) -> str:
    if condition.operator in _WORDY:
        return f"{condition.operator} : {_any(map(quoted, condition.values))}"
    return _facts(f"{condition.operator}{value}" for value in condition.values)


def _facts(facts: Iterable[str]) -> str:
    return f"facts : {_any(map(quoted, facts))}"


def _any(phrases: Iterable[str]) -> str:
    return f"({' OR '.join(phrases)})"


def _bits(cost: Cost) -> range:
    """Return the bit lengths of matching costs."""
    most = _COSTS if cost.most is None else min(cost.most.bit_length(), _COSTS)
    return range(min((cost.least or 0).bit_length(), _COSTS), most + 1)
