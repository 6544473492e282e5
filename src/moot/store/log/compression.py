"""Compression of the parts of messages. Compressed data starts with zstd's magic number, with which no JSON text starts."""

from __future__ import annotations

from threading import local

import zstandard

_LEVEL = 3
_LARGEST = 1 << 31


class _Compressors(local):
    """One compressor and decompressor per thread, because they can't be shared."""

    def __init__(self) -> None:
        self.packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.unpacker = zstandard.ZstdDecompressor()


_OWN = _Compressors()


def pack(data: bytes) -> bytes:
    """Return the JSON text compressed, or unchanged if compression would not make it smaller."""
    packed = _OWN.packer.compress(data)
    return packed if len(packed) < len(data) else data


def unpack(data: bytes) -> bytes:
    """Return the JSON text that `pack` compressed. Raise ValueError if the data is damaged."""
    try:
        if not 0 <= zstandard.frame_content_size(data) <= _LARGEST:
            raise ValueError("the compressed data declares an invalid size")
        return _OWN.unpacker.decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(f"cannot decompress: {error}") from error
