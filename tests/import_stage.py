"""Shared code of the import tests: a home, a source, an import."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moot.config.settings import Settings
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Source, mark_of
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.format import Format
from moot.types.store import Store
from talk_format import Talk, line
from verification import check_homes

HEAD = line(talk="t1", title="Lines")
USER = line(id="u1", role="user", text="hello", at=1_700_000_000_000)
ONE = line(id="a1", parent="u1", role="assistant", text="one", at=1_700_000_001_000)
TWO = line(id="a1", parent="u1", role="assistant", text="two", at=1_700_000_002_000)
NEXT = line(id="u2", parent="a1", role="user", text="and then", at=1_700_000_003_000)


@asynccontextmanager
async def stored(home: Path) -> AsyncGenerator[Store, None]:
    store = await open_store(Settings(home))
    try:
        yield store
    finally:
        await store.close()
    await check_homes(home)


def source(path: Path, format: Format | None = None) -> Source:
    reader = format or Talk()
    return Source(path, reader, mark_of(reader, path))


async def take(store: Store, *paths: Path, **wanted: Any) -> Report:
    report = Report()
    await import_sources(store, [source(path) for path in paths], ImportOptions(**wanted), report)
    return report


async def only(store: Store) -> Conversation:
    (found,) = (await store.conversations.list()).items
    return found
