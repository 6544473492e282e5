"""multilingual-e5-small (Wang and others, 2024) as an `Embedder`: a 12-layer BERT with mean pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moot.providers.meaning.packed import Floats, Packed, unpacked
from moot.providers.meaning.pieces import Pieces

__all__ = ["E5"]

_BATCH = 4096
"""Vectors that are compared at once, using 6 MB."""
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Abramowitz and Stegun 7.1.26, good to 1.5e-7."""


@dataclass(frozen=True, slots=True)
class _Linear:
    weights: Floats
    """Transposed: one row per input."""
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
        query, key, value = (_split(part(x), heads) for part in (self.query, self.key, self.value))
        near = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(query.shape[-1]))
        near = np.exp(near - near.max(axis=-1, keepdims=True))
        mixed = near / near.sum(axis=-1, keepdims=True) @ value
        x = self.attended_norm(x + self.attended(mixed.transpose(1, 0, 2).reshape(x.shape)))
        return self.outer_norm(x + self.outer(_gelu(self.inner(x))))


class E5:
    """`Embedder` based on a weights file. Raise ProviderError for an invalid file."""

    model = "multilingual-e5-small-q4@1"

    def __init__(self, path: Path) -> None:
        self._packed = packed = Packed.open(path)
        self._pieces = Pieces(packed.pieces, packed.scores, packed.unknown, packed.replaced)
        self._words = packed.blocks("emb.word", packed.width)
        self._places: Floats = packed.floats("emb.pos").reshape(-1, packed.width) + packed.floats("emb.type")[: packed.width]
        self._norm = _norm(packed, "emb.ln")
        self._layers = [_layer(packed, f"l{number}.") for number in range(packed.layers)]

    def embed(self, text: str, *, question: bool) -> bytes:
        """Return a vector of 8-bit integers."""
        numbers = self._pieces.numbers(f"{'query' if question else 'passage'}: {text}")[: self._packed.context - 2]
        ids = [self._packed.begin, *numbers, self._packed.end]
        x = self._norm(np.add(unpacked(self._words[ids]), self._places[: len(ids)], dtype=np.float32))
        for layer in self._layers:
            x = layer(x, self._packed.heads)
        mean: Floats = x.mean(axis=0)
        scale = np.float32(127 / max(float(np.abs(mean).max()), 1e-12))
        return np.rint(mean * scale).astype(np.int8).tobytes()

    def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
        """Return the cosine similarities."""
        wanted = np.frombuffer(vector, np.int8).astype(np.float32)
        wanted /= max(float(np.linalg.norm(wanted)), 1e-12)
        found: list[float] = []
        for batch in (others[start : start + _BATCH] for start in range(0, len(others), _BATCH)):
            vectors = np.frombuffer(b"".join(batch), np.int8).reshape(len(batch), -1).astype(np.float32)
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            found += (vectors @ wanted / np.maximum(lengths, np.float32(1e-12))).tolist()
        return found


def _layer(packed: Packed, name: str) -> _Layer:
    width, inner = packed.width, packed.inner
    return _Layer(
        _linear(packed, f"{name}q", width),
        _linear(packed, f"{name}k", width),
        _linear(packed, f"{name}v", width),
        _linear(packed, f"{name}ao", width),
        _norm(packed, f"{name}aln"),
        _linear(packed, f"{name}fi", width),
        _linear(packed, f"{name}fo", inner),
        _norm(packed, f"{name}oln"),
    )


def _linear(packed: Packed, name: str, width: int) -> _Linear:
    return _Linear(np.ascontiguousarray(unpacked(packed.blocks(f"{name}.w", width)).T), packed.floats(f"{name}.b"))


def _norm(packed: Packed, name: str) -> _Norm:
    return _Norm(packed.floats(f"{name}.w"), packed.floats(f"{name}.b"), packed.epsilon)


def _split(x: Floats, heads: int) -> Floats:
    """Move the heads to the first axis."""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def _gelu(x: Floats) -> Floats:
    near = np.abs(x) * np.float32(math.sqrt(0.5))
    part = 1 / (1 + np.float32(0.3275911) * near)
    sum_ = np.float32(0)
    for factor in _ERF:
        sum_ = (sum_ + np.float32(factor)) * part
    return x * np.float32(0.5) * (1 + np.sign(x) * (1 - sum_ * np.exp(-near * near)))
