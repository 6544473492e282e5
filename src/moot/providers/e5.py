"""An `Embedder` with the model multilingual-e5-small (Wang et al., 2024): a 12-layer BERT, its tokenizer and its weights file (`E5S1`)."""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from moot.errors import ProviderError

Floats = NDArray[np.float32]

_FIX = "Delete it, then run `moot models pull e5-small`."
_MAGIC = b"E5S1"
_BLOCK = np.dtype([("scale", "<f2"), ("bits", "u1", (16,))])
"""A block of 32 numbers with a common scale. Byte j has number j in its low 4 bits and number j + 16 in its high 4 bits, each plus 8."""
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
    """Offset and size of each tensor in bytes, by name."""

    @classmethod
    def open(cls, path: Path) -> Packed:
        """Open a weights file. Raise ProviderError if it is invalid."""
        try:
            with path.open("rb") as file:
                return _read(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError, struct.error, IndexError) as error:
            message = f"{str(path)!r} is not a valid weights file for semantic search: {error}"
            raise ProviderError(message, fix=_FIX, kind="protocol") from error

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
            raise ProviderError(f"The weights file has no tensor {name!r}.", fix=_FIX, kind="protocol")
        return self.places[name]


def unpacked(blocks: NDArray[np.void]) -> Floats:
    """Return packed rows as rows of floats."""
    bits: NDArray[np.uint8] = blocks["bits"]
    numbers = np.concatenate((bits & 15, bits >> 4), axis=-1).astype(np.float32) - 8
    scaled: Floats = numbers * blocks["scale"][..., None].astype(np.float32)
    return scaled.reshape(len(blocks), -1)


class _Cursor:
    """A position in the weights file, from which values are read one after another."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def bytes(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("The file is truncated.")
        self.at += size
        return self.data[self.at - size : self.at]


def _read(data: mmap.mmap) -> Packed:
    cursor = _Cursor(data)
    if cursor.bytes(4) != _MAGIC:
        raise ValueError(f"The file does not start with {_MAGIC.decode()}.")
    _version, width, layers, heads, inner, _vocabulary, context, _types = cursor.take("8i")
    (epsilon,) = cursor.take("f")
    block, count, begin, end, _pad, unknown = cursor.take("6i")
    if block != _NUMBERS:
        raise ValueError(f"The block size of the file is not supported: {block}.")
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
            raise ValueError(f"The tensor {name!r} extends beyond the end of the file.")
        found[name] = place, size
    return found


_SPACES = re.compile(" {2,}")
_SPACE = "\u2581"
"""Character for a space in the vocabulary. Each text starts with one."""
_UNLIKELY = 10.0
"""Difference in log likelihood between the least likely piece and a character that occurs in no piece."""


class Pieces:
    """A unigram vocabulary of pieces with their log likelihoods."""

    def __init__(self, pieces: Sequence[str], scores: Sequence[float], unknown: int, replaced: Mapping[int, str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces) if piece and number != unknown}
        self._scores = scores
        self._unknown = unknown
        self._replaced = replaced
        self._longest = max(map(len, self._numbers), default=1)
        self._cost = min(scores, default=0.0) - _UNLIKELY

    def numbers(self, text: str) -> list[int]:
        """Split the text into its most likely pieces. Return their numbers in the vocabulary, in order."""
        text = _SPACES.sub(" ", normalize("NFC", text).translate(self._replaced))
        text = (text if text.startswith(" ") else f" {text}").replace(" ", _SPACE)
        best = [0.0] + [float("-inf")] * len(text)
        came = [(0, self._unknown)] * (len(text) + 1)
        for start in range(len(text)):
            so_far = best[start]
            for end in range(start + 1, min(start + self._longest, len(text)) + 1):
                number = self._numbers.get(text[start:end])
                if number is not None and so_far + self._scores[number] > best[end]:
                    best[end], came[end] = so_far + self._scores[number], (start, number)
            if so_far + self._cost > best[start + 1]:
                best[start + 1], came[start + 1] = so_far + self._cost, (start, self._unknown)
        found: list[int] = []
        at = len(text)
        while at:
            at, number = came[at]
            found.append(number)
        return found[::-1]


_BATCH = 4096
"""Number of vectors that are compared at once, which takes 6 MB."""
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Coefficients of an approximation of the error function (Abramowitz and Stegun, 7.1.26), accurate to 1.5e-7."""


