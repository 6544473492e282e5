"""Verify the store that a test left behind, by the rules of `moot verify`: everything in it must follow from its raw bytes."""

from __future__ import annotations

from pathlib import Path

from moot.config.settings import Settings
from moot.convert.exchanges import translator_of
from moot.store import open_store
from moot.types.verify import Receipt, Translators


async def verify(home: Path, translators: Translators = translator_of, conversation: str | None = None) -> Receipt:
    """Verify a home and return the complete receipt."""
    store = await open_store(Settings(home))
    try:
        receipts = [receipt async for receipt in store.verifier.verify(translators, conversation=conversation)]
    finally:
        await store.close()
    return receipts[-1]


async def check_homes(folder: Path) -> None:
    """Fail with the first difference in any home below the folder."""
    for database in sorted(folder.glob("**/data/moot.db")):
        receipt = await verify(database.parent.parent)
        assert not receipt.damages, f"{database}: {receipt.damaged} differences, the first: {receipt.damages[:5]}"
