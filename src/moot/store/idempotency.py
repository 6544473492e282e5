"""Idempotency keys: one row per key, stored before the work starts."""

from __future__ import annotations

from typing import Any, cast

from moot.store.transaction import Transaction, quick
from moot.store.writer import Writer
from moot.types.canonical import dumps, loads
from moot.types.idempotency import Claim, Kept

__all__ = ["HELD", "StoredAnswers"]

HELD = 24 * 3600 * 1000
"""Lifetime of a key in ms."""

_SWEPT = 100
"""Number of expired keys deleted at a time."""


class StoredAnswers:
    """`Idempotency` on SQLite."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def claim(self, owner: str, key: str, *, request: bytes, worker: str) -> Claim:
        def work(transaction: Transaction) -> Claim:
            now = transaction.now_ms
            transaction.execute(
                "DELETE FROM idempotency WHERE (owner_id, key) IN (SELECT owner_id, key FROM idempotency WHERE at <= ? LIMIT ?)",
                (now - HELD, _SWEPT),
            )
            row = transaction.row(
                "SELECT request, worker, status, headers, body FROM idempotency WHERE owner_id = ? AND key = ? AND at > ?",
                (owner, key, now - HELD),
            )
            if row is not None:
                return _claim(row, request)
            # an expired row may still exist, because only a limited number is deleted at a time
            transaction.execute(
                "INSERT OR REPLACE INTO idempotency (owner_id, key, request, at, worker) VALUES (?, ?, ?, ?, ?)",
                (owner, key, quick(request), now, worker),
            )
            return Claim("new", worker)

        # not fsynced: whatever the request then commits comes after this row in the same file
        return await self._writer.write(work)

    async def keep(self, owner: str, key: str, kept: Kept) -> None:
        def work(transaction: Transaction) -> None:
            transaction.execute(
                "UPDATE idempotency SET status = ?, headers = ?, body = ? WHERE owner_id = ? AND key = ?",
                (kept.status, quick(dumps([list(pair) for pair in kept.headers])), quick(kept.body), owner, key),
            )

        await self._writer.write(work)

    async def release(self, owner: str, key: str) -> None:
        def work(transaction: Transaction) -> None:
            transaction.execute("DELETE FROM idempotency WHERE owner_id = ? AND key = ? AND status IS NULL", (owner, key))

        await self._writer.write(work)


def _claim(row: Any, request: bytes) -> Claim:
    asked, worker, status, headers, body = row
    if bytes(asked) != request:
        return Claim("other", worker)
    if status is None:
        return Claim("open", worker)
    pairs = cast("list[list[str]]", loads(bytes(headers)))
    return Claim("done", worker, Kept(status, tuple((name, value) for name, value in pairs), bytes(body)))
