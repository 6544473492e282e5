"""The store on SQLite: opening the database and providing its parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anyio import to_thread

from moot.config.settings import Settings
from moot.plugins.registry import Registry
from moot.store import library
from moot.store.blobs import BlobFiles, ContentStore
from moot.store.conversations import ConversationTree
from moot.store.events import Events
from moot.store.grants import ConversationGrants
from moot.store.health import report
from moot.store.importing import StoredImports
from moot.store.locks import FileLock
from moot.store.log import EventLog, LogReader
from moot.store.migrate import prepare
from moot.store.migrations import newest
from moot.store.poller import Poller
from moot.store.projects import OwnProjects
from moot.store.reader import Reader
from moot.store.records import RunReader, RunRecords
from moot.store.search import FullText
from moot.store.stats import AnswerStats
from moot.store.tokens import AccessTokens
from moot.store.tree import MessageTree
from moot.store.writer import Writer
from moot.types.canonical import JsonObject
from moot.types.forgetting import Forgetting
from moot.types.ids import Clock, SystemClock
from moot.types.meaning import Meaning
from moot.types.share import Shares
from moot.types.upkeep import Upkeep
from moot.types.verify import Translations, Verifying

__all__ = ["SqliteStore", "open_store"]


SELDOM = Registry(
    "moot.store.seldom",
    {
        "copies": "moot.store.forgetting.reaching:reach",
        "forgetting": "moot.store.forgetting:Forgetter",
        "meaning": "moot.store.meaning:StoredMeaning",
        "shares": "moot.store.shares:StoredShares",
        "translations": "moot.store.translating:StoreTranslations",
        "upkeep": "moot.store.upkeep:StoreUpkeep",
        "verifier": "moot.store.verify:StoreVerifier",
    },
)
"""Parts that few commands need; loaded on first use, so that other commands don't import them."""


@dataclass(frozen=True, slots=True)
class _Base:
    """Resources shared by all views of a store."""

    writer: Writer
    reader: Reader
    events: Events
    indexer: FileLock
    meaning: FileLock
    files: BlobFiles
    clock: Clock


class SqliteHoldings:
    """`Holdings` on one SQLite file; `owner` None = all owners."""

    def __init__(self, base: _Base, owner: str | None = None) -> None:
        writer, reader, events = base.writer, base.reader, base.events
        self._base = base
        self._owner = owner
        self.log = LogReader(reader, events, owner)
        self.records = RunReader(reader, owner)
        self.conversations = ConversationTree(writer, reader, events, owner)
        self.tree = MessageTree(writer, reader, events, owner)
        self.projects = OwnProjects(writer, reader, owner)
        self.grants = ConversationGrants(writer, owner)
        self.search = FullText(writer, reader, base.indexer, owner)
        self.stats = AnswerStats(writer, reader, owner)
        self.imports = StoredImports(writer, reader, owner)
        self.blobs = ContentStore(base.files, writer, reader, owner)

    @property
    def meaning(self) -> Meaning:
        """Semantic search."""
        return SELDOM.load("meaning")(self._base.writer, self._base.reader, self._base.meaning, self.search, self._owner)

    @property
    def shares(self) -> Shares:
        """Shared pages."""
        return SELDOM.load("shares")(self._base.writer, self._base.reader, self._base.clock, self._owner)


class SqliteStore:
    """`Store` on one SQLite file."""

    def __init__(self, path: Path, state: Path, *, durability: Literal["normal", "full"], clock: Clock, protected: bool) -> None:
        protection = FileLock(state / "commit.lock") if protected else None
        self._path = path
        self._sealer = FileLock(state / "sealer.lock")
        self._clock = clock
        self._protected = protected
        self._reader = Reader(path)
        self._writer = Writer(path, clock, state / "writers.lock", durability=durability, version=newest(), protection=protection)
        self._poller = Poller(path, self._writer)
        events = Events()
        indexer, meaning, files = FileLock(state / "indexer.lock"), FileLock(state / "meaning.lock"), BlobFiles(path.parent / "blobs")
        self._base = _Base(self._writer, self._reader, events, indexer, meaning, files, clock)
        whole = self._whole = SqliteHoldings(self._base)
        self.log = EventLog(self._writer, self._reader, events)
        self.records = RunRecords(self._writer, self._reader, events)
        self.conversations = whole.conversations
        self.tree = whole.tree
        self.projects = whole.projects
        self.grants = whole.grants
        self.search = whole.search
        self.stats = whole.stats
        self.imports = whole.imports
        self.blobs = whole.blobs
        self.tokens = AccessTokens(self._writer, self._reader, clock)

    @property
    def meaning(self) -> Meaning:
        """Semantic search."""
        return self._whole.meaning

    def of(self, owner: str) -> SqliteHoldings:
        """Return a view restricted to one owner."""
        return SqliteHoldings(self._base, owner)

    @property
    def shares(self) -> Shares:
        """Shared pages."""
        return self._whole.shares

    @property
    def verifier(self) -> Verifying:
        """Verification of stored data."""
        return SELDOM.load("verifier")(self._reader, self._base.files)

    @property
    def translations(self) -> Translations:
        """Newer translations of old exchanges."""
        return SELDOM.load("translations")(self._writer, self._reader)

    @property
    def upkeep(self) -> Upkeep:
        """Storage maintenance."""
        return SELDOM.load("upkeep")(self._writer, self._reader, self._path, self._sealer, self._clock)

    async def is_forgetting(self) -> bool:
        """Return True if a purge or redaction is unfinished."""
        sql = "SELECT 1 FROM forgetting WHERE done_at IS NULL LIMIT 1"
        return await self._reader.read(lambda connection: connection.execute(sql).fetchone() is not None)

    @property
    def forgetting(self) -> Forgetting:
        """Purges and redactions."""
        return SELDOM.load("forgetting")(self._writer, self._reader, self._base.files, self._path, self._clock, SELDOM.load("copies"))

    def foreign_commits(self, *, interval: float = 0.02) -> AsyncGenerator[None, None]:
        """Yield whenever another process has committed; this process's only poller."""
        return self._poller.others(interval)

    async def health(self) -> JsonObject:
        """Return the facts for `moot doctor`."""
        return await self._reader.read(lambda connection: report(connection, self._path, self._protected))

    async def close(self) -> None:
        """Close all connections. The writer's is last, because only it can checkpoint the write-ahead log into the file."""
        self._poller.stop()
        await self._reader.close()
        await self._writer.close()


async def open_store(settings: Settings, *, clock: Clock | None = None) -> SqliteStore:
    """Open the store of a home, creating or upgrading the database if needed; the caller closes it.

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
