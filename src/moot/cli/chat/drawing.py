"""A tree of messages as lines of ASCII: a chain goes straight down, only what branches goes aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.types.tree import Node


def drawn(nodes: Sequence[Node], *, deleted: bool = False) -> Iterator[str]:
    """One line for each message: `*` on the shown branch, its number, role and first line. Untrusted text, uncleaned.

    Deleted messages are left out unless asked for; what stands behind them hangs where they hang.
    """
    kept, behind = _kept(nodes, deleted)
    width = len(str(max(kept, default=0)))
    todo = [(no, connector, below) for no, connector, below in _forks(behind.get(0, ()), "")]
    while todo:
        no, connector, below = todo.pop()
        yield f"{'*' if kept[no].shown else ' '} {connector}{_words(kept[no], width)}"
        todo += _forks(behind.get(no, ()), below)


def _forks(numbers: Sequence[int], below: str) -> list[tuple[int, str, str]]:
    """What hangs at one place, last first: number, what stands before its own line, and before the lines behind it."""
    if len(numbers) == 1:
        return [(numbers[0], below, below)]
    last = len(numbers) - 1
    return [
        (no, f"{below}{'`-' if at == last else '|-'}", f"{below}{'  ' if at == last else '| '}")
        for at, no in reversed(list(enumerate(numbers)))
    ]


def _kept(nodes: Sequence[Node], deleted: bool) -> tuple[dict[int, Node], dict[int, list[int]]]:
    """The messages to draw by number, and what hangs behind each; 0 = at the root."""
    numbers: dict[str | None, int] = {None: 0}
    kept: dict[int, Node] = {}
    behind: dict[int, list[int]] = {}
    for node in nodes:
        at = numbers.get(node.parent, 0)
        if node.deleted and not deleted:
            numbers[node.id] = at
            continue
        numbers[node.id] = node.no
        kept[node.no] = node
        behind.setdefault(at, []).append(node.no)
    return kept, behind


def _words(node: Node, width: int) -> str:
    marks = [word for word, holds in ((node.status, node.status != "finished"), ("deleted", node.deleted)) if holds]
    mark = f" ({', '.join(marks)})" if marks else ""
    return f"{node.no:>{width}} {node.role}{mark}: {node.line}".rstrip()
