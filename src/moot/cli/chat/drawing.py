"""Message trees in ASCII. Only branches are indented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.types.tree import Node


def tree_lines(nodes: Sequence[Node], *, deleted: bool = False) -> Iterator[str]:
    """Yield a line for each message: `*` on the shown branch, its number, role and first line. The text is untrusted and not cleaned.

    Deleted messages are skipped unless `deleted`; their children are attached to their parent.
    """
    kept, behind = _kept(nodes, deleted)
    width = len(str(max(kept, default=0)))
    todo = [(no, connector, below) for no, connector, below in _forks(behind.get(0, ()), "")]
    while todo:
        no, connector, below = todo.pop()
        yield f"{'*' if kept[no].shown else ' '} {connector}{_label(kept[no], width)}"
        todo += _forks(behind.get(no, ()), below)


def _forks(numbers: Sequence[int], below: str) -> list[tuple[int, str, str]]:
    """Return the children of a message, last first: number, prefix of its own line, and prefix of the lines below it."""
    if len(numbers) == 1:
        return [(numbers[0], below, below)]
    last = len(numbers) - 1
    return [
        (no, f"{below}{'`-' if at == last else '|-'}", f"{below}{'  ' if at == last else '| '}")
        for at, no in reversed(list(enumerate(numbers)))
    ]


def _kept(nodes: Sequence[Node], deleted: bool) -> tuple[dict[int, Node], dict[int, list[int]]]:
    """Return the messages to draw by number, and the children of each. 0 is the root."""
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


def _label(node: Node, width: int) -> str:
    marks = [word for word, holds in ((node.status, node.status != "finished"), ("deleted", node.deleted)) if holds]
    mark = f" ({', '.join(marks)})" if marks else ""
    return f"{node.no:>{width}} {node.role}{mark}: {node.line}".rstrip()
