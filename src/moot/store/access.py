"""Tokens, sign-in codes, idempotency keys and shared pages. Secrets are stored as digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString, cast

from moot.errors import NotFound
from moot.store import lookup
from moot.store.database.connection import Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction, quick
from moot.store.database.writer import Writer
from moot.store.lookup import prefix_range
from moot.types.canonical import dumps, loads
from moot.types.ids import Clock, new_id
from moot.types.share import NewShare, Share, SharedPage
from moot.types.token import Claim, Scope, StoredResponse, Token, User

LIFETIME_MS = 24 * 3600 * 1000
"""Lifetime of an idempotency key in ms."""

_SWEPT = 100  # number of expired keys deleted at a time


class IdempotencyKeys:
    """The SQLite implementation of `Idempotency`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def claim(self, owner: str, key: str, *, request: bytes, worker: str) -> Claim:
        def work(transaction: Transaction) -> Claim:
            now = transaction.now_ms
            transaction.execute(
                "DELETE FROM idempotency WHERE (owner_id, key) IN (SELECT owner_id, key FROM idempotency WHERE at <= ? LIMIT ?)",
                (now - LIFETIME_MS, _SWEPT),
            )
            row = transaction.row(
                "SELECT request, at, status, headers, body FROM idempotency WHERE owner_id = ? AND key = ? AND at > ?",
                (owner, key, now - LIFETIME_MS),
            )
            if row is not None:
                asked, at, status, headers, body = row
                if bytes(asked) != request:
                    return Claim("other", at)
                if status is None:
                    transaction.execute("UPDATE idempotency SET worker = ? WHERE owner_id = ? AND key = ?", (worker, owner, key))
                    return Claim("open", at)
                pairs = cast("list[list[str]]", loads(bytes(headers)))
                return Claim("done", at, StoredResponse(status, tuple((name, value) for name, value in pairs), bytes(body)))
            # an expired row may still exist, because only a limited number is deleted at a time
            transaction.execute(
                "INSERT OR REPLACE INTO idempotency (owner_id, key, request, at, worker) VALUES (?, ?, ?, ?, ?)",
                (owner, key, quick(request), now, worker),
            )
            return Claim("new", now)

        # not fsynced: the request's own commits come after this row in the same file
        return await self._writer.write(work)

    async def keep(self, owner: str, key: str, kept: StoredResponse) -> None:
        sql = "UPDATE idempotency SET status = ?, headers = ?, body = ? WHERE owner_id = ? AND key = ?"
        values = (kept.status, quick(dumps([list(pair) for pair in kept.headers])), quick(kept.body), owner, key)
        await self._writer.write(lambda transaction: transaction.row(sql, values))

    async def release(self, owner: str, key: str) -> None:
        sql = "DELETE FROM idempotency WHERE owner_id = ? AND key = ? AND status IS NULL"
        await self._writer.write(lambda transaction: transaction.row(sql, (owner, key)))


_COLUMNS: LiteralString = "id, owner_id, name, scopes, kind, created_at, used_at, expires_at, revoked_at"
_MANY = 500


