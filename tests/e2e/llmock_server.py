"""The public mock server `llmock` in a separate process: it breaks streams and requests on demand, and judges the client.

    async with llmock() as mock:
        await mock.queue({"type": "fail", "status": 429, "retry_after": 0.2}, {"type": "stream_fault", "kind": "truncate"})
        ...                                             # let moot talk to mock.provider() or mock.provider(dialect="anthropic")
        assert (await mock.verdict())["findings"] == []

Scenarios: fail {status, retry_after, times}, delay {seconds}, slow_first_token {seconds}, stream_fault {kind: disconnect | truncate |
stall | malformed, after_chunks, stall_seconds}, reply {text, tool_calls, finish_reason}, tool_fault {kind: malformed_arguments |
unknown_tool}.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from moot.config.settings import ProviderSettings

_URL = re.compile(rb"running on (http://127\.0\.0\.1:\d+)")
_START_SECONDS = 20.0
MODEL = "gpt-4o-mini"


@dataclass(frozen=True, slots=True)
class Llmock:
    """A running mock."""

    url: str
    client: aiohttp.ClientSession

    def provider(self, name: str = "mock", dialect: str = "openai-chat", **more: Any) -> ProviderSettings:
        """Return the settings of a custom provider that calls it, with one model named `MODEL`."""
        base_url = self.url + {"anthropic": "/anthropic", "google": "/gemini"}.get(dialect, "/v1")
        return ProviderSettings(name, dialect=dialect, base_url=base_url, api_key="mock-key-0123", models={MODEL: {}}, **more)

    async def queue(self, *behaviors: dict[str, Any]) -> None:
        """Queue scenarios for the next requests; each is used once unless it has `times`."""
        async with self.client.post(f"{self.url}/_llmock/scenario", json={"behaviors": behaviors}) as answer:
            assert answer.status == 201, await answer.text()

    async def requests(self) -> list[dict[str, Any]]:
        """Return every request it served: status, fault, retry_after, completed, started_at, ended_at, body."""
        rows: list[dict[str, Any]] = (await self._get("requests"))["requests"]
        return rows

    async def verdict(self) -> dict[str, Any]:
        """{passed, calls, attempts, faults_injected, errors, warnings, findings: [{severity, code, title, advice}]}"""
        return await self._get("verdict")

    async def reset(self) -> None:
        """Forget requests and queued scenarios."""
        async with self.client.post(f"{self.url}/_llmock/reset") as answer:
            assert answer.status == 200

    async def _get(self, path: str) -> dict[str, Any]:
        async with self.client.get(f"{self.url}/_llmock/{path}") as answer:
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found


@asynccontextmanager
async def llmock(*arguments: str) -> AsyncGenerator[Llmock, None]:
    """Run a mock on a free port for the duration of a block; `arguments` are those of `llmock serve`."""
    command = [sys.executable, "-c", "from llmock.cli import app; app()", "serve", "--port", "0", "--response-style", "hello", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"},
    )
    assert process.stderr is not None
    drain: asyncio.Task[bytes] | None = None
    try:
        async with asyncio.timeout(_START_SECONDS):
            url = await _url(process.stderr)
        drain = asyncio.create_task(process.stderr.read())
        async with aiohttp.ClientSession() as client:
            yield Llmock(url, client)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if drain:
            await drain


async def _url(lines: asyncio.StreamReader) -> str:
    said = b""
    while line := await lines.readline():
        said += line
        if found := _URL.search(line):
            return found[1].decode()
    raise AssertionError(f"llmock did not start:\n{said.decode(errors='replace')}")
