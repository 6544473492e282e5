"""How frames are compressed: zstd, with a dictionary that came with a release.

A dictionary is trained on recordings of the project (`benchmarks/dictionary.py`), never on what somebody has said, for it could not be made
to forget. One that was released stays for ever.
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

_FOLDER = Path(__file__).parent / "dictionaries"
_LEVEL = 9
_FIX = "restore the newest backup"
_LARGEST = 1 << 31
"""Bytes that one frame may come to; ours hold 1 MiB, or one event."""


class Columns:
    """Frames of columns (`frames.py`), compressed."""

    def __init__(self, dictionary: str | None) -> None:
        self.dictionary = dictionary
        """What new frames are written with."""

    def pack(self, rows: Sequence[Row]) -> bytes:
        """A frame of these rows, which lie one behind the other."""
        words = None if self.dictionary is None else _dictionary(self.dictionary)
        return zstandard.ZstdCompressor(level=_LEVEL, dict_data=words, write_dict_id=False).compress(frames.pack(rows))

    def unpack(self, data: bytes, dictionary: str | None, base: int, first: int) -> list[tuple[Any, ...]]:
        """The frame's rows, as `frames.unpack`. Raises StoreError for a dictionary of a newer release, StoreCorrupt for broken data."""
        words = None if dictionary is None else _dictionary(dictionary)
        try:
            if zstandard.frame_content_size(data) > _LARGEST:
                raise StoreCorrupt("a frame of a segment says that it is larger than any of ours", fix=_FIX)
            return frames.unpack(zstandard.ZstdDecompressor(dict_data=words).decompress(data), base, first)
        except (zstandard.ZstdError, msgspec.MsgspecError, ValueError, StopIteration, LookupError) as error:
            raise StoreCorrupt(f"a frame of a segment does not unpack: {error}", fix=_FIX) from error


COLUMNS = Columns("events-1")


@cache
def _dictionary(name: str) -> zstandard.ZstdCompressionDict:
    path = _FOLDER / f"{name}.zstd"
    if path.parent != _FOLDER or not path.is_file():
        raise StoreError(f"this moot has no compression dictionary {name!r}", fix="upgrade moot")
    words = zstandard.ZstdCompressionDict(path.read_bytes())
    words.precompute_compress(level=_LEVEL)  # pyright: ignore[reportUnknownMemberType]  else each frame would do it
    return words
