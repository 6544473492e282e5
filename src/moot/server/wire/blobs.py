"""Blobs."""

from __future__ import annotations

from moot.server.wire.base import Out
from moot.types.blob import Blob


class BlobOut(Out):
    """Bytes that are kept under their hash."""

    sha256: str
    size: int
    media_type: str
    url: str
    """Where they are; also what a file part names them by."""


def blob_out(blob: Blob) -> BlobOut:
    """A blob as it is sent."""
    return BlobOut(sha256=blob.sha256, size=blob.size, media_type=blob.media_type, url=f"/api/blobs/{blob.sha256}")
