"""Short requests for tests of routes."""

from __future__ import annotations

from typing import Any

import aiohttp
import anyio

from e2e.server.conftest import LiveServer

Json = dict[str, Any]


async def got(client: aiohttp.ClientSession, path: str, expected: int = 200, **query: Any) -> Json:
    async with client.get(path, params=query) as answer:
        found: Json = await answer.json(content_type=None)
        assert answer.status == expected, found
        return found


async def sent(client: aiohttp.ClientSession, method: str, path: str, body: Any = None, status: int = 200, **more: Any) -> Json:
    async with client.request(method, path, json=body, **more) as answer:
        found: Json = await answer.json(content_type=None)
        assert answer.status == status, found
        return found


async def began(server: LiveServer, client: aiohttp.ClientSession | None = None, **fields: Any) -> Json:
    return await sent(client or server.client, "POST", "/api/conversations", {"directory": str(server.directory), **fields}, 201)


async def said(server: LiveServer, conversation: str, text: str, **more: Any) -> Json:
    return await sent(server.client, "POST", f"/api/conversations/{conversation}/messages", {"text": text, **more}, 202)


async def called(server: LiveServer, requests: int = 1) -> None:
    """Wait until the model has received that many requests."""
    with anyio.fail_after(60):
        while len(server.model.requests) < requests:
            await anyio.sleep(0.01)


async def ended(server: LiveServer, submitted: Json) -> Json:
    with anyio.fail_after(60):
        await server.engine.runs.wait(submitted["run"]["id"])
    return await got(server.client, f"/api/runs/{submitted['run']['id']}")
