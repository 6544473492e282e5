"""Trees of records, each of which refers to the record before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class Branches:
    """The tree structure of a session."""

    forks: frozenset[str]
    """Ids of records with more than one successor. Their messages are kept in memory until the end."""
    nearest: dict[str, str | None]
    """Id of a record that is not part of a message → id of its nearest ancestor that is part of one."""


def find_branches(records: Iterable[tuple[str, str | None, bool]]) -> Branches:
    """Find the branches of a session. `records` yields (id, parent, whether it belongs to a message) in the order of the source."""
    forks: set[str] = set()
    nearest: dict[str, str | None] = {}
    last: str | None = None
    for id, parent, speaks in records:
        parent = nearest.get(parent, parent) if parent is not None else None
        if not speaks:
            nearest[id] = parent
            continue
        if parent is not None and parent != last:
            forks.add(parent)
        last = id
    return Branches(frozenset(forks), nearest)


T = TypeVar("T")


Node: TypeAlias = tuple[str, str | None, T]


def sort_tree(nodes: Iterable[Node[T]]) -> tuple[list[Node[T]], int]:
    """Sort the nodes (id, parent, value) so that parents precede their children, otherwise keeping the order.
    Also return how many nodes became roots.

    A node whose parent is missing or part of a cycle becomes a root. If several nodes have the same id, only the first is kept.
    """
    first: dict[str, Node[T]] = {}
    for node in nodes:
        first.setdefault(node[0], node)
    placed: dict[str, Node[T]] = {}
    cut = 0
    for node in first.values():
        chain: list[Node[T]] = []
        seen: set[str] = set()
        current: Node[T] | None = node
        while current is not None and current[0] not in placed and current[0] not in seen:
            chain.append(current)
            seen.add(current[0])
            current = first.get(current[1]) if current[1] is not None else None
        for id, parent, value in reversed(chain):
            loose = parent is not None and parent not in placed
            cut += loose
            placed[id] = (id, None if loose else parent, value)
    return list(placed.values()), cut
