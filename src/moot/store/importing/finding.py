"""Finding the conversation and the messages that were imported from a source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from moot.errors import StoreError
from moot.store.connect import Queries
from moot.store.transaction import Transaction
from moot.types.canonical import JsonObject
from moot.types.imports import Arrival, Arriving

__all__ = ["Place", "Variant", "fresh", "made_by", "note", "place_of", "variants"]

_SIZES = (8, 64, 512)
"""Numbers of keys per statement; few sizes, so that few statements are prepared."""


class Place(NamedTuple):
    """A conversation imported from a source."""

    no: int
    id: str
    version: int
    deleted: bool


class Variant(NamedTuple):
    """One version of an entry; a source that changes has several."""

    digest: bytes
    length: int
    message: str | None


def place_of(queries: Queries, owner: str, format: str, source_id: str) -> Place | None:
    """Return None if the source's conversation is not imported."""
    row: Any = queries.execute(
        "SELECT c.no, c.id, i.version, c.deleted_at IS NOT NULL FROM import_conversation AS i"
        " JOIN conversation AS c ON c.no = i.conversation WHERE i.owner_id = ? AND i.format = ? AND i.source_id = ?",
        (owner, format, source_id),
    ).fetchone()
    return None if row is None else Place(row[0], row[1], row[2], bool(row[3]))


def made_by(queries: Queries, owner: str, arriving: Arriving) -> str | None:
    """Return our conversation whose run created the session, or the session's parent."""
    if not arriving.resumable:
        return None
    row: Any = queries.execute(
        "SELECT c.id FROM run AS r JOIN conversation AS c ON c.no = r.conversation"
        " WHERE r.agent_session_id IN (?1, ?2) AND r.owner_id = ?3 LIMIT 1",
        (arriving.source_id, arriving.parent or arriving.source_id, owner),
    ).fetchone()
    return None if row is None else row[0]


def note(transaction: Transaction, conversation: int, origin: JsonObject | None, owner: str) -> None:
    """Register a complete recording by its conversation's origin."""
    found = origin or {}
    if not found.get("format") or not found.get("source_id"):
        raise StoreError("The origin of an import must have a format and a source id.")
    transaction.execute(
        "INSERT OR REPLACE INTO import_conversation (owner_id, format, source_id, conversation, version) VALUES (?, ?, ?, ?, ?)",
        (owner, str(found["format"]), str(found["source_id"]), conversation, found.get("version") or 0),
    )


def variants(queries: Queries, conversation: int, keys: Iterable[bytes]) -> dict[bytes, list[Variant]]:
    """Return the known variants of these keys, oldest first."""
    wanted = list(dict.fromkeys(keys))
    found: dict[bytes, list[Variant]] = {}
    while wanted:
        size = next((size for size in _SIZES if len(wanted) <= size), _SIZES[-1])
        some, wanted = wanted[:size], wanted[size:]
        padded = [*some, *[some[-1]] * (size - len(some))]
        rows: Any = queries.execute(
            f"SELECT key, digest, length, message FROM import_message WHERE conversation = ? AND key IN ({', '.join('?' * size)})",
            (conversation, *padded),
        ).fetchall()
        for key, digest, length, message in rows:
            found.setdefault(key, []).append(Variant(digest, length, message))
    for versions in found.values():
        versions.sort(key=lambda one: one.message or "")  # ids grow with time
    return found


def fresh(queries: Queries, conversation: int, arrivals: Sequence[Arrival], *, compare: bool) -> list[Arrival]:
    """Return the entries that are not known byte for byte; with `compare`, also known messages."""
    known = variants(queries, conversation, (arrival.key for arrival in arrivals))
    return [
        arrival
        for arrival in arrivals
        if (compare and arrival.key[:1] != b"\0") or all(one.digest != arrival.digest for one in known.get(arrival.key, ()))
    ]
