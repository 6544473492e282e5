"""The weights file (`E5S1`): a header, the vocabulary, and tensors, mostly in blocks of 32 4-bit integers with a scale."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moot.errors import ProviderError

__all__ = ["Floats", "Packed", "unpacked"]

Floats = NDArray[np.float32]

_MAGIC = b"E5S1"
_BLOCK = np.dtype([("scale", "<f2"), ("bits", "u1", (16,))])
"""Byte j holds number j in its low half and number j + 16 in its high half, each with an offset of 8."""
_NUMBERS = 32


@dataclass(frozen=True, slots=True)
class Packed:
    """The content of a weights file. Tensors are read on demand."""

    width: int
    layers: int
    heads: int
    inner: int
    context: int
    """Maximum number of input tokens."""
    epsilon: float
    begin: int
    end: int
    unknown: int
    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    replaced: Mapping[int, str]
    """Replacements for characters, applied before tokenizing."""
    data: mmap.mmap
    places: Mapping[str, tuple[int, int]]
    """Tensor → its first byte and its size."""

    @classmethod
    def open(cls, path: Path) -> Packed:
        """Open a weights file. Raise ProviderError if it is invalid."""
        try:
            with path.open("rb") as file:
                return _read(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError, struct.error, IndexError) as error:
            raise ProviderError(
                f"{str(path)!r} is not a valid weights file for semantic search: {error}",
                fix="delete it, then run: moot models pull e5-small",
                kind="protocol",
            ) from error

    def floats(self, name: str) -> Floats:
        """Return a tensor that is stored as floats."""
        place, size = self._place(name)
        return np.frombuffer(self.data, "<f4", size // 4, place).astype(np.float32)

    def blocks(self, name: str, width: int) -> NDArray[np.void]:
        """Return the packed rows of a tensor, each with `width` numbers."""
        place, size = self._place(name)
        return np.frombuffer(self.data, _BLOCK, size // _BLOCK.itemsize, place).reshape(-1, width // _NUMBERS)

    def _place(self, name: str) -> tuple[int, int]:
        if name not in self.places:
            raise ProviderError(
                f"the weights file has no tensor {name!r}", fix="delete it, then run: moot models pull e5-small", kind="protocol"
            )
        return self.places[name]


def unpacked(blocks: NDArray[np.void]) -> Floats:
    """Return the numbers of packed rows."""
    bits: NDArray[np.uint8] = blocks["bits"]
    numbers = np.concatenate((bits & 15, bits >> 4), axis=-1).astype(np.float32) - 8
    scaled: Floats = numbers * blocks["scale"][..., None].astype(np.float32)
    return scaled.reshape(len(blocks), -1)


class _Cursor:
    """A reader that keeps its position."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def bytes(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("the file is truncated")
        self.at += size
        return self.data[self.at - size : self.at]


def _read(data: mmap.mmap) -> Packed:
    cursor = _Cursor(data)
    if cursor.bytes(4) != _MAGIC:
        raise ValueError(f"it does not start with {_MAGIC.decode()}")
    _version, width, layers, heads, inner, _vocabulary, context, _types = cursor.take("8i")
    (epsilon,) = cursor.take("f")
    block, count, begin, end, _pad, unknown = cursor.take("6i")
    if block != _NUMBERS:
        raise ValueError(f"it has unsupported blocks of {block} numbers")
    (size,) = cursor.take("Q")
    places = np.frombuffer(cursor.bytes((count + 1) * 4), "<u4").tolist()
    scores = tuple(np.frombuffer(cursor.bytes(count * 4), "<f4").tolist())
    words = cursor.bytes(size)
    pieces = tuple(words[first:last].decode("utf-8", "replace") for first, last in pairwise(places))
    replaced = _replacements(cursor)
    return Packed(width, layers, heads, inner, context, epsilon, begin, end, unknown, pieces, scores, replaced, data, _directory(cursor))


def _replacements(cursor: _Cursor) -> dict[int, str]:
    count, size = cursor.take("iI")
    table, at, found = cursor.bytes(size), 0, dict[int, str]()
    for _ in range(count):
        character, long = struct.unpack_from("<IB", table, at)
        found[character] = struct.unpack_from(f"<{4 * long}s", table, at + 5)[0].decode("utf-32-le")
        at += 5 + 4 * long
    return found


def _directory(cursor: _Cursor) -> dict[str, tuple[int, int]]:
    (count,) = cursor.take("i")
    found: dict[str, tuple[int, int]] = {}
    for _ in range(count):
        (long,) = cursor.take("H")
        name = cursor.bytes(long).decode()
        _kind, _numbers, place, size = cursor.take("BIQQ")
        if place + size > len(cursor.data):
            raise ValueError(f"tensor {name!r} extends beyond the end of the file")
        found[name] = place, size
    return found
