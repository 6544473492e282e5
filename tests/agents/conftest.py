"""Fixtures for tests of real agent programs: scripted models, a home, and the real `moot`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agents.models import Script, ScriptedModels
from e2e.cli_process import MootProcess, make
from verification import check_homes


@pytest.fixture(scope="module")
def serve_models() -> Iterator[Callable[[Script], ScriptedModels]]:
    """Start scripted models, and stop them after the file's tests."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(ScriptedModels(script))


@pytest.fixture(autouse=True)
def _sound(tmp_path: Path) -> Iterator[None]:
    """Check that the raw output of real programs gives the stored chunks again."""
    yield
    asyncio.run(check_homes(tmp_path))


@pytest.fixture
def moot_with(tmp_path: Path) -> Iterator[Callable[..., MootProcess]]:
    """Return a `moot` with that configuration and environment. HOME is the test's own folder, where agents store their files."""
    made: list[MootProcess] = []

    def start(config: str, environment: dict[str, str] | None = None) -> MootProcess:
        process = make(tmp_path, config)
        process.more |= environment or {}
        made.append(process)
        return process

    yield start
    for process in made:
        process.close()
