"""Fixtures of the import tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from host_stage import Machines


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    found = Machines(tmp_path)
    monkeypatch.setenv("PATH", f"{found.bin}:{os.environ['PATH']}")
    yield found
    for place in [found.homes, *found.homes.rglob("*")]:
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o755)
