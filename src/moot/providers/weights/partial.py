"""The file that is being filled: kept across tries, made sure of, and put in its place in one move."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeAlias

from moot.errors import ProviderError, StoreFull

Progress: TypeAlias = Callable[[int, int], None]
"""Bytes that are there, bytes in all."""

_PIECE = 1 << 20
_SPARE = 64 << 20
"""Bytes left free beside what we take: the database lives on the same disk."""


def models_folder(home: Path) -> Path:
    """Where weights lie."""
    return home / "data" / "models"


def file_hash(path: Path) -> str:
    """The sha256 of the file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_room(folder: Path, needed: int) -> None:
    """Raises StoreFull when the disk has not `needed` bytes and some to spare."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if free < needed + _SPARE:
        raise StoreFull(
            f"{_mb(needed + _SPARE)} are needed in {str(folder)!r} and {_mb(free)} are free", fix="free some room, or set MOOT_HOME"
        )


def append(file: BinaryIO, source: Path, size: int, sha256: str) -> None:
    """Adds the whole of `source`, after making sure that it is what we want. Raises ProviderError."""
    if source.stat().st_size != size or file_hash(source) != sha256:
        raise ProviderError(f"{source.name!r} is not the bytes that were expected (sha256 {sha256[:12]}…)", kind="protocol")
    with source.open("rb") as piece:
        shutil.copyfileobj(piece, file, _PIECE)


def copy_in(file: BinaryIO, source: Path) -> None:
    """Fills the file with the whole of `source`."""
    truncate(file, 0)
    with source.open("rb") as whole:
        shutil.copyfileobj(whole, file, _PIECE)


def truncate(file: BinaryIO, size: int) -> None:
    """Cuts the file to `size` bytes and stands at its end."""
    file.seek(size)
    file.truncate()


def settle(file: BinaryIO, partial: Path, target: Path, sha256: str) -> None:
    """Checks the whole, makes it durable and moves it into place. A file with the wrong hash is emptied; ProviderError."""
    file.flush()
    os.fsync(file.fileno())
    found = file_hash(partial)
    if found != sha256:
        truncate(file, 0)
        raise ProviderError(f"the file has sha256 {found[:12]}… where {sha256[:12]}… was expected; nothing of it was kept", kind="protocol")
    partial.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _mb(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"
