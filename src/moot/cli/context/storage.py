"""Opening the store without an engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncGenerator[SqliteStore, None]:
    """Open the store without an engine, which would change the runs of dead processes."""
    store = await open_store(settings)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()
