"""Compression of frames: zstd with a dictionary that is part of a release.

Dictionaries are trained on recordings of the project (`benchmarks/dictionary.py`), never on user data, which could not be deleted from
them. A released dictionary is never removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from moot.errors import StoreCorrupt, StoreError
from moot.store import frames
from moot.store.stored import Row

__all__ = ["COLUMNS", "Columns"]

_FOLDER = next(path for parent in Path(__file__).parents if (path := parent / "dictionaries").is_dir())
_LEVEL = 9
_FIX = "Restore the newest backup."
_LARGEST = 1 << 31
"""Maximum decompressed size of a frame in bytes; ours hold 1 MiB, or one event."""


class Columns:
    """Codec for columnar frames (`frames.py`) with zstd compression."""

    def __init__(self, dictionary: str | None) -> None:
        self.dictionary = dictionary
        """The dictionary for new frames."""

    def pack(self, rows: Sequence[Row]) -> bytes:
        """Encode consecutive rows as a frame."""
        words = None if self.dictionary is None else _dictionary(self.dictionary)
        return zstandard.ZstdCompressor(level=_LEVEL, dict_data=words, write_dict_id=False).compress(frames.pack(rows))

    def unpack(self, data: bytes, dictionary: str | None, base: int, first: int) -> list[tuple[Any, ...]]:
        """Decode a frame, see `frames.unpack`. Raise StoreError if the dictionary is unknown, StoreCorrupt if the data is damaged."""
        words = None if dictionary is None else _dictionary(dictionary)
        try:
            if zstandard.frame_content_size(data) > _LARGEST:
                raise StoreCorrupt("A frame of a segment declares an impossible size.", fix=_FIX)
            return frames.unpack(zstandard.ZstdDecompressor(dict_data=words).decompress(data), base, first)
        except (zstandard.ZstdError, msgspec.MsgspecError, ValueError, StopIteration, LookupError) as error:
            raise StoreCorrupt(f"Cannot unpack a frame of a segment: {error}.", fix=_FIX) from error


COLUMNS = Columns("events-1")


@cache
def _dictionary(name: str) -> zstandard.ZstdCompressionDict:
    path = _FOLDER / f"{name}.zstd"
    if path.parent != _FOLDER or not path.is_file():
        raise StoreError(f"The compression dictionary {name!r} is unknown.", fix="Upgrade moot.")
    words = zstandard.ZstdCompressionDict(path.read_bytes())
    words.precompute_compress(level=_LEVEL)  # pyright: ignore[reportUnknownMemberType]  once, not for each frame
    return words
