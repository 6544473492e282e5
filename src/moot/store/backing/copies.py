"""The registry of files with copies of store contents: backups and exports."""

from __future__ import annotations

import os
from typing import Any

from moot.store.connect import Queries
from moot.store.transaction import Transaction
from moot.types.backup import Backup
from moot.types.forgetting import CopyKind, KeptCopy

__all__ = ["backed_up", "forget", "known", "remember"]


def remember(transaction: Queries, path: str, kind: CopyKind, made_at: int, size: int, conversation: str | None = None) -> None:
    """Register a file, replacing an earlier one with the same path."""
    transaction.execute(
        "INSERT INTO written_file (path, kind, made_at, size, sha256, conversation) VALUES (?, ?, ?, ?, '', ?)"
        " ON CONFLICT (path) DO UPDATE SET kind = excluded.kind, made_at = excluded.made_at, size = excluded.size,"
        " conversation = excluded.conversation",
        (os.fsencode(path), kind, made_at, size, conversation),
    )


def forget(path: str, transaction: Transaction) -> None:
    """Remove a file that was not written."""
    transaction.execute("DELETE FROM written_file WHERE path = ? AND size = 0", (os.fsencode(path),))


def known(queries: Queries) -> list[KeptCopy]:
    """Return the known files, oldest first."""
    rows: Any = queries.execute("SELECT path, kind, made_at, size, conversation FROM written_file ORDER BY made_at, path").fetchall()
    return [KeptCopy(os.fsdecode(path), *rest) for path, *rest in rows]


def backed_up(backup: Backup, transaction: Transaction) -> None:
    """Register a finished backup."""
    remember(transaction, backup.path, "backup", backup.made_at, backup.packed)
