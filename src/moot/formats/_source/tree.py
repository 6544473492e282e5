"""Ordering of trees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")


def in_order(nodes: Iterable[tuple[str, str | None, T]]) -> tuple[list[tuple[str, str | None, T]], int]:
    """Return the nodes (id, parent, value) with parents before children, otherwise in the given order, and the number of detached nodes.

    A node whose parent is missing or part of a cycle becomes a root. Of nodes with the same id only the first is kept.
    """
    first: dict[str, tuple[str, str | None, T]] = {}
    for node in nodes:
        first.setdefault(node[0], node)
    placed: dict[str, tuple[str, str | None, T]] = {}
    cut = 0
    for node in first.values():
        chain: list[tuple[str, str | None, T]] = []
        seen: set[str] = set()
        current: tuple[str, str | None, T] | None = node
        while current is not None and current[0] not in placed and current[0] not in seen:
            chain.append(current)
            seen.add(current[0])
            current = first.get(current[1]) if current[1] is not None else None
        for id, parent, value in reversed(chain):
            loose = parent is not None and parent not in placed
            cut += loose
            placed[id] = (id, None if loose else parent, value)
    return list(placed.values()), cut
