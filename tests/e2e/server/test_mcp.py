"""MCP servers over HTTP: their state, their switch, and the tools to accept."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.mcp_server import PICTURE
from e2e.server.conftest import LiveServer

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).parents[1] / "mcp_server.py"


async def configured(server: LiveServer, folder: Path) -> None:
    values = {"mcp.demo": {"command": sys.executable, "args": [str(PROGRAM), "stdio", str(folder)], "env": {"KEY": "canary-77"}}}
    answer = await server.client.patch("/api/config", json={"values": values})
    assert answer.status == 200, await answer.text()


async def the_server(server: LiveServer) -> dict[str, Any]:
    (one,) = (await (await server.client.get("/api/mcp")).json())["data"]
    return one


async def test_a_server_is_connected_switched_and_its_changes_are_accepted(server: LiveServer, tmp_path: Path) -> None:
    await configured(server, tmp_path)
    assert (await the_server(server))["status"] == "not started"
    connected = await server.client.post("/api/mcp/demo/connect")
    assert connected.status == 200 and "canary-77" not in await connected.text()
    one = await connected.json()
    assert one["status"] == "connected" and "Add two numbers." in str(one["tools"])

    await server.client.patch("/api/mcp/demo", json={"enabled": False})
    assert (await the_server(server))["status"] == "disabled"
    assert (await server.client.post("/api/mcp/demo/connect")).status == 409
    await server.client.patch("/api/mcp/demo", json={"enabled": True})

    (tmp_path / "description").write_text("Add two numbers, more or less.")
    await server.client.post("/api/mcp/demo/connect")
    changed = [tool for tool in (await the_server(server))["tools"] if tool["is_changed"]]
    assert [tool["description"] for tool in changed] == ["Add two numbers, more or less."]
    assert (await server.client.post("/api/mcp/demo/accept", json={"digests": ["other"]})).status == 409
    accepted = await server.client.post("/api/mcp/demo/accept", json={"digests": [tool["digest"] for tool in changed]})
    assert accepted.status == 200
    assert not [tool for tool in (await the_server(server))["tools"] if tool["is_changed"]]


async def test_resources_of_a_server_are_listed_and_read(server: LiveServer, tmp_path: Path) -> None:
    await configured(server, tmp_path)
    listed = (await (await server.client.get("/api/mcp/demo/resources")).json())["data"]
    assert [one["uri"] for one in listed] == ["data://big", "note://latin", "note://today", "pic://dot", "note://person/{name}"]
    assert listed[4]["is_template"] is True
    (note,) = (await (await server.client.get("/api/mcp/demo/resource", params={"uri": "note://today"})).json())["data"]
    assert note == {"uri": "note://today", "media_type": "text/markdown", "text": "# Today\n\nWater the plants.", "base64": None}
    (picture,) = (await (await server.client.get("/api/mcp/demo/resource", params={"uri": "pic://dot"})).json())["data"]
    assert (base64.b64decode(picture["base64"]), picture["text"]) == (PICTURE, None)
    (latin,) = (await (await server.client.get("/api/mcp/demo/resource", params={"uri": "note://latin"})).json())["data"]
    assert (latin["media_type"], base64.b64decode(latin["base64"])) == ("application/octet-stream", b"caf\xe9")
    missing = await server.client.get("/api/mcp/demo/resource", params={"uri": "note://nothing"})
    assert missing.status >= 400 and "reports an error" in await missing.text()
    assert (await server.client.get("/api/mcp/demo/resource")).status == 422
    await server.client.patch("/api/mcp/demo", json={"enabled": False})
    assert (await server.client.get("/api/mcp/demo/resources")).status == 409


async def test_only_an_administrator_of_the_machine_sees_servers(server: LiveServer, tmp_path: Path) -> None:
    await configured(server, tmp_path)
    async with server.caller(scopes=["tools"]) as caller:
        for method, path in (
            ("GET", ""),
            ("PATCH", "/demo"),
            ("POST", "/demo/connect"),
            ("POST", "/demo/accept"),
            ("GET", "/demo/resources"),
        ):
            answer = await caller.request(method, f"/api/mcp{path}", json={})
            assert answer.status == 403, f"{method} {path}"
    assert (await server.client.post("/api/mcp/nothing/connect")).status == 404


async def test_a_server_that_cannot_start_is_a_problem_with_its_reason(server: LiveServer) -> None:
    answer = await server.client.patch("/api/config", json={"values": {"mcp.gone": {"command": "no-such-program"}}})
    assert answer.status == 200
    failed = await server.client.post("/api/mcp/gone/connect")
    assert failed.status >= 400 and "no-such-program" in await failed.text()
    assert (await the_server(server))["status"] == "failed"
