"""Users, tokens and sign-in codes. Secrets are found by their digests; changes to access are fsynced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from moot.errors import NotFound
from moot.store.connect import Queries
from moot.store.idempotency import StoredAnswers
from moot.store.lookup import SHORTEST_PREFIX
from moot.store.reader import Reader
from moot.store.transaction import Transaction
from moot.store.writer import Writer
from moot.types.ids import Clock, new_id
from moot.types.token import Scope, Token, User

__all__ = ["AccessTokens"]

_COLUMNS: LiteralString = "id, owner_id, name, scopes, kind, created_at, used_at, expires_at, revoked_at"
_HIGHEST = "\U0010ffff"
_MANY = 500


class AccessTokens:
    """`Tokens` on SQLite."""

    def __init__(self, writer: Writer, reader: Reader, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._idempotency = StoredAnswers(writer)

    @property
    def idempotency(self) -> StoredAnswers:
        return self._idempotency

    async def user(self, name: str) -> User:
        def work(transaction: Transaction) -> User:
            row = transaction.row("SELECT id, name, created_at FROM user WHERE name = ?", (name,))
            if row is not None:
                return User(*row)
            made = User(new_id(), name, transaction.now_ms)
            transaction.execute("INSERT INTO user (id, name, created_at) VALUES (?, ?, ?)", (made.id, made.name, made.created_at))
            return made

        found = await self._reader.read(
            lambda queries: queries.execute("SELECT id, name, created_at FROM user WHERE name = ?", (name,)).fetchone()
        )
        return User(*found) if found is not None else await self._writer.write(work, sync=True)

    async def users(self) -> list[User]:
        rows = await self._reader.read(lambda queries: queries.execute("SELECT id, name, created_at FROM user ORDER BY name").fetchall())
        return [User(*row) for row in rows]

    async def create(self, token: Token, digest: bytes) -> Token:
        def work(transaction: Transaction) -> Token:
            if transaction.row("SELECT 1 FROM user WHERE id = ?", (token.owner,)) is None:
                raise NotFound(f"No user has the id {token.owner!r}.")
            transaction.execute(
                "INSERT INTO token (id, owner_id, name, hash, scopes, kind, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (token.id, token.owner, token.name, digest, " ".join(token.scopes), token.kind, transaction.now_ms, token.expires_at),
            )
            return _exact(transaction, token.id)

        return await self._writer.write(work, sync=True)

    async def find(self, digest: bytes) -> Token | None:
        row = await self._reader.read(lambda queries: queries.execute(f"SELECT {_COLUMNS} FROM token WHERE hash = ?", (digest,)).fetchone())
        return None if row is None else _token(row)

    async def get(self, reference: str) -> Token:
        return await self._reader.read(lambda queries: _found(queries, reference))

    async def list(self, *, revoked: bool = False) -> list[Token]:
        now = self._clock.now() // 1000
        where: LiteralString = "" if revoked else "WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
        rows = await self._reader.read(
            lambda queries: queries.execute(
                f"SELECT {_COLUMNS} FROM token {where} ORDER BY created_at DESC, id DESC", () if revoked else (now,)
            ).fetchall()
        )
        return [_token(row) for row in rows]

    async def revoke(self, id: str) -> Token:
        def work(transaction: Transaction) -> Token:
            transaction.execute("UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (transaction.now_ms, id))
            return _exact(transaction, id)

        return await self._writer.write(work, sync=True)

    async def touch(self, used: Mapping[str, int]) -> None:
        def work(transaction: Transaction) -> None:
            for id, at in used.items():
                transaction.execute("UPDATE token SET used_at = max(coalesce(used_at, 0), ?) WHERE id = ?", (at, id))

        await self._writer.write(work)

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
                valid.update(str(row[0]) for row in rows)
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


def _found(queries: Queries, reference: str) -> Token:
    tries: list[tuple[LiteralString, tuple[str, ...]]] = [("id = ?", (reference,)), ("name = ? AND revoked_at IS NULL", (reference,))]
    if len(reference) >= SHORTEST_PREFIX:
        tries.append(("id >= ? AND id < ?", (reference, reference + _HIGHEST)))
    for where, values in tries:
        rows = queries.execute(f"SELECT {_COLUMNS} FROM token WHERE {where} LIMIT 2", values).fetchall()
        if len(rows) == 1:
            return _token(rows[0])
        if rows:
            raise NotFound(f"{reference!r} matches several tokens.", fix="Give the whole id, see `moot tokens list`.")
    raise NotFound(f"No token matches {reference!r}.", fix="See `moot tokens list`.")


def _token(row: Any) -> Token:
    id, owner, name, scopes, kind, created_at, used_at, expires_at, revoked_at = row
    known: tuple[Scope, ...] = tuple(scopes.split())
    return Token(id, owner, name, known, kind, created_at, used_at, expires_at, revoked_at)
