"""Rules for every agent service: moot's own loop and those of installed packages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import services
from conformance.services import INTRUSIONS, staged
from moot.plugins import AGENTS
from verification import check_homes

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _sound(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that the stored chunks of a service follow from its recorded raw bytes."""
    yield
    if request.node.get_closest_marker("damaged") is None:
        asyncio.run(check_homes(tmp_path))


@pytest.fixture(params=AGENTS.names())
def agent_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service(agent_type: str) -> Any:
    return AGENTS.make(agent_type)


async def test_a_run_finishes_once_with_a_complete_log(agent_type: str, service: Any, tmp_path: Path) -> None:
    async with staged(agent_type, service, tmp_path, "answer") as on:
        await services.check_answer(on)


async def test_a_cancelled_run_ends_and_leaves_nothing_running(agent_type: str, service: Any, tmp_path: Path) -> None:
    async with staged(agent_type, service, tmp_path, "slow") as on:
        await services.check_cancel(on)


async def test_a_leg_resumed_after_its_last_event_repeats_nothing(agent_type: str, service: Any, tmp_path: Path) -> None:
    async with staged(agent_type, service, tmp_path, "answer") as on:
        await services.check_resumed_after_its_end(on, service)


async def test_a_leg_resumed_midway_does_nothing_twice(agent_type: str, service: Any, tmp_path: Path) -> None:
    async with staged(agent_type, service, tmp_path, "slow") as on:
        await services.check_resumed_in_the_middle(on, service)


@pytest.mark.parametrize(("method", "error"), INTRUSIONS, ids=[method for method, _ in INTRUSIONS])
async def test_the_end_of_a_leg_is_passed_on(agent_type: str, service: Any, tmp_path: Path, method: str, error: BaseException) -> None:
    async with staged(agent_type, service, tmp_path, "answer") as on:
        await services.check_passes_through(on, service, method, error)
