"""Shared pages. Links are found by the digest of their secret; the page of a closed share is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from moot.errors import NotFound
from moot.store import lookup
from moot.store.connect import Queries
from moot.store.lookup import SHORTEST_PREFIX
from moot.store.reader import Reader
from moot.store.transaction import Transaction
from moot.store.writer import Writer
from moot.types.canonical import dumps, loads
from moot.types.ids import Clock
from moot.types.share import NewShare, Share, SharedPage

__all__ = ["StoredShares"]

_SHARE: LiteralString = (
    "SELECT s.id, c.id, s.title, s.expires_at, s.left_out, s.size, s.created_at, s.revoked_at, s.owner_id"
    " FROM share AS s JOIN conversation AS c ON c.no = s.conversation"
)
_HIGHEST = "\U0010ffff"


class StoredShares:
    """`Shares` on SQLite; `owner` None = all owners."""

    def __init__(self, writer: Writer, reader: Reader, clock: Clock, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._owner = owner

    async def add(self, new: NewShare) -> Share:
        def work(transaction: Transaction) -> Share:
            share, page = new.share, new.page
            conversation = lookup.conversation(transaction, share.conversation, self._owner)
            _sweep(transaction)
            omitted, content, now = dumps(list(share.left_out)), (page.content, len(page.content), page.policy), transaction.now_ms
            transaction.execute(
                "INSERT INTO share (id, owner_id, conversation, hash, title, page, size, policy, left_out, created_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (share.id, conversation.owner, conversation.no, new.digest, share.title, *content, omitted, now, share.expires_at),
            )
            return _found(transaction, share.id, None)

        return await self._writer.write(work, sync=True)

    async def page(self, digest: bytes) -> SharedPage | None:
        now = self._clock.now() // 1000

        def work(queries: Queries) -> SharedPage | None:
            row: Any = queries.execute(
                "SELECT s.page, s.policy FROM share AS s JOIN conversation AS c ON c.no = s.conversation"
                " WHERE s.hash = ? AND s.revoked_at IS NULL AND s.expires_at > ? AND c.deleted_at IS NULL",
                (digest, now),
            ).fetchone()
            return SharedPage(bytes(row[0]), row[1]) if row is not None and row[0] else None

        return await self._reader.read(work)

    async def list(self, *, conversation: str | None = None, closed: bool = False) -> Sequence[Share]:
        now = self._clock.now() // 1000
        rows = await self._reader.read(
            lambda queries: queries.execute(
                f"{_SHARE} WHERE (?1 IS NULL OR s.owner_id = ?1) AND (?2 IS NULL OR c.id = ?2)"
                " AND (?3 OR (s.revoked_at IS NULL AND s.expires_at > ?4)) ORDER BY s.created_at DESC, s.id DESC",
                (self._owner, conversation, closed, now),
            ).fetchall()
        )
        return [_share(row) for row in rows]

    async def revoke(self, reference: str) -> Share:
        def work(transaction: Transaction) -> Share:
            found = _found(transaction, reference, self._owner)
            transaction.execute(
                "UPDATE share SET revoked_at = coalesce(revoked_at, ?), page = x'' WHERE id = ?", (transaction.now_ms, found.id)
            )
            _sweep(transaction)
            return _found(transaction, found.id, None)

        return await self._writer.write(work, sync=True)


def _sweep(transaction: Transaction) -> None:
    """Delete the pages of expired shares."""
    transaction.execute("UPDATE share SET page = x'' WHERE expires_at <= ? AND page != x''", (transaction.now_ms,))


def _found(queries: Queries | Transaction, reference: str, owner: str | None) -> Share:
    tries: list[tuple[LiteralString, tuple[str, ...]]] = [("s.id = ?2", (reference,))]
    if len(reference) >= SHORTEST_PREFIX:
        tries.append(("s.id >= ?2 AND s.id < ?3", (reference, reference + _HIGHEST)))
    for where, values in tries:
        rows = queries.execute(f"{_SHARE} WHERE (?1 IS NULL OR s.owner_id = ?1) AND {where} LIMIT 2", (owner, *values)).fetchall()
        if len(rows) == 1:
            return _share(rows[0])
        if rows:
            raise NotFound(f"{reference!r} matches several shared pages.", fix="Give the whole id, see `moot share --list`.")
    raise NotFound(f"No shared page matches {reference!r}.", fix="See `moot share --list`.")


def _share(row: Any) -> Share:
    id, conversation, title, expires_at, left_out, size, created_at, revoked_at, owner = row
    omitted = loads(left_out)
    items = tuple(omitted) if isinstance(omitted, list) else ()
    return Share(id, conversation, title, expires_at, items, size, created_at, revoked_at, owner)
