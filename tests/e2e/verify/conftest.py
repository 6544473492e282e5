"""Homes in which real runs were made, once for all tests here; each test gets a copy."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.verify.lived import DIALECTS, Store, live_through


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("lived")
    (base / "work").mkdir()
    for dialect in DIALECTS:
        asyncio.run(live_through(base / dialect, base / "work", dialect))
    return {dialect: base / dialect for dialect in DIALECTS}


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stored(homes: dict[str, Path], dialect: str, tmp_path: Path) -> Iterator[Store]:
    store = Store(shutil.copytree(homes[dialect], tmp_path / "copied"))
    yield store
    store.database.close()
