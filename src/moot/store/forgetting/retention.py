"""Conversations that have expired under the retention rules."""

from __future__ import annotations

from typing import Any

from moot.store.connect import Queries
from moot.store.rows import CONVERSATION, conversation_of
from moot.types.conversation import Conversation
from moot.types.forgetting import Expiry
from moot.types.retention import Keeping, Retention

__all__ = ["over"]

_DAY = 86_400_000
"""ms"""


def over(queries: Queries, rules: Retention, now: int) -> list[Expiry]:
    """Return conversations to delete or purge, except those with an unfinished run. Sub-conversations follow their parent, unless they were
    deleted separately."""
    names: dict[str, str] = dict(queries.execute("SELECT id, name FROM project").fetchall())
    if not (rules.trash_days or rules.keep_days or rules.archived_days or rules.projects):
        return []
    found: Any = queries.execute(
        f"SELECT {CONVERSATION} FROM conversation WHERE (parent_id IS NULL OR deleted_at IS NOT NULL) AND NOT EXISTS"
        " (SELECT 1 FROM run WHERE conversation = no AND status IN ('queued', 'running', 'waiting', 'interrupted')) ORDER BY no"
    )
    expiries: list[Expiry] = []
    for row in found:
        conversation = conversation_of(row)
        keeping = rules.projects.get(conversation.project) or rules.projects.get(names.get(conversation.project, "")) or rules
        if (expiry := _judged(conversation, rules.trash_days, keeping, now)) is not None:
            expiries.append(expiry)
    return expiries


def _judged(conversation: Conversation, trash_days: int, keeping: Keeping, now: int) -> Expiry | None:
    if conversation.deleted_at is not None:
        if _is_over(conversation.deleted_at, trash_days, now):
            return Expiry(conversation, "purge", f"deleted more than {_days(trash_days)} ago")
    elif conversation.archived_at is not None:
        if _is_over(conversation.archived_at, keeping.archived_days, now):
            return Expiry(conversation, "delete", f"archived more than {_days(keeping.archived_days)} ago")
    elif _is_over(conversation.updated_at, keeping.keep_days, now):
        return Expiry(conversation, "delete", f"no activity for more than {_days(keeping.keep_days)}")
    return None


def _is_over(since: int, days: int, now: int) -> bool:
    return days > 0 and since < now - days * _DAY


def _days(days: int) -> str:
    return "a day" if days == 1 else f"{days:,} days"
