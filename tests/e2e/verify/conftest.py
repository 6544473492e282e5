"""Homes with real runs, created once for all tests here; each test gets a copy."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.verify.homes import DIALECTS, Store, live_through


class Homes(dict[str, Path]):
    """Created on first use."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        self._base = base

    def __missing__(self, dialect: str) -> Path:
        work = self._base / f"work-{dialect}"
        work.mkdir()
        with ThreadPoolExecutor(1) as thread:  # a test may already have an event loop
            thread.submit(asyncio.run, live_through(self._base / dialect, work, dialect)).result()
        self[dialect] = self._base / dialect
        return self[dialect]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return Homes(tmp_path_factory.mktemp("lived"))


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stored(homes: dict[str, Path], dialect: str, tmp_path: Path) -> Iterator[Store]:
    store = Store(shutil.copytree(homes[dialect], tmp_path / "copied"))
    yield store
    store.database.close()
