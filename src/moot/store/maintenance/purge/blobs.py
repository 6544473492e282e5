"""Deleting unreferenced blobs: find all references in a snapshot, delete rows in a transaction, and delete files last."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, LiteralString

from moot.store.content.blobs import BlobFiles
from moot.store.database.blob_rows import FRESH
from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction
from moot.store.log import segments
from moot.store.log.rows import LAST_SEQ
from moot.store.maintenance.purge.jobs import EraseJob, save
from moot.store.maintenance.purge.tables import PLACES, select
from moot.store.rows import plain_or_damaged
from moot.types.canonical import dumps

_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_REFERENCES: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("exchange", "request"),
    ("exchange", "options"),
    ("message", "parts"),
    ("message", "metadata"),
    ("run", "settings"),
    ("conversation", "settings"),
    ("conversation", "origin"),
    ("translation", "chunks"),
    ("approval", "arguments"),
    ("approval", "value"),
    ("approval", "edited"),
    ("inbox", "body"),
    ("event", "chunks"),
    ("event", "body"),
)
"""Columns in which a hash is a reference to a blob; hashes in raw bytes are only repeated by the vendor."""
_WHOSE: dict[LiteralString, LiteralString] = {
    "conversation": "t.owner_id FROM conversation AS t",
    "event": "c.owner_id FROM event AS t JOIN conversation AS c ON c.no = t.id >> 32",
    "approval": "r.owner_id FROM approval AS t JOIN run AS r ON r.id = t.run",
    "inbox": "r.owner_id FROM inbox AS t JOIN run AS r ON r.id = t.run",
}

_OF: dict[LiteralString, LiteralString] = {
    "conversation": "t.no",
    "event": "t.id >> 32",
    "approval": "r.conversation",
    "inbox": "r.conversation",
}


def named_in(queries: Queries, conversation: int) -> set[str]:
    """Return everything that looks like a blob hash in a conversation's data."""
    found: set[str] = set()
    for table, column in _REFERENCES:
        _collect(queries.execute(select(column, table, PLACES[table].of), (conversation,)), found)
    _collect(((data,) for row in segments.rows(queries, conversation, 0, LAST_SEQ) for data in (row[5], row[9])), found)
    return found


def are_blobs(queries: Queries, names: Collection[str]) -> set[str]:
    """Return the names that belong to existing blobs."""
    found: Any = queries.execute(
        "SELECT b.sha256 FROM json_each(?) AS j JOIN blob AS b ON b.sha256 = j.value", (dumps(sorted(names)).decode(),)
    )
    return {name for (name,) in found.fetchall()}


def named_by(queries: Queries, names: Collection[str], without: Collection[int] = ()) -> set[tuple[str, str]]:
    """Return the names that are referenced, each with the owner of the reference, in the whole store except these conversations."""
    found: set[tuple[str, str]] = set()
    if not names:
        return found
    excluded = {f"{no}" for no in without}
    for table, column in _REFERENCES:
        whose = _WHOSE.get(table) or f"c.owner_id FROM {table} AS t JOIN conversation AS c ON c.no = t.conversation"
        place = _OF.get(table) or "t.conversation"
        for data, no, owner in queries.execute(_reference_sql(column, place, whose)):
            if f"{no}" not in excluded:
                found.update((name, owner) for name in _names(data) if name in names)
    for no, owner, data in _sealed(queries):
        if f"{no}" not in excluded:
            found.update((name, owner) for name in _names(data) if name in names)
    return found


def _reference_sql(column: LiteralString, no: LiteralString, whose: LiteralString) -> LiteralString:
    return f"SELECT t.{column}, {no}, {whose} WHERE t.{column} IS NOT NULL"


def _sealed(queries: Queries) -> Iterator[tuple[int, str, bytes]]:
    conversations: Any = queries.execute(
        "SELECT DISTINCT s.conversation, c.owner_id FROM segment AS s JOIN conversation AS c ON c.no = s.conversation"
    ).fetchall()
    for no, owner in conversations:
        for row in segments.rows(queries, no, 0, LAST_SEQ):
            yield from ((no, owner, data) for data in (row[5], row[9]) if data)


