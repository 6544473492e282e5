"""Blobs: each hashed again, wherever its bytes lie."""

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
    """The next blobs of the store, in the order of their hashes."""
    return [name for (name,) in queries.execute("SELECT sha256 FROM blob WHERE sha256 > ? ORDER BY sha256 LIMIT ?", (after, limit))]


def hash_blobs(queries: Queries, files: BlobFiles, names: Sequence[str], findings: Findings) -> None:
    """Hashes these blobs again."""
    for name in names:
        try:
            row: Any = queries.execute("SELECT size, data FROM blob WHERE sha256 = ?", (name,)).fetchone()
        except sqlite.DatabaseError as error:
            findings.add("file", f"blob {name}", "a page that can be read", str(error))
            continue
        if row is None:
            findings.add("missing", f"blob {name}", "its bytes, which a message names", "no row")
            continue
        size, data = row
        findings.receipt.blobs += 1
        findings.receipt.blob_bytes += size
        found = _of_file(files, name) if data is None else (len(data), hashlib.sha256(data).hexdigest())
        if isinstance(found, str):
            findings.add("missing", f"blob {name}", f"the file {files.path(name)}", found)
        elif found != (size, name):
            where = str(files.path(name)) if data is None else "the database"
            findings.add("blob", f"blob {name}", f"{size} bytes with that hash in {where}", f"{found[0]} bytes with the hash {found[1]}")


def _of_file(files: BlobFiles, name: str) -> tuple[int, str] | str:
    """Size and hash of the file; in words why it can't be read."""
    try:
        return files.measured(name)
    except OSError as error:
        return f"{error.strerror}"