@dataclass(frozen=True, slots=True)
class _Linear:
    weights: Floats
    """The transposed matrix, with one row per input."""
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        return x @ self.weights + self.bias


@dataclass(frozen=True, slots=True)
class _Norm:
    weights: Floats
    bias: Floats
    epsilon: float

    def __call__(self, x: Floats) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(self.epsilon)) * self.weights + self.bias


@dataclass(frozen=True, slots=True)
class _Layer:
    query: _Linear
    key: _Linear
    value: _Linear
    attended: _Linear
    attended_norm: _Norm
    inner: _Linear
    outer: _Linear
    outer_norm: _Norm

    def __call__(self, x: Floats, heads: int) -> Floats:
        parts = (part(x) for part in (self.query, self.key, self.value))
        query, key, value = (part.reshape(len(x), heads, -1).transpose(1, 0, 2) for part in parts)
        near = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(query.shape[-1]))
        near = np.exp(near - near.max(axis=-1, keepdims=True))
        mixed = near / near.sum(axis=-1, keepdims=True) @ value
        x = self.attended_norm(x + self.attended(mixed.transpose(1, 0, 2).reshape(x.shape)))
        return self.outer_norm(x + self.outer(_gelu(self.inner(x))))


class E5:
    """`Embedder` with the weights from a file. Raise ProviderError if the file is invalid."""

    model = "multilingual-e5-small-q4@1"

    def __init__(self, path: Path) -> None:
        self._packed = packed = Packed.open(path)
        self._pieces = Pieces(packed.pieces, packed.scores, packed.unknown, packed.replaced)
        self._words = packed.blocks("emb.word", packed.width)
        self._places: Floats = packed.floats("emb.pos").reshape(-1, packed.width) + packed.floats("emb.type")[: packed.width]
        self._norm = _norm(packed, "emb.ln")
        self._layers = [_layer(packed, f"l{number}.") for number in range(packed.layers)]

    def embed(self, text: str, *, question: bool) -> bytes:
        """Return the text's embedding as a vector of signed 8-bit integers."""
        numbers = self._pieces.numbers(f"{'query' if question else 'passage'}: {text}")[: self._packed.context - 2]
        ids = [self._packed.begin, *numbers, self._packed.end]
        x = self._norm(np.add(unpacked(self._words[ids]), self._places[: len(ids)], dtype=np.float32))
        for layer in self._layers:
            x = layer(x, self._packed.heads)
        mean: Floats = x.mean(axis=0)
        scale = np.float32(127 / max(float(np.abs(mean).max()), 1e-12))
        return np.rint(mean * scale).astype(np.int8).tobytes()

    def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
        """Return the cosine similarity of the vector to each of the others."""
        wanted = np.frombuffer(vector, np.int8).astype(np.float32)
        wanted /= max(float(np.linalg.norm(wanted)), 1e-12)
        found: list[float] = []
        for batch in (others[start : start + _BATCH] for start in range(0, len(others), _BATCH)):
            vectors = np.frombuffer(b"".join(batch), np.int8).reshape(len(batch), -1).astype(np.float32)
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            found += (vectors @ wanted / np.maximum(lengths, np.float32(1e-12))).tolist()
        return found


def _layer(packed: Packed, name: str) -> _Layer:
    query, key, value, attended, inner = (_linear(packed, f"{name}{part}", packed.width) for part in ("q", "k", "v", "ao", "fi"))
    outer = _linear(packed, f"{name}fo", packed.inner)
    return _Layer(query, key, value, attended, _norm(packed, f"{name}aln"), inner, outer, _norm(packed, f"{name}oln"))


def _linear(packed: Packed, name: str, width: int) -> _Linear:
    return _Linear(np.ascontiguousarray(unpacked(packed.blocks(f"{name}.w", width)).T), packed.floats(f"{name}.b"))


def _norm(packed: Packed, name: str) -> _Norm:
    return _Norm(packed.floats(f"{name}.w"), packed.floats(f"{name}.b"), packed.epsilon)


def _gelu(x: Floats) -> Floats:
    near = np.abs(x) * np.float32(math.sqrt(0.5))
    part = 1 / (1 + np.float32(0.3275911) * near)
    sum_ = np.float32(0)
    for factor in _ERF:
        sum_ = (sum_ + np.float32(factor)) * part
    return x * np.float32(0.5) * (1 + np.sign(x) * (1 - sum_ * np.exp(-near * near)))
