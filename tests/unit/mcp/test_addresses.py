"""Addresses that are not MCP servers, and servers whose variables are not set: what the error says."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from aiohttp import web

from moot.errors import MootError, Refused
from moot.mcp.servers import McpServers
from moot.types.agent import McpServer

pytestmark = pytest.mark.anyio

NOT_A_MESSAGE = "did not respond with a valid protocol message"
ADDRESSES: list[tuple[web.Response, str]] = [
    (web.Response(text="<p>Hello</p>", content_type="text/html"), f"{NOT_A_MESSAGE} (content type 'text/html; charset=utf-8')."),
    (web.Response(text='{"hello": 1}', content_type="application/json"), f"{NOT_A_MESSAGE}."),
    (web.Response(text="{", content_type="application/json"), f"{NOT_A_MESSAGE}."),
    (web.Response(status=404), "reports an error (HTTP 404): Not Found"),
    (web.Response(status=405), "reports an error (HTTP 405): "),
    (web.Response(status=302, headers={"Location": "/"}), "(HTTP 302)"),
]


@pytest.mark.parametrize("number", range(len(ADDRESSES)))
async def test_an_address_that_is_not_a_server_is_reported_with_the_setting_to_check(number: int, tmp_path: Path) -> None:
    response, reason = ADDRESSES[number]

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=response.status, headers=response.headers, body=response.body)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        server = McpServer("web", url=f"http://127.0.0.1:{runner.addresses[0][1]}/mcp")
        async with anyio.create_task_group() as group:
            with pytest.raises(MootError) as raised:
                await McpServers(tmp_path, group).fetch(server, str(tmp_path))
            assert reason in raised.value.message and "mcp.web.url" in raised.value.fix, raised.value.advice()
            assert "\n" not in raised.value.message
            group.cancel_scope.cancel()
    finally:
        await runner.cleanup()


async def test_a_server_with_a_problem_is_not_contacted(tmp_path: Path) -> None:
    server = McpServer("web", url="http://127.0.0.1:1/", enabled=False, problem="The environment variable 'KEY' is not set.")
    async with anyio.create_task_group() as group:
        servers = McpServers(tmp_path, group)
        with pytest.raises(Refused, match="The environment variable 'KEY' is not set"):
            await servers.fetch(server, str(tmp_path))
        (status,) = servers.status([server])
        assert (status.state, status.error) == ("failed", "The environment variable 'KEY' is not set.")
