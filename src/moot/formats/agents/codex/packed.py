"""Codex sessions that the program has compressed, `rollout-….jsonl.zst`. Loaded by name, because it imports a large package."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import zstandard

from moot.errors import UsageError
from moot.formats.kit.files import open_regular

_RATIO = 200
_SMALL = 64 << 20
"""Size in bytes up to which a file may expand to more than `_RATIO` times its size."""
_CHUNK = 1 << 20


@contextmanager
def unpacked(path: Path) -> Generator[Path]:
    """Decompress a session to a temporary file, which is deleted when the context exits. Raise UsageError if that is not possible."""
    with tempfile.TemporaryDirectory(prefix="moot-") as folder:
        plain = Path(folder) / path.stem
        try:
            with open_regular(path) as packed, plain.open("wb") as target:
                left = max(_SMALL, os.fstat(packed.fileno()).st_size * _RATIO)
                with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
                    while data := reader.read(_CHUNK):
                        left -= len(data)
                        if left < 0:
                            raise UsageError(f"{str(path)!r} expands to more than {_RATIO} times its size.")
                        target.write(data)
        except (OSError, zstandard.ZstdError) as error:
            raise UsageError(f"Can't decompress {str(path)!r}: {error}") from error
        yield plain
