"""Receipts of what was forgotten for good."""

from __future__ import annotations

from typing import Literal

from moot.server.wire.base import Out


class FileOut(Out):
    """What became of a file beside the database."""

    path: str
    what: Literal["deleted", "rewritten", "left", "not reached"]
    why: str | None


class ForgottenOut(Out):
    """The receipt of a purge. Times are milliseconds."""

    no: int
    kind: Literal["purge", "redact"]
    begun_at: int
    done_at: int | None
    """Null while something is still to be done; the server goes on with it by itself."""
    conversations: list[str]
    rows: dict[str, int]
    """By table."""
    blobs: int
    blob_bytes: int
    files: list[FileOut]
    left: list[str]
    """What was not reached, and why."""
    not_looked_into: list[str]
    """Where a redaction did not look, in words."""
    bytes_before: int
    """Of the database."""
    bytes_after: int
