"""What holds for the style tests: they read the whole tree or start programs, which takes its time on a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

SECONDS = 90


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
