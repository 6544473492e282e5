"""The SQLite implementation of `Imports`. Known entries are looked up on the reader thread, so that the writer only stores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os import fsdecode, fsencode
from typing import Any

from moot.convert.imports import key_at_host
from moot.store import lookup
from moot.store.database.connection import Connection
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.imports.batches import fresh, made_by, place_of, take, variants
from moot.store.imports.conversations import add, receive, settle
from moot.store.imports.hosts import copy_of, is_purged
from moot.types.conversation import Conversation
from moot.types.imports import FinalFacts, ImportCounts, ImportTarget, IncomingConversation, IncomingEntry, Recording, SourceMark
from moot.types.token import LOCAL_USER

_MARK = "format, version, path, size, modified_at, inode, conversations, problems, read_at"


class StoredImports:
    """The SQLite implementation of `Imports`; imported conversations belong to the owner."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner or LOCAL_USER

    async def find(self, format: str, source_id: str) -> Conversation | None:
        def work(connection: Connection) -> Conversation | None:
            found = place_of(connection, self._owner, format, source_id)
            return None if found is None else lookup.conversation(connection, found.id)

        return await self._reader.read(work)

    async def add(self, recording: Recording) -> Conversation:
        return await self._writer.write(partial(add, recording, self._owner), recording.conversation.id, sync=True)

    async def receive(self, arriving: IncomingConversation, *, dry_run: bool = False) -> ImportTarget:
        if dry_run:
            return await self._reader.read(lambda connection: _would_receive(connection, arriving, self._owner))
        return await self._writer.write(
            partial(receive, arriving, self._owner), f"import:{arriving.format}:{arriving.host}:{arriving.source_id}"
        )

    async def take(
        self, received: ImportTarget, arrivals: Sequence[IncomingEntry], *, compare: bool = False, dry_run: bool = False
    ) -> ImportCounts:
        if dry_run and received.is_new:
            return _would_take(arrivals, arrivals, ())
        if received.is_new:  # a new conversation has no known entries; the transaction checks the owner
            return await self._take(received, arrivals, compare)

        def look(connection: Connection) -> tuple[list[IncomingEntry], list[bytes]]:
            no = lookup.number(connection, received.id, self._owner)
            # a dry run counts only messages that would change, not those that must be compared to know that
            seen = [one._replace(compare=False) for one in arrivals] if dry_run else arrivals
            unknown = fresh(connection, no, seen, received.rewritten, compare=compare)
            return unknown, list(variants(connection, no, (one.key for one in unknown))) if dry_run else []

        unknown, keys = await self._reader.read(look)
        known = ImportCounts(known=len(arrivals) - len(unknown))
        if dry_run:
            return _would_take(arrivals, unknown, keys)
        if not unknown:
            return known
        return known + await self._take(received, unknown, compare)

    async def _take(self, received: ImportTarget, arrivals: Sequence[IncomingEntry], compare: bool) -> ImportCounts:
        work = partial(take, (received.id, self._owner), arrivals, received, compare)
        counts, rewritten, taken = await self._writer.write(work, received.id)
        received.rewritten.update(rewritten)
        received.taken.update(taken)
        return counts

    async def settle(self, received: ImportTarget, settled: FinalFacts) -> Conversation:
        return await self._writer.write(partial(settle, received.id, self._owner, settled), received.id)

    async def mark(self, format: str, path: str) -> SourceMark | None:
        def work(connection: Connection) -> SourceMark | None:
            row: Any = connection.execute(
                f"SELECT {_MARK} FROM import_source WHERE owner_id = ? AND format = ? AND path = ?", (self._owner, format, fsencode(path))
            ).fetchone()
            return None if row is None else SourceMark(row[0], row[1], fsdecode(row[2]), *row[3:])

        return await self._reader.read(work)

    async def remember(self, mark: SourceMark) -> None:
        def work(transaction: Transaction) -> None:
            values = (mark.format, mark.version, fsencode(mark.path), mark.size, mark.modified_at, mark.inode)
            transaction.execute(
                f"INSERT OR REPLACE INTO import_source (owner_id, {_MARK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (self._owner, *values, mark.conversations, mark.problems, transaction.now_ms),
            )

        await self._writer.write(work)

    async def exported(self, path: str) -> int | None:
        sql = (
            "SELECT w.size FROM written_file AS w JOIN conversation AS c ON c.id = w.conversation"
            " WHERE w.path = ? AND w.kind = 'export' AND c.owner_id = ?"
        )

        def work(connection: Connection) -> int | None:
            row: Any = connection.execute(sql, (fsencode(path), self._owner)).fetchone()
            return None if row is None else row[0]

        return await self._reader.read(work)

    async def counts(self) -> dict[str, int]:
        sql = "SELECT format, count(*) FROM import_conversation WHERE owner_id = ? GROUP BY format"
        return await self._reader.read(lambda connection: dict(connection.execute(sql, (self._owner,)).fetchall()))


def _would_receive(connection: Connection, arriving: IncomingConversation, owner: str) -> ImportTarget:
    found = place_of(connection, owner, arriving.format, key_at_host(arriving.host, arriving.source_id))
    if found is None and is_purged(connection, arriving, owner):
        return ImportTarget("", closed=True)
    if found is None and (copied := copy_of(connection, arriving, owner)) is not None:
        found = copied[1]
    if found is not None:
        return ImportTarget(found.id, closed=found.deleted, version=found.version, is_alias=found.is_alias)
    ours = made_by(connection, owner, arriving)
    return ImportTarget("", is_new=True) if ours is None else ImportTarget(ours, closed=True)


def _would_take(arrivals: Sequence[IncomingEntry], unknown: Sequence[IncomingEntry], existing: Sequence[bytes]) -> ImportCounts:
    """Estimate the result for a dry run, in which any changed message counts as grown."""
    keys = set(existing)
    records = sum(one.key[:1] == b"\0" for one in unknown)
    grown = sum(one.key in keys for one in unknown if one.key[:1] != b"\0")
    return ImportCounts(added=len(unknown) - records - grown, grown=grown, records=records, known=len(arrivals) - len(unknown))