class AccessTokens:
    """The SQLite implementation of `Tokens`."""

    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self.idempotency = IdempotencyKeys(writer)

    async def user(self, name: str) -> User:
        def work(transaction: Transaction) -> User:
            row = transaction.row("SELECT id, name, created_at FROM user WHERE name = ?", (name,))
            if row is not None:
                return User(*row)
            made = User(new_id(), name, transaction.now_ms)
            transaction.execute("INSERT INTO user (id, name, created_at) VALUES (?, ?, ?)", (made.id, made.name, made.created_at))
            return made

        found = await self._reader.row("SELECT id, name, created_at FROM user WHERE name = ?", (name,), lambda row: User(*row))
        return found or await self._writer.write(work, sync=True)

    async def users(self) -> list[User]:
        return await self._reader.rows("SELECT id, name, created_at FROM user ORDER BY name", (), lambda row: User(*row))

    async def create(self, token: Token, digest: bytes) -> Token:
        def work(transaction: Transaction) -> Token:
            if transaction.row("SELECT 1 FROM user WHERE id = ?", (token.owner,)) is None:
                raise NotFound(f"No user has the id {token.owner!r}.")
            transaction.execute(
                "INSERT INTO token (id, owner_id, name, hash, scopes, kind, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET hash = excluded.hash",
                (token.id, token.owner, token.name, digest, " ".join(token.scopes), token.kind, transaction.now_ms, token.expires_at),
            )
            return _exact(transaction, token.id)

        return await self._writer.write(work, sync=True)

    async def find(self, digest: bytes) -> Token | None:
        return await self._reader.row(f"SELECT {_COLUMNS} FROM token WHERE hash = ?", (digest,), _token)

    async def get(self, reference: str) -> Token:
        def work(queries: Queries) -> Token:
            sql: LiteralString = f"SELECT {_COLUMNS} FROM token WHERE"
            named = (f"{sql} id = ?", (reference,)), (f"{sql} name = ? AND revoked_at IS NULL", (reference,))
            tries = (*named, (f"{sql} id >= ? AND id < ?", prefix_range(reference)))
            return _token(_only(queries, tries, reference, "token", "moot tokens list"))

        return await self._reader.read(work)

    async def list(self, *, revoked: bool = False) -> list[Token]:
        now = self._clock.now() // 1000
        where: LiteralString = "" if revoked else "WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
        sql = f"SELECT {_COLUMNS} FROM token {where} ORDER BY created_at DESC, id DESC"
        return await self._reader.rows(sql, () if revoked else (now,), _token)

    async def revoke(self, id: str) -> Token:
        def work(transaction: Transaction) -> Token:
            transaction.execute("UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (transaction.now_ms, id))
            return _exact(transaction, id)

        return await self._writer.write(work, sync=True)

    async def touch(self, used: Mapping[str, int]) -> None:
        sql, values = "UPDATE token SET used_at = max(coalesce(used_at, 0), ?) WHERE id = ?", [(at, id) for id, at in used.items()]
        await self._writer.write(lambda transaction: transaction.many(sql, values))

    async def invalid(self, ids: Sequence[str]) -> set[str]:
        now = self._clock.now() // 1000

        def work(queries: Queries) -> set[str]:
            valid: set[str] = set()
            for start in range(0, len(ids), _MANY):
                some = ids[start : start + _MANY]
                marks = ", ".join("?" * len(some))
                rows = queries.execute(
                    f"SELECT id FROM token WHERE id IN ({marks}) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
                    (*some, now),
                ).fetchall()
                valid.update(row[0] for row in rows)
            return set(ids) - valid

        return await self._reader.read(work)

    async def put_code(self, digest: bytes, *, owner: str, expires_at: int) -> None:
        def work(transaction: Transaction) -> None:
            transaction.execute("DELETE FROM login_code WHERE expires_at <= ?", (transaction.now_ms,))
            transaction.execute("INSERT INTO login_code (hash, owner_id, expires_at) VALUES (?, ?, ?)", (digest, owner, expires_at))

        await self._writer.write(work)

    async def redeem(self, digest: bytes) -> str | None:
        def work(transaction: Transaction) -> str | None:
            row = transaction.row("DELETE FROM login_code WHERE hash = ? RETURNING owner_id, expires_at", (digest,))
            return str(row[0]) if row is not None and row[1] > transaction.now_ms else None

        # fsynced: a used code must not become valid again after a power failure
        return await self._writer.write(work, sync=True)


def _exact(queries: Queries | Transaction, id: str) -> Token:
    row = queries.execute(f"SELECT {_COLUMNS} FROM token WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(f"No token has the id {id!r}.", fix="See `moot tokens list`.")
    return _token(row)


def _only(queries: Queries, tries: Iterable[tuple[str, Sequence[object]]], reference: str, kind: str, command: str) -> Any:
    """Return the row found by the first query that finds any. Raise NotFound if that query finds several rows, or if no query finds any."""
    for sql, values in tries:
        rows = queries.execute(f"{sql} LIMIT 2", values).fetchall()
        if len(rows) > 1:
            raise NotFound(f"{reference!r} matches several {kind}s.", fix=f"Use the full id; see `{command}`.")
        if rows:
            return rows[0]
    raise NotFound(f"No {kind} matches {reference!r}.", fix=f"See `{command}`.")


def _token(row: Any) -> Token:
    id, owner, name, scopes, kind, created_at, used_at, expires_at, revoked_at = row
    known: tuple[Scope, ...] = tuple(scopes.split())
    return Token(id, owner, name, known, kind, created_at, used_at, expires_at, revoked_at)


_SHARE: LiteralString = (
    "SELECT s.id, c.id, s.title, s.expires_at, s.left_out, s.size, s.created_at, s.revoked_at, s.owner_id"
    " FROM share AS s JOIN conversation AS c ON c.no = s.conversation"
)


class StoredShares:
    """The SQLite implementation of `Shares`; an `owner` of None means all owners."""

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
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, page = excluded.page, size = excluded.size",
                (share.id, conversation.owner, conversation.no, new.digest, share.title, *content, omitted, now, share.expires_at),
            )
            return _find_share(transaction, share.id, None)

        return await self._writer.write(work, sync=True)

    async def page(self, digest: bytes) -> SharedPage | None:
        return await self._reader.row(
            "SELECT s.page, s.policy FROM share AS s JOIN conversation AS c ON c.no = s.conversation"
            " WHERE s.hash = ? AND s.revoked_at IS NULL AND s.expires_at > ? AND c.deleted_at IS NULL",
            (digest, self._clock.now() // 1000),
            lambda row: SharedPage(bytes(row[0]), row[1]) if row[0] else None,
        )

    async def list(self, *, conversation: str | None = None, closed: bool = False) -> Sequence[Share]:
        return await self._reader.rows(
            f"{_SHARE} WHERE (?1 IS NULL OR s.owner_id = ?1) AND (?2 IS NULL OR c.id = ?2)"
            " AND (?3 OR (s.revoked_at IS NULL AND s.expires_at > ?4)) ORDER BY s.created_at DESC, s.id DESC",
            (self._owner, conversation, closed, self._clock.now() // 1000),
            _share,
        )

    async def revoke(self, reference: str) -> Share:
        def work(transaction: Transaction) -> Share:
            found = _find_share(transaction, reference, self._owner)
            transaction.execute(
                "UPDATE share SET revoked_at = coalesce(revoked_at, ?), page = x'' WHERE id = ?", (transaction.now_ms, found.id)
            )
            _sweep(transaction)
            return _find_share(transaction, found.id, None)

        return await self._writer.write(work, sync=True)


def _sweep(transaction: Transaction) -> None:
    """Delete the stored pages of expired shares."""
    transaction.execute("UPDATE share SET page = x'' WHERE expires_at <= ? AND page != x''", (transaction.now_ms,))


def _find_share(queries: Queries, reference: str, owner: str | None) -> Share:
    sql: LiteralString = f"{_SHARE} WHERE (?1 IS NULL OR s.owner_id = ?1)"
    tries = ((f"{sql} AND s.id = ?2", (owner, reference)), (f"{sql} AND s.id >= ?2 AND s.id < ?3", (owner, *prefix_range(reference))))
    return _share(_only(queries, tries, reference, "shared page", "moot share --list"))


def _share(row: Any) -> Share:
    id, conversation, title, expires_at, left_out, size, created_at, revoked_at, owner = row
    omitted = loads(left_out)
    items = tuple(omitted) if isinstance(omitted, list) else ()
    return Share(id, conversation, title, expires_at, items, size, created_at, revoked_at, owner)
