"""The rows of blobs and of their owners."""

from __future__ import annotations

from collections.abc import Callable

from moot.errors import StoreError
from moot.store.database.transaction import Transaction
from moot.types.blob import Blob, StagedBlobs

_NAMED = 500  # blobs looked up in one statement
FRESH = 60_000
"""Milliseconds during which a new unreferenced blob is not deleted while a run is active, because the run may be about to reference it."""


def insert_blobs(transaction: Transaction, staged: StagedBlobs, owner: str, has_file: Callable[[str], bool]) -> list[Blob]:
    """Store the blobs for an existing owner and return them. A blob that the owner already has keeps its media type.

    `has_file` tells whether a large blob is on disk. Raise StoreError if it is not.
    """
    blobs, packed = staged.blobs, staged.small
    kept: dict[str, str | None] = {}  # the media types of blobs that exist; None if the owner doesn't have them
    now = transaction.now_ms
    for begin in range(0, len(blobs), _NAMED):
        some = [blob.sha256 for blob in blobs[begin : begin + _NAMED]]
        transaction.execute(  # postpones their deletion while unreferenced
            f"UPDATE blob SET created_at = ? WHERE created_at < ? AND sha256 IN ({', '.join('?' * len(some))})",
            (now, now - FRESH // 2, *some),
        )
        kept |= transaction.execute(
            "SELECT b.sha256, o.media_type FROM blob AS b LEFT JOIN blob_owner AS o ON o.sha256 = b.sha256 AND o.owner_id = ?"
            f" WHERE b.sha256 IN ({', '.join('?' * len(some))})",
            (owner, *some),
        ).fetchall()
    for blob in blobs:
        if blob.sha256 not in kept:
            if blob.sha256 not in packed and not has_file(blob.sha256):
                raise StoreError(f"The blob {blob.sha256!r} was deleted while it was being stored.", fix="Try again.")
            transaction.execute(
                "INSERT INTO blob (sha256, size, media_type, created_at, data) VALUES (?, ?, ?, ?, ?)",
                (blob.sha256, blob.size, blob.media_type, now, packed.get(blob.sha256)),
            )
        if kept.get(blob.sha256) is None:
            kept[blob.sha256] = blob.media_type
            transaction.execute(
                "INSERT INTO blob_owner (sha256, owner_id, media_type, created_at) VALUES (?, ?, ?, ?)",
                (blob.sha256, owner, blob.media_type, now),
            )
    return [Blob(blob.sha256, blob.size, kept[blob.sha256] or blob.media_type) for blob in blobs]
