"""The public mock's judgement of moot: no retry storms, Retry-After respected, truncated streams never accepted as complete."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.llmock_server import MODEL, Llmock, llmock
from moot.config.settings import Models, Permissions, Settings
from moot.engine import Engine, open_engine
from moot.types.message import Message, text_part
from moot.types.run import Prompt, Run

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

DIALECTS = ["openai-chat", "anthropic"]
LATER = ["openai-responses", "google"]
"""Errors like those of the other dialects; streams of its own format."""

FAULTS: list[dict[str, Any]] = [
    {"type": "fail", "status": 429, "retry_after": 0.4},
    {"type": "fail", "status": 500},
    {"type": "fail", "status": 529},
    {"type": "stream_fault", "kind": "truncate", "after_chunks": 1},
    {"type": "stream_fault", "kind": "disconnect", "after_chunks": 1},
    {"type": "stream_fault", "kind": "malformed", "after_chunks": 1},
    {"type": "stream_fault", "kind": "stall", "after_chunks": 1, "stall_seconds": 5},
]


@pytest.fixture(scope="module")
async def mock() -> AsyncGenerator[Llmock, None]:
    # pause between frames: in one burst, a client that stops reading looks like one that read everything
    async with llmock("--stream-chunk-delay-ms", "5") as running:
        yield running


@pytest.fixture
async def on(mock: Llmock) -> Llmock:
    await mock.reset()
    return mock


@asynccontextmanager
async def opened(home: Path, mock: Llmock, dialect: str) -> AsyncGenerator[Engine, None]:
    settings = Settings(
        home,
        models=Models(main=f"{MODEL}@mock"),
        providers={"mock": mock.provider(dialect=dialect, timeout=1.5)},
        permissions=Permissions(mode="auto"),
    )
    async with open_engine(settings, seed=1) as engine:
        yield engine


async def asked(engine: Engine, text: str = "Hi") -> tuple[Run, Message]:
    submitted = await engine.runs.submit(Prompt((text_part(text),), settings={"tools": False}))
    run = await engine.runs.wait(submitted.run.id)
    return run, await engine.store.conversations.message(run.message)


async def findings(mock: Llmock) -> list[Any]:
    verdict = await mock.verdict()
    found: list[Any] = verdict["findings"]
    return found


@pytest.mark.parametrize(
    ("dialect", "fault"),
    [*((dialect, fault) for dialect in DIALECTS for fault in FAULTS), *((dialect, fault) for dialect in LATER for fault in FAULTS[3:6])],
    ids=lambda value: value if isinstance(value, str) else "-".join(str(one) for one in value.values()),
)
async def test_one_fault_is_survived_and_the_report_is_clean(tmp_path: Path, on: Llmock, dialect: str, fault: dict[str, Any]) -> None:
    await on.queue(fault)
    async with opened(tmp_path, on, dialect) as engine:
        run, _ = await asked(engine)
    assert run.status == "finished", run.error
    assert await findings(on) == []
    assert (await on.verdict())["faults_injected"] == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_permanent_errors_are_not_retried(tmp_path: Path, on: Llmock, status: int) -> None:
    await on.queue({"type": "fail", "status": status, "times": 5})
    async with opened(tmp_path, on, "openai-chat") as engine:
        run, _ = await asked(engine)
    assert run.status == "failed"
    assert len(await on.requests()) == 1
    assert await findings(on) == []


async def test_an_endpoint_that_never_recovers_is_abandoned_after_a_few_retries(tmp_path: Path, on: Llmock) -> None:
    await on.queue({"type": "fail", "status": 503, "retry_after": 0.05, "times": 50})
    async with opened(tmp_path, on, "openai-chat") as engine:
        run, _ = await asked(engine)
    assert run.status == "failed"
    assert 2 <= len(await on.requests()) <= 10
    assert await findings(on) == []
