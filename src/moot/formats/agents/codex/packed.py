"""Sessions that Codex has compressed, `rollout-….jsonl.zst`.

This module is loaded only when needed, because it imports a large package.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import zstandard

from moot.errors import UsageError
from moot.formats.kit.documents import Line, lines_in
from moot.formats.kit.files import HEAD, open_regular

_LARGEST = 4 << 30
"""Maximum size in bytes of a decompressed session."""
_RATIO = 200
_SMALL = 64 << 20
"""Decompressed size, in bytes, up to which a file may expand to more than `_RATIO` times its size."""
_CHUNK = 1 << 20


def packed_lines(path: Path, largest: int = _LARGEST) -> Iterator[Line]:
    """Decompress a session while it is being read, and yield its lines. Raise UsageError if it can't be decompressed or expands too much.

    `largest` is the maximum size of the decompressed session in bytes.
    """
    try:
        with (
            open_regular(path) as packed,
            zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader,
            io.BufferedReader(_Limited(reader, min(max(_SMALL, os.fstat(packed.fileno()).st_size * _RATIO), largest)), _CHUNK) as file,
        ):
            yield from lines_in(file)
    except EOFError:
        words = f"{_RATIO} times its size, or to more than {largest >> 20} MiB"
        raise UsageError(f"{str(path)!r} expands to more than {words}. The rest was not read.") from None
    except (OSError, zstandard.ZstdError) as error:
        raise UsageError(f"Can't decompress {str(path)!r}: {error}") from error


def packed_head(path: Path) -> bytes:
    """Return the beginning of a compressed session, or empty bytes if it can't be decompressed."""
    try:
        with open_regular(path) as packed, zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return reader.read(HEAD)
    except (OSError, zstandard.ZstdError):
        return b""


class _Limited(io.RawIOBase):
    """The decompressed bytes of a file, up to a limit."""

    def __init__(self, reader: zstandard.ZstdDecompressionReader, limit: int) -> None:
        self._reader = reader
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Raise EOFError if the limit is exceeded."""
        data = self._reader.read1(len(buffer))
        buffer[: len(data)] = data
        self._left -= len(data)
        if self._left < 0:
            raise EOFError
        return len(data)
