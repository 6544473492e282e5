"""Checking blobs by hashing them again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from moot.store.blobs import BlobFiles
from moot.store.connect import Queries
from moot.store.library import sqlite
from moot.store.verify.findings import Findings

__all__ = ["hash_blobs", "names_behind"]


def names_behind(queries: Queries, after: str, limit: int) -> list[str]:
    """Return the next blobs of the store in hash order."""
    return [name for (name,) in queries.execute("SELECT sha256 FROM blob WHERE sha256 > ? ORDER BY sha256 LIMIT ?", (after, limit))]


def hash_blobs(queries: Queries, files: BlobFiles, names: Sequence[str], findings: Findings) -> None:
    """Hash these blobs and report differences."""
    for name in names:
        try:
            row: Any = queries.execute("SELECT size, data FROM blob WHERE sha256 = ?", (name,)).fetchone()
        except sqlite.DatabaseError as error:
            findings.add("file", f"blob {name}", "a readable page", str(error))
            continue
        if row is None:
            findings.add("missing", f"blob {name}", "its bytes, because a message refers to it", "no row")
            continue
        size, data = row
        findings.receipt.blobs += 1
        findings.receipt.blob_bytes += size
        found = _of_file(files, name) if data is None else (len(data), hashlib.sha256(data).hexdigest())
        if isinstance(found, str):
            findings.add("missing", f"blob {name}", f"the file {files.path(name)}", found)
        elif found != (size, name):
            where = str(files.path(name)) if data is None else "the database"
            findings.add("blob", f"blob {name}", f"{size} bytes with this hash in {where}", f"{found[0]} bytes with hash {found[1]}")


def _of_file(files: BlobFiles, name: str) -> tuple[int, str] | str:
    """Return size and hash of the file, or a description of why it can't be read."""
    try:
        return files.measure(name)
    except OSError as error:
        return f"{error.strerror}"
