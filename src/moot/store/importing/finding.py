"""Which conversation, and which messages of it, a source's are."""

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
"""Keys in one statement, so that there are few statements to prepare."""


class Place(NamedTuple):
    """A conversation of a source."""

    no: int
    id: str
    version: int
    deleted: bool


class Variant(NamedTuple):
    """What one reading found under a key; a source that was rewritten has given several."""

    digest: bytes
    length: int
    message: str | None


def place_of(queries: Queries, owner: str, format: str, source_id: str) -> Place | None:
    """None when nothing of it is here."""
    row: Any = queries.execute(
        "SELECT c.no, c.id, i.version, c.deleted_at IS NOT NULL FROM import_conversation AS i"
        " JOIN conversation AS c ON c.no = i.conversation WHERE i.owner_id = ? AND i.format = ? AND i.source_id = ?",
        (owner, format, source_id),
    ).fetchone()
    return None if row is None else Place(row[0], row[1], row[2], bool(row[3]))


def made_by(queries: Queries, owner: str, arriving: Arriving) -> str | None:
    """The conversation of ours whose runs made that session, or the one that it is a part of."""
    if not arriving.resumable:
        return None
    row: Any = queries.execute(
        "SELECT c.id FROM run AS r JOIN conversation AS c ON c.no = r.conversation"
        " WHERE r.agent_session_id IN (?1, ?2) AND r.owner_id = ?3 LIMIT 1",
        (arriving.source_id, arriving.parent or arriving.source_id, owner),
    ).fetchone()
    return None if row is None else row[0]


def note(transaction: Transaction, conversation: int, origin: JsonObject | None, owner: str) -> None:
    """Notes whose conversation it is, by its origin: of one that was brought in whole."""
    found = origin or {}
    if not found.get("format") or not found.get("source_id"):
        raise StoreError("what is brought in has to say where it comes from")
    transaction.execute(
        "INSERT OR REPLACE INTO import_conversation (owner_id, format, source_id, conversation, version) VALUES (?, ?, ?, ?, ?)",
        (owner, str(found["format"]), str(found["source_id"]), conversation, found.get("version") or 0),
    )


def variants(queries: Queries, conversation: int, keys: Iterable[bytes]) -> dict[bytes, list[Variant]]:
    """What is known under each of these keys, oldest first."""
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
    for told in found.values():
        told.sort(key=lambda one: one.message or "")  # ids grow with the time at which they were given
    return found


def fresh(queries: Queries, conversation: int, arrivals: Sequence[Arrival], *, anew: bool) -> list[Arrival]:
    """Those that are not known letter for letter; with `anew` the known messages too, which another version has read."""
    known = variants(queries, conversation, (arrival.key for arrival in arrivals))
    return [
        arrival
        for arrival in arrivals
        if (anew and arrival.key[:1] != b"\0") or all(one.digest != arrival.digest for one in known.get(arrival.key, ()))
    ]