def _collect(rows: Iterable[Any], found: set[str]) -> None:
    for (data,) in rows:
        found.update(_names(data))


def _names(data: bytes | None) -> Iterator[str]:
    return (match.decode() for match in _HASH.findall(plain_or_damaged(data))) if data else iter(())


_NEWER = (
    "SELECT parts FROM message WHERE no > ?1 UNION ALL SELECT settings FROM run WHERE no > ?2"
    " UNION ALL SELECT request FROM exchange WHERE rowid > ?3"
)


@dataclass(frozen=True, slots=True)
class Marked:
    """References to blobs in one snapshot."""

    named: frozenset[tuple[str, str]]
    """Names with the owners of the references."""
    through: tuple[int, int, int]
    """The last message, run and exchange in the snapshot."""


def mark(work: EraseJob, queries: Queries) -> Marked:
    """Find references to the job's blobs in the whole store."""
    named = named_by(queries, work.blobs)
    row: Any = queries.execute(
        "SELECT (SELECT coalesce(max(no), 0) FROM message), (SELECT coalesce(max(no), 0) FROM run),"
        " (SELECT coalesce(max(rowid), 0) FROM exchange)"
    ).fetchone()
    return Marked(frozenset(named), row)


def sweep(work: EraseJob, marked: Marked, transaction: Transaction) -> tuple[EraseJob, int]:
    """Delete unreferenced blobs.

    Return the job, which keeps the blobs that must wait or whose files must be deleted, and the number of blobs that must wait.
    """
    work = deepcopy(work)
    again = set[str]()
    newer: list[bytes] = [data for (data,) in transaction.execute(_NEWER, marked.through).fetchall()]
    referenced = {name for name, _ in marked.named} | {name for name in work.blobs if any(name.encode() in data for data in newer)}
    busy = transaction.row("SELECT 1 FROM run WHERE status = 'running' LIMIT 1") is not None
    for name in sorted(work.blobs):
        row: Any = transaction.row("SELECT size, created_at, data IS NULL FROM blob WHERE sha256 = ?", (name,))
        if row is None:
            continue
        size, put_at, in_file = row
        if name in referenced:
            work.blobs.discard(name)
            for owner in work.owners:
                if (name, owner) not in marked.named and any(other != owner and of == name for of, other in marked.named):
                    transaction.execute("DELETE FROM blob_owner WHERE sha256 = ? AND owner_id = ?", (name, owner))
        elif busy and put_at > transaction.now_ms - FRESH:
            again.add(name)
        else:
            if not _remove(transaction, work, name):
                work.blobs.discard(name)
                continue
            work.receipt.blobs += 1
            work.receipt.blob_bytes += size
            if not in_file:
                work.blobs.discard(name)
    save(transaction, work)
    return work, len(again)


def _remove(transaction: Transaction, work: EraseJob, name: str) -> bool:
    """Delete a blob and return True, unless another owner has stored the same bytes and may not have referenced them yet."""
    for (owner,) in transaction.execute("SELECT owner_id FROM blob_owner WHERE sha256 = ?", (name,)).fetchall():
        if not work.owners or owner in work.owners:
            transaction.execute("DELETE FROM blob_owner WHERE sha256 = ? AND owner_id = ?", (name, owner))
    if transaction.row("SELECT 1 FROM blob_owner WHERE sha256 = ?", (name,)) is not None:
        return False
    transaction.execute("DELETE FROM blob WHERE sha256 = ?", (name,))
    return True


def unlink(work: EraseJob, files: BlobFiles, transaction: Transaction) -> EraseJob:
    """Delete the files of blobs that have no row. No such row can be created during the transaction."""
    work = deepcopy(work)
    for name in sorted(work.blobs):
        if transaction.row("SELECT 1 FROM blob WHERE sha256 = ?", (name,)) is None:
            files.path(name).unlink(missing_ok=True)
    work.blobs.clear()
    save(transaction, work)
    return work
