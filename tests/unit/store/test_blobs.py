"""Blobs, addressed by content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moot.config.settings import Settings
from moot.errors import NotFound, StoreCorrupt, StoreFull
from moot.store import SqliteStore
from moot.store.content.blobs import PACKED

pytestmark = pytest.mark.anyio


def files(settings: Settings) -> list[Path]:
    return [path for path in (settings.database.parent / "blobs").rglob("*") if path.is_file()]


async def test_small_blobs_are_in_the_database_and_large_ones_in_files(store: SqliteStore, settings: Settings) -> None:
    small = await store.blobs.put(b"x" * PACKED)
    assert files(settings) == []
    large = await store.blobs.put(b"y" * (PACKED + 1))
    (file,) = files(settings)
    assert file.name == large.sha256 and file.read_bytes() == b"y" * (PACKED + 1)
    assert await store.blobs.get(small.sha256) == b"x" * PACKED


async def test_a_blob_keeps_its_first_media_type(store: SqliteStore) -> None:
    assert (await store.blobs.put(b"x", "image/png")).media_type == "image/png"
    assert (await store.blobs.put(b"x", "text/plain")).media_type == "image/png"


async def test_changed_bytes_are_never_returned(store: SqliteStore, settings: Settings) -> None:
    small, large = await store.blobs.put(b"small"), await store.blobs.put(b"large" * PACKED)
    await store._writer.write(lambda transaction: transaction.row("UPDATE blob SET data = x'00' WHERE data IS NOT NULL RETURNING 1"))
    with pytest.raises(StoreCorrupt, match=small.sha256):
        await store.blobs.get(small.sha256)
    assert await store.blobs.get(large.sha256, offset=2, limit=3) == b"rge"
    (file,) = files(settings)
    data = file.read_bytes()
    file.write_bytes(data[:-1] + b"!")
    with pytest.raises(StoreCorrupt, match=large.sha256):
        await store.blobs.get(large.sha256, offset=2, limit=3)
    file.unlink()
    with pytest.raises(StoreCorrupt, match="missing"):
        await store.blobs.get(large.sha256)


async def test_a_failed_blob_write_leaves_nothing(store: SqliteStore, settings: Settings) -> None:
    folder = settings.database.parent / "blobs"
    folder.write_text("in the way")
    with pytest.raises(StoreFull, match="blobs"):
        await store.blobs.put(os.urandom(PACKED + 1))
    folder.unlink()
    blob = await store.blobs.put(b"z" * (PACKED + 1))
    (file,) = files(settings)
    assert file.name == blob.sha256
    with pytest.raises(NotFound):
        await store.blobs.get("0" * 64)
