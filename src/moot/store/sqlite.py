"""The store on SQLite: opening the database and providing its parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, LiteralString, Self

import anyio
from anyio import to_thread

from moot.config.settings import Settings
from moot.plugins.registry import Registry
from moot.store.access import AccessTokens
from moot.store.content.blobs import BlobFiles, ContentStore
from moot.store.database import connection as library
from moot.store.database.connection import Connection
from moot.store.database.locks import FileLock
from moot.store.database.poller import Poller
from moot.store.database.reader import Reader
from moot.store.database.schema import prepare, quick_check, version_of
from moot.store.database.writer import Writer
from moot.store.log.append import EventLog, SqliteLogReader
from moot.store.log.events import Events
from moot.store.migrations import newest
from moot.store.runs import RunRecords, SqliteGrants, SqliteRunReader
from moot.store.tree.conversations import ConversationTree
from moot.store.tree.edits import MessageTree
from moot.store.tree.projects import SqliteProjects
from moot.types.canonical import JsonObject
from moot.types.ids import Clock, SystemClock

if TYPE_CHECKING:
    from moot.types.channel import ChannelAnswers
    from moot.types.cron import JobStore
    from moot.types.imports import Imports
    from moot.types.knowledge import Knowledge
    from moot.types.maintenance import Erasure, Upkeep
    from moot.types.push import Devices
    from moot.types.search import Search, SemanticSearch
    from moot.types.share import Shares
    from moot.types.stats import Stats
    from moot.types.task import Tasks
    from moot.types.verify import Translations, Verifier
    from moot.types.webhook import WebhookStore


def report(connection: Connection, path: Path, protected: bool) -> JsonObject:
    """Return library, version, protection, schema, integrity and sizes. Reads the whole file."""
    pages, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    return {
        "path": str(path),
        "library": library.NAME,
        "version": ".".join(map(str, library.VERSION)),
        "wal_reset_bug": library.has_wal_reset_bug(library.VERSION),
        "protection": "one process commits at a time" if protected else "not needed",
        "schema": version_of(connection),
        "integrity": "; ".join(quick_check(connection, 10)) or "ok",
        "bytes": pages * size,
        **{f"{name}s": _count(connection, name) for name in ("conversation", "message", "run", "blob")},
    }


def _count(connection: Connection, table: LiteralString) -> int | None:
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except library.sqlite.DatabaseError:
        return None


LAZY_PARTS = Registry(
    "moot.store.seldom",
    {
        "answers": "moot.store.channels:StoredAnswers",
        "copies": "moot.store.maintenance.purge.copies:erase_in_copies",
        "devices": "moot.store.channels:StoredDevices",
        "erasure": "moot.store.maintenance.purge:Eraser",
        "knowledge": "moot.store.search.knowledge:SqliteKnowledge",
        "imports": "moot.store.imports.importer:StoredImports",
        "jobs": "moot.store.tasks.jobs:StoredJobs",
        "meaning": "moot.store.search.semantic:SqliteSemanticSearch",
        "search": "moot.store.search.full_text:FullText",
        "shares": "moot.store.access:StoredShares",
        "stats": "moot.store.stats.reports:AnswerStats",
        "tasks": "moot.store.tasks.items:SqliteTasks",
        "translations": "moot.store.maintenance.translation:StoreTranslations",
        "upkeep": "moot.store.maintenance.upkeep:StoreUpkeep",
        "verifier": "moot.store.maintenance.verify:StoreVerifier",
        "webhooks": "moot.store.channels:StoredWebhooks",
    },
)
"""Parts that many commands don't need. They are loaded on first use, so that these commands don't import them."""


@dataclass(frozen=True, slots=True)
class _Base:
    writer: Writer
    reader: Reader
    events: Events
    indexer: FileLock
    meaning: FileLock
    files: BlobFiles
    clock: Clock


class _Parts:
    """The parts that a store and the view of one owner have in common.

    An `owner` of None means all owners. Some are loaded on first use.
    """

    def __init__(self, base: _Base, owner: str | None) -> None:
        writer, reader, events = base.writer, base.reader, base.events
        self._base = base
        self._owner = owner
        self.conversations = ConversationTree(writer, reader, events, owner)
        self.tree = MessageTree(writer, reader, events, owner)
        self.projects = SqliteProjects(writer, reader, owner)
        self.grants = SqliteGrants(writer, owner)
        self.blobs = ContentStore(base.files, writer, reader, owner)

    @property
    def search(self) -> Search:
        """Full-text search."""
        return self._search

    @cached_property
    def _search(self) -> Search:
        return LAZY_PARTS.load("search")(self._base.writer, self._base.reader, self._base.indexer, self._owner)

    @property
    def stats(self) -> Stats:
        """Statistics of answers."""
        return LAZY_PARTS.load("stats")(self._base.writer, self._base.reader, self._owner)

    @property
    def imports(self) -> Imports:
        """Imported conversations and their sources."""
        return LAZY_PARTS.load("imports")(self._base.writer, self._base.reader, self._owner)

    @property
    def knowledge(self) -> Knowledge:
        """Documents that agents may search."""
        return LAZY_PARTS.load("knowledge")(self._base.writer, self._base.reader, self._owner)

    @property
    def meaning(self) -> SemanticSearch:
        return LAZY_PARTS.load("meaning")(self._base.writer, self._base.reader, self._base.meaning, self.search, self._owner)

    @property
    def jobs(self) -> JobStore:
        """Cron jobs and their history."""
        return LAZY_PARTS.load("jobs")(self._base.writer, self._base.reader, self._owner)

    @property
    def tasks(self) -> Tasks:
        """Tasks of projects."""
        return LAZY_PARTS.load("tasks")(self._base.writer, self._base.reader, self._owner)

    @property
    def devices(self) -> Devices:
        """Browsers that get push notifications."""
        return LAZY_PARTS.load("devices")(self._base.writer, self._base.reader, self._owner)

    @property
    def shares(self) -> Shares:
        return LAZY_PARTS.load("shares")(self._base.writer, self._base.reader, self._base.clock, self._owner)


class SqliteOwnerStore(_Parts):
    """The SQLite implementation of `OwnerStore`: the data of one owner."""

    def __init__(self, base: _Base, owner: str) -> None:
        super().__init__(base, owner)
        self.log = SqliteLogReader(base.reader, base.events, owner)
        self.records = SqliteRunReader(base.reader, owner)


class SqliteStore(_Parts):
    """The SQLite implementation of `Store`: the data of all owners in one file."""

    def __init__(self, path: Path, state: Path, *, durability: Literal["normal", "full"], clock: Clock, protected: bool) -> None:
        protection = FileLock(state / "commit.lock") if protected else None
        self._path = path
        self._sealer = FileLock(state / "sealer.lock")
        self._clock = clock
        self._protected = protected
        self._erasing = anyio.Lock()
        self._reader = Reader(path)
        self._writer = Writer(path, clock, state / "writers.lock", durability=durability, version=newest(), protection=protection)
        self._poller = Poller(path, self._writer)
        events = Events()
        indexer, meaning, files = FileLock(state / "indexer.lock"), FileLock(state / "meaning.lock"), BlobFiles(path.parent / "blobs")
        super().__init__(_Base(self._writer, self._reader, events, indexer, meaning, files, clock), None)
        self.log = EventLog(self._writer, self._reader, events, files.has)
        self.records = RunRecords(self._writer, self._reader, events)
        self.tokens = AccessTokens(self._writer, self._reader, clock)

    def of(self, owner: str) -> SqliteOwnerStore:
        """Return a view restricted to one owner."""
        return SqliteOwnerStore(self._base, owner)

    @property
    def webhooks(self) -> WebhookStore:
        """Events for outgoing webhooks."""
        return LAZY_PARTS.load("webhooks")(self._writer, self._reader)

    @property
    def answers(self) -> ChannelAnswers:
        """The answers that channels have shown."""
        return LAZY_PARTS.load("answers")(self._writer, self._reader)

    @property
    def verifier(self) -> Verifier:
        return LAZY_PARTS.load("verifier")(self._reader, self._base.files)

    @property
    def translations(self) -> Translations:
        """Newer translations of old exchanges."""
        return LAZY_PARTS.load("translations")(self._writer, self._reader)

    @property
    def upkeep(self) -> Upkeep:
        return LAZY_PARTS.load("upkeep")(self._writer, self._reader, self._path, self._sealer, self._clock)

    async def has_pending_erasure(self) -> bool:
        """Return True if a purge or redaction is unfinished, or a temporary conversation has expired."""
        sql = "SELECT EXISTS (SELECT 1 FROM forgetting WHERE done_at IS NULL) OR EXISTS (SELECT 1 FROM conversation WHERE expires_at < ?)"
        return await self._reader.row(sql, (self._clock.now() // 1000,), lambda row: bool(row[0])) or False

    @property
    def erasure(self) -> Erasure:
        parts = self._writer, self._reader, self._base.files, self._path, self._clock, self._erasing
        return LAZY_PARTS.load("erasure")(*parts, LAZY_PARTS.load("copies"))

    def foreign_commits(self, *, interval: float = 0.02) -> AsyncGenerator[None, None]:
        """Yield whenever another process has committed. All callers in this process share a single poller."""
        return self._poller.others(interval)

    async def health(self) -> JsonObject:
        """Return the state of the database for `moot doctor`."""
        return await self._reader.read(lambda connection: report(connection, self._path, self._protected))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.close()

    async def close(self) -> None:
        """Close all connections, the writer's connection last, because only it can checkpoint the write-ahead log into the file."""
        self._poller.stop()
        await self._reader.close()
        await self._writer.close()


async def open_store(settings: Settings, *, clock: Clock | None = None) -> SqliteStore:
    """Open the store of a home, creating or upgrading the database if needed. Close it, or open it with `async with await open_store(…)`.

    Raise StoreTooNew, StoreCorrupt, or StoreError if the folder is not writable.
    """
    state = settings.home / "state"
    await to_thread.run_sync(prepare, settings.database, FileLock(state / "migrate.lock"))
    return SqliteStore(
        settings.database,
        state,
        durability=settings.storage.durability,
        clock=clock or SystemClock(),
        protected=library.has_wal_reset_bug(library.VERSION),
    )
