"""Fixtures of the tests of plugins."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def source(tmp_path: Path, repository: Path) -> Path:
    """A copy of the example plugin."""
    return shutil.copytree(repository / "examples/marketplace/plugins/house-style", tmp_path / "house-style")
