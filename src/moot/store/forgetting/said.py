"""The texts that a person typed in conversations: prompts and titles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moot.store.connect import Queries
from moot.store.rows import DAMAGED, MESSAGE, message_of
from moot.types.part import text_of

__all__ = ["prompts"]


def prompts(queries: Queries, conversations: Iterable[int]) -> set[str]:
    """Return the texts of all prompts, and the titles."""
    found: set[str] = set()
    for no in conversations:
        rows: Any = queries.execute(
            f"SELECT {MESSAGE} FROM message AS m JOIN conversation AS c ON c.no = m.conversation"
            " WHERE m.conversation = ? AND m.role = 'user'",
            (no,),
        )
        for row in rows:
            message = message_of(row)
            if message.parts != (DAMAGED,):
                found.add(text_of(message.parts))
        found.update(title for (title,) in queries.execute("SELECT title FROM conversation WHERE no = ?", (no,)))
    return {text for text in found if text}
