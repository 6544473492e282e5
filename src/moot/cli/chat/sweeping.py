"""The list of conversations read by an engine, which creates the database and detects dead processes."""

from __future__ import annotations

import anyio

from moot.cli.chat.facts import live_statuses
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.store.listing import Listed
from moot.types.conversation import Conversation
from moot.types.page import Page
from moot.types.run import RunStatus


def read_page(settings: Settings, wanted: Listed) -> tuple[Page[Conversation], dict[str, RunStatus]]:
    """Return a page of conversations and live runs, for a command without an event loop. Raise StoreError on failure."""
    return anyio.run(_read_page, settings, wanted)


async def _read_page(settings: Settings, wanted: Listed) -> tuple[Page[Conversation], dict[str, RunStatus]]:
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
