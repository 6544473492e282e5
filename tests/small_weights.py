"""Small weights in the real format, generated quickly: one layer, random numbers, single letters as vocabulary."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

# read before the tests' own home is set; `.ci/run` fills it with `moot models pull e5-small`
REAL = Path(os.environ.get("TEST_WEIGHTS") or Path.home() / ".cache" / "moot-test" / "data" / "models") / "e5-small.bin"
needs_real = pytest.mark.skipif(
    not REAL.is_file(), reason=f"no {REAL}: MOOT_HOME=~/.cache/moot-test moot models pull e5-small --yes-download"
)
WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 96, 48
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
PIECES = (*SPECIAL, "\u2581", "\u2581the", "cat", "\u2581cat", "at", "ts", *"abcdefghijklmnopqrstuvwxyz:?.")
SCORES = (*(0.0,) * 4, -3.0, -2.0, -4.0, -3.5, -3.0, -3.2, *(-6.0,) * 29)
REPLACED = {ord("A"): "a", ord("ﬁ"): "fi", ord("\n"): " "}


def packed(rows: np.ndarray) -> bytes:
    """Blocks of 32 four-bit numbers."""
    blocks = rows.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1) / 7).astype("<f2")
    bits = np.clip(np.rint(blocks / scales[:, None].astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    return b"".join(scale.tobytes() + (row[:16] | row[16:] << 4).tobytes() for scale, row in zip(scales, bits, strict=True))


def write(path: Path, *, pieces: Sequence[str] = PIECES, scores: Sequence[float] = SCORES, seed: int = 1) -> Path:
    """Return the file's content."""
    chance = np.random.default_rng(seed)
    tensors: list[tuple[str, int, bytes]] = []

    def linear(name: str, out: int, into: int) -> None:
        tensors.append((f"{name}.w", 1, packed(chance.normal(0, into**-0.5, (out, into)).astype(np.float32))))
        tensors.append((f"{name}.b", 0, chance.normal(0, 0.1, out).astype("<f4").tobytes()))

    def norm(name: str) -> None:
        tensors.append((f"{name}.w", 0, np.ones(WIDTH, "<f4").tobytes()))
        tensors.append((f"{name}.b", 0, np.zeros(WIDTH, "<f4").tobytes()))

    tensors.append(("emb.word", 1, packed(chance.normal(0, 1, (len(pieces), WIDTH)).astype(np.float32))))
    tensors.append(("emb.pos", 0, chance.normal(0, 0.1, CONTEXT * WIDTH).astype("<f4").tobytes()))
    tensors.append(("emb.type", 0, np.zeros(2 * WIDTH, "<f4").tobytes()))
    norm("emb.ln")
    for layer in range(LAYERS):
        for name in ("q", "k", "v", "ao"):
            linear(f"l{layer}.{name}", WIDTH, WIDTH)
        linear(f"l{layer}.fi", INNER, WIDTH)
        linear(f"l{layer}.fo", WIDTH, INNER)
        norm(f"l{layer}.aln")
        norm(f"l{layer}.oln")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_file(pieces, scores, tensors))
    return path


def _file(pieces: Sequence[str], scores: Sequence[float], tensors: Sequence[tuple[str, int, bytes]]) -> bytes:
    words = [piece.encode() for piece in pieces]
    places = np.cumsum([0, *map(len, words)]).astype("<u4").tobytes()
    head = b"E5S1" + struct.pack("<8ifi", 1, WIDTH, LAYERS, HEADS, INNER, len(pieces), CONTEXT, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, sum(map(len, words)))
    head += places + np.array(scores, "<f4").tobytes() + b"".join(words)
    table = b"".join(struct.pack("<IB", key, len(value)) + value.encode("utf-32-le") for key, value in REPLACED.items())
    head += struct.pack("<iI", len(REPLACED), len(table)) + table + struct.pack("<i", len(tensors))
    at = len(head) + sum(2 + len(name) + 21 for name, _, _ in tensors)
    directory, data = b"", b""
    for name, kind, content in tensors:
        directory += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, len(content), at + len(data), len(content))
        data += content
    return head + directory + data


def put_real(home: Path) -> None:
    """Put the real weights into the home."""
    folder = home / "data" / "models"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / REAL.name).symlink_to(REAL)
