"""Parents before children, whatever the source says of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")


def in_order(nodes: Iterable[tuple[str, str | None, T]]) -> tuple[list[tuple[str, str | None, T]], int]:
    """Nodes (id, parent, what it carries) with each parent before its children, else in the order they came; and how many were cut loose.

    A node whose parent is not there, or stands in a circle with it, hangs on nothing. Of one id the first counts.
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
