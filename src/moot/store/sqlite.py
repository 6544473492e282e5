"""The store on SQLite: opens the database and hands out its parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

from anyio import to_thread

from moot.config.settings import Settings
from moot.store import library
from moot.store.blobs import ContentStore
from moot.store.conversations import ConversationTree
from moot.store.events import Events
from moot.store.grants import ConversationGrants
from moot.store.health import report
from moot.store.locks import FileLock
from moot.store.log import EventLog
from moot.store.migrate import prepare
from moot.store.migrations import newest
from moot.store.poller import Poller
from moot.store.reader import Reader
from moot.store.records import RunRecords
from moot.store.search import FullText
from moot.store.tokens import AccessTokens
from moot.store.tree import MessageTree
from moot.store.writer import Writer
from moot.types.canonical import JsonObject
from moot.types.ids import Clock, SystemClock

__all__ = ["SqliteStore", "open_store"]


class SqliteStore:
    """`Store` on one SQLite file."""

    def __init__(self, path: Path, state: Path, *, durability: Literal["normal", "full"], clock: Clock, protected: bool) -> None:
        protection = FileLock(state / "commit.lock") if protected else None
        self._path = path
        self._protected = protected
        self._reader = Reader(path)
        self._writer = Writer(path, clock, state / "writers.lock", durability=durability, version=newest(), protection=protection)
        self._poller = Poller(path, self._writer)
        events = Events()
        self._log = EventLog(self._writer, self._reader, events)
        self._records = RunRecords(self._writer, self._reader)
        self._conversations = ConversationTree(self._writer, self._reader, events)
        self._tree = MessageTree(self._writer, self._reader, events)
        self._grants = ConversationGrants(self._writer)
        self._search = FullText(self._writer, self._reader, FileLock(state / "indexer.lock"))
        self._blobs = ContentStore(path.parent / "blobs", self._writer, self._reader)
        self._tokens = AccessTokens(self._writer, self._reader, clock)

    @property
    def log(self) -> EventLog:
        return self._log

    @property
    def records(self) -> RunRecords:
        return self._records

    @property
    def conversations(self) -> ConversationTree:
        return self._conversations

    @property
    def tree(self) -> MessageTree:
        return self._tree

    @property
    def grants(self) -> ConversationGrants:
        return self._grants

    @property
    def search(self) -> FullText:
        return self._search

    @property
    def blobs(self) -> ContentStore:
        return self._blobs

    @property
    def tokens(self) -> AccessTokens:
        return self._tokens

    def others(self, *, interval: float = 0.02) -> AsyncGenerator[None, None]:
        """Something each time another process has committed; the one poller of this process."""
        return self._poller.others(interval)

    async def health(self) -> JsonObject:
        """For `moot doctor`: library, version, protection, schema, integrity, sizes."""
        return await self._reader.read(lambda connection: report(connection, self._path, self._protected))

    async def close(self) -> None:
        """Drains the writer, whose connection goes last: only it can fold the write-ahead log back into the file."""
        self._poller.stop()
        await self._reader.close()
        await self._writer.close()


async def open_store(settings: Settings, *, clock: Clock | None = None) -> SqliteStore:
    """The store of that home, made or brought to the newest schema where needed; the caller closes it.

    Raises StoreTooNew, StoreCorrupt, and StoreError when the folder can't be written.
    """
    state = settings.home / "state"
    await to_thread.run_sync(prepare, settings.database, FileLock(state / "migrate.lock"))
    return SqliteStore(
        settings.database,
        state,
        durability=settings.storage.durability,
        clock=clock or SystemClock(),
        protected=library.affected(library.VERSION),
    )
