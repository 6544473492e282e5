"""Deleting unreferenced blobs: marked in a snapshot, swept in a transaction, and their files removed last."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from moot.store.blobs import FRESH, BlobFiles
from moot.store.connect import Queries
from moot.store.forgetting.naming import named_by
from moot.store.forgetting.works import Work, save
from moot.store.transaction import Transaction

__all__ = ["Marked", "mark", "sweep", "unlink"]

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
    """The last message, run and exchange of that snapshot."""


def mark(work: Work, queries: Queries) -> Marked:
    """Find references to the work's blobs in the whole store."""
    named = named_by(queries, work.blobs)
    row: Any = queries.execute(
        "SELECT (SELECT coalesce(max(no), 0) FROM message), (SELECT coalesce(max(no), 0) FROM run),"
        " (SELECT coalesce(max(rowid), 0) FROM exchange)"
    ).fetchone()
    return Marked(frozenset(named), row)


def sweep(work: Work, marked: Marked, transaction: Transaction) -> tuple[Work, int]:
    """Delete unreferenced blobs. Return the work with those whose files must be removed or that must wait, and how many must wait."""
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
            _disown(transaction, work, name, marked)
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


def _disown(transaction: Transaction, work: Work, name: str, marked: Marked) -> None:
    """Remove the blob from owners of purged conversations if none of their data refers to it anymore."""
    for owner in work.owners:
        if (name, owner) not in marked.named and any(other != owner and of == name for of, other in marked.named):
            transaction.execute("DELETE FROM blob_owner WHERE sha256 = ? AND owner_id = ?", (name, owner))


def _remove(transaction: Transaction, work: Work, name: str) -> bool:
    """Delete a blob and return True, unless another owner has stored the same bytes and may not have referenced them yet."""
    for (owner,) in transaction.execute("SELECT owner_id FROM blob_owner WHERE sha256 = ?", (name,)).fetchall():
        if not work.owners or owner in work.owners:
            transaction.execute("DELETE FROM blob_owner WHERE sha256 = ? AND owner_id = ?", (name, owner))
    if transaction.row("SELECT 1 FROM blob_owner WHERE sha256 = ?", (name,)) is not None:
        return False
    transaction.execute("DELETE FROM blob WHERE sha256 = ?", (name,))
    return True


def unlink(work: Work, files: BlobFiles, transaction: Transaction) -> Work:
    """Delete the files of blobs without a row; no one can create one meanwhile."""
    work = deepcopy(work)
    for name in sorted(work.blobs):
        if transaction.row("SELECT 1 FROM blob WHERE sha256 = ?", (name,)) is None:
            files.path(name).unlink(missing_ok=True)
    work.blobs.clear()
    save(transaction, work)
    return work
