"""The message tree of a conversation as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.store.connect import Queries
from moot.store.events import Events
from moot.store.rows import MESSAGE, message_of
from moot.types.conversation import Conversation
from moot.types.part import Part, is_tool, tool_name
from moot.types.tree import Node

__all__ = ["nodes"]

_LINE = 200
"""Maximum length of a line."""


def nodes(queries: Queries, conversation: Conversation, events: Events) -> list[Node]:
    """Implement `Tree.nodes`."""
    rows: list[Any] = queries.execute(
        f"SELECT {MESSAGE}, m.deleted_at FROM message AS m JOIN conversation AS c ON c.no = m.conversation"
        " WHERE m.conversation = ? ORDER BY m.no",
        (conversation.no,),
    ).fetchall()
    shown = _shown({row[0]: row[5] for row in rows}, conversation.head)
    found: list[Node] = []
    for number, row in enumerate(rows, 1):
        message = events.folded(queries, message_of(row), conversation.no)
        line = _line(message.parts)
        place = (number, message.id, message.parent, message.role, message.status, line)
        found.append(Node(*place, message.created_at, message.run, message.id in shown, row[14] is not None))
    return found


def _shown(parents: dict[str, str | None], head: str | None) -> set[str]:
    found: set[str] = set()
    while head is not None and head in parents:
        found.add(head)
        head = parents[head]
    return found


def _line(parts: Sequence[Part]) -> str:
    """Return the first nonempty line of text, or else a description of a tool call or file."""
    for part in parts:
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str):
            line = next((line.strip() for line in text[: 4 * _LINE].splitlines() if line.strip()), "")
            if line:
                return line[:_LINE]
    other = next((part for part in parts if is_tool(part) or part.get("type") == "file"), None)
    if other is None:
        return ""
    return f"→ {tool_name(other)}" if is_tool(other) else f"[{other.get('filename') or 'file'}]"
