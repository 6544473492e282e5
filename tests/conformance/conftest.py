"""Each store of `stores.STORES`, opened in an empty home, at every durability."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from conformance.stores import STORES
from moot.config.settings import Settings, Storage
from moot.types.store import Store


@pytest.fixture(params=[(name, durability) for name in STORES for durability in ("normal", "full")], ids="-".join)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    name: str
    durability: Literal["normal", "full"]
    name, durability = request.param
    opened = await STORES[name](Settings(home=tmp_path / "home", storage=Storage(durability=durability)))
    yield opened
    await opened.close()
