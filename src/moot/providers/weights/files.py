"""Weights files on this machine: finding installed ones, and writing and verifying partial files."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeAlias

from moot.errors import ProviderError, StoreFull
from moot.providers.weights.manifest import MANIFEST, Weights, find_any

Progress: TypeAlias = Callable[[int, int], None]
"""Progress callback, called with the bytes available so far and the total."""

_PIECE = 1 << 20
_SPARE = 64 << 20
"""Number of bytes to leave free on the disk, because the database is on it too."""


def models_folder(home: Path) -> Path:
    """Return the folder that contains the weights."""
    return home / "data" / "models"


def file_hash(path: Path) -> str:
    """Return the SHA-256 of the file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_room(folder: Path, needed: int) -> None:
    """Raise StoreFull if the disk does not have `needed` bytes plus a reserve."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if free < needed + _SPARE:
        wanted, available = f"{(needed + _SPARE) / 1e6:,.0f} MB", f"{free / 1e6:,.0f} MB"
        message = f"{wanted} are needed in {str(folder)!r}, but only {available} are free."
        raise StoreFull(message, fix="Free some space, or set MOOT_HOME.")


def append(file: BinaryIO, source: Path, size: int, sha256: str) -> None:
    """Verify `source` and append it to the file. Raise ProviderError if its size or hash is wrong."""
    if source.stat().st_size != size or file_hash(source) != sha256:
        raise ProviderError(f"{source.name!r} has the wrong hash (expected sha256 {sha256[:12]}…).", kind="protocol")
    with source.open("rb") as piece:
        shutil.copyfileobj(piece, file, _PIECE)


def copy_in(file: BinaryIO, source: Path) -> None:
    """Replace the content of the file with `source`."""
    truncate(file, 0)
    with source.open("rb") as whole:
        shutil.copyfileobj(whole, file, _PIECE)


def truncate(file: BinaryIO, size: int) -> None:
    """Truncate the file to `size` bytes and seek to its end."""
    file.seek(size)
    file.truncate()


def install_file(file: BinaryIO, partial: Path, target: Path, sha256: str) -> None:
    """Verify the whole file, make it durable and move it into place. Empty it and raise ProviderError if the hash is wrong."""
    file.flush()
    os.fsync(file.fileno())
    found = file_hash(partial)
    if found != sha256:
        truncate(file, 0)
        raise ProviderError(f"The file has sha256 {found[:12]}… instead of the expected {sha256[:12]}…. It was discarded.", kind="protocol")
    partial.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def weights_path(name: str, home: Path) -> Path | None:
    """Return the path of a weights file if it is completely installed, otherwise None. Raise UsageError for an unknown name."""
    weights = find_any(name)
    path = models_folder(home) / weights.file
    return path if path.is_file() and path.stat().st_size == weights.size else None


def installed_weights(home: Path) -> list[Weights]:
    """Return the chat models whose weights are installed."""
    return [weights for weights in MANIFEST.values() if weights_path(weights.name, home)]
