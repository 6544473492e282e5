"""The list of conversations where only an engine can say: it makes the database, and knows whose process is dead."""

from __future__ import annotations

import anyio

from moot.cli.chat.facts import live_statuses
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.store.listing import Listed
from moot.types.conversation import Conversation
from moot.types.page import Page
from moot.types.run import RunStatus


def seen(settings: Settings, wanted: Listed) -> tuple[Page[Conversation], dict[str, RunStatus]]:
    """A page of conversations, and conversation → state of its live run, for a command without an event loop. Raises StoreError."""
    return anyio.run(_seen, settings, wanted)


async def _seen(settings: Settings, wanted: Listed) -> tuple[Page[Conversation], dict[str, RunStatus]]:
    async with open_engine(settings) as engine:
        shown = await engine.store.conversations.list(
            limit=wanted.limit,
            cursor=wanted.cursor,
            directory=wanted.directory,
            query=wanted.query,
            deleted=wanted.deleted,
            archived=wanted.archived,
        )
        return shown, await live_statuses(engine.store)
