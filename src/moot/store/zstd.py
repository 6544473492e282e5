"""The zstd codec of segments."""

from __future__ import annotations

import zstandard

from moot.errors import StoreCorrupt, StoreError

__all__ = ["pack", "unpack"]

_LARGEST = 1 << 30
"""Bytes that one frame may come to; ours hold 1 MiB, or one event."""


def pack(frame: bytes) -> bytes:
    """The frame compressed, with its own checksum."""
    return zstandard.ZstdCompressor(level=9, write_checksum=True).compress(frame)


def unpack(data: bytes, dictionary: str | None) -> bytes:
    """The frame's bytes. Raises StoreError for a dictionary that this release does not have, StoreCorrupt for broken data."""
    if dictionary is not None:
        raise StoreError(f"this moot has no compression dictionary {dictionary!r}", fix="upgrade moot")
    try:
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=_LARGEST)
    except zstandard.ZstdError as error:
        raise StoreCorrupt(f"a frame of a segment does not unpack: {error}", fix="restore the newest backup") from error
