"""MCP servers over HTTP: their state, their switch, and the tools to accept."""

from __future__ import annotations

import base64
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import anyio
import pytest
from ruamel.yaml import YAML

from e2e.mcp_server import PICTURE
from e2e.server.conftest import LiveServer
from e2e.test_mcp_login import Accounts, browse, serving
from moot.mcp import oauth

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).parents[1] / "mcp_server.py"


async def configured(server: LiveServer, folder: Path) -> None:
    values = {"mcp.demo": {"command": sys.executable, "args": [str(PROGRAM), "stdio", str(folder)], "env": {"KEY": "canary-77"}}}
    answer = await server.client.patch("/api/config", json={"values": values})
    assert answer.status == 200, await answer.text()


async def the_server(server: LiveServer) -> dict[str, Any]:
    (one,) = (await (await server.client.get("/api/mcp")).json())["data"]
    return one


@pytest.mark.slow
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


def program(folder: Path, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(PROGRAM), "stdio", str(folder)], **more}


def written(server: LiveServer) -> dict[str, Any]:
    file = server.engine.settings.home / "config.yaml"
    return YAML(typ="safe").load(file).get("mcp") or {} if file.exists() else {}


@pytest.mark.slow
async def test_a_server_is_tested_before_it_is_added_and_its_secrets_are_never_returned(server: LiveServer, tmp_path: Path) -> None:
    tried = await server.client.post("/api/mcp/demo/test", json=program(tmp_path, env={"KEY": "canary-77"}))
    assert tried.status == 200, await tried.text()
    assert "Add two numbers." in str((await tried.json())["tools"])
    assert not written(server) and not (server.engine.settings.home / "mcp" / "demo.json").exists()

    added = await server.client.post("/api/mcp", json={"name": "demo", **program(tmp_path, env={"KEY": "canary-77"})})
    assert added.status == 201, await added.text()
    shown = await server.client.get("/api/mcp/demo")
    assert (await shown.json())["env"] == ["KEY"]
    assert "canary-77" not in await added.text() + await shown.text()
    assert (await the_server(server))["is_saved"] and (await the_server(server))["status"] == "not started"
    again = await server.client.post("/api/mcp", json={"name": "demo", **program(tmp_path)})
    assert again.status == 400 and "already exists" in await again.text()

    changed = await server.client.put("/api/mcp/demo", json=program(tmp_path, env={"KEY": None, "MODE": "fast"}, trust_hints=True))
    assert changed.status == 200, await changed.text()
    assert written(server)["demo"] == program(tmp_path, env={"KEY": "canary-77", "MODE": "fast"}, trust_hints=True)
    stale = await server.client.put("/api/mcp/demo", json=program(tmp_path), headers={"If-Match": shown.headers["etag"]})
    assert stale.status == 412

    await server.client.post("/api/mcp/demo/connect")
    assert (server.engine.settings.home / "mcp" / "demo.json").exists()
    assert (await server.client.delete("/api/mcp/demo")).status == 204
    assert not written(server) and not (server.engine.settings.home / "mcp" / "demo.json").exists()
    assert (await server.client.get("/api/mcp/demo")).status == 404


async def test_errors_in_a_definition_name_the_field(server: LiveServer) -> None:
    for path, definition, at in (
        ("demo/test", {"url": "ftp://example.org"}, "mcp.demo.url"),
        ("demo/test", {}, "mcp.demo"),
        ("demo/test", {"command": "x", "headers": {"A": "b"}}, "mcp.demo.headers"),
        ("demo/test", {"command": "x", "env": {"KEY": None}}, "mcp.demo.env.KEY"),
        ("", {"name": "a.b", "command": "x"}, "body.name"),
        ("", {"name": "a__b", "command": "x"}, "mcp.a__b"),
    ):
        answer = await server.client.post(f"/api/mcp/{path}".removesuffix("/"), json=definition)
        assert answer.status == 422, await answer.text()
        assert [error["at"] for error in (await answer.json())["errors"]] == [at]
    assert not written(server)


async def test_a_stored_header_is_not_sent_to_another_site(server: LiveServer) -> None:
    definition = {"name": "docs", "url": "https://docs.example/mcp", "headers": {"Authorization": "canary-77"}}
    assert (await server.client.post("/api/mcp", json=definition)).status == 201
    kept = {"Authorization": None}
    moved = {"url": "https://docs.example/v2/mcp", "headers": kept}
    assert (await server.client.put("/api/mcp/docs", json=moved)).status == 200
    assert written(server)["docs"] == {"url": "https://docs.example/v2/mcp", "headers": {"Authorization": "canary-77"}}
    for url in ("https://evil.example/mcp", "http://docs.example/mcp", "https://docs.example:8443/mcp"):
        for method, path in (("PUT", "docs"), ("POST", "docs/test")):
            answer = await server.client.request(method, f"/api/mcp/{path}", json={"url": url, "headers": kept})
            assert answer.status == 422 and "Enter the value again" in await answer.text()


async def test_only_the_scope_machine_can_define_servers(server: LiveServer, tmp_path: Path) -> None:
    secret = (await (await server.client.post("/api/tokens", json={"name": "x", "scopes": ["read", "chat", "tools", "admin"]})).json())[
        "secret"
    ]
    headers = {"Authorization": f"Bearer {secret}", "Cookie": ""}
    for method, path in (("POST", ""), ("POST", "/demo/test"), ("GET", "/demo"), ("PUT", "/demo"), ("DELETE", "/demo")):
        answer = await server.client.request(method, f"/api/mcp{path}", json={"name": "demo", **program(tmp_path)}, headers=headers)
        assert answer.status == 403, (method, path)


@asynccontextmanager
async def vault(server: LiveServer, port: int) -> AsyncGenerator[Accounts]:
    """Serve and configure a remote MCP server that refuses access without a login."""
    async with serving(port) as (remote, accounts):
        answer = await server.client.patch("/api/config", json={"values": {"mcp.vault": {"url": remote.url}}})
        assert answer.status == 200, await answer.text()
        yield accounts


async def login(server: LiveServer, method: str) -> dict[str, Any]:
    """Start (POST) or end (DELETE) a login at the server `vault`."""
    answer = await server.client.request(method, "/api/mcp/vault/login")
    assert answer.status == 200, await answer.text()
    return (await answer.json())["login"]


async def settled(server: LiveServer) -> dict[str, Any]:
    """Return the login at the server `vault` as soon as it is not pending."""
    with anyio.fail_after(30):
        while (found := (await the_server(server))["login"])["state"] == "pending":
            await anyio.sleep(0.02)
    return found


async def is_open(address: str) -> bool:
    """Return whether moot still waits for the browser that the address sends back."""
    (callback,) = parse_qs(urlsplit(address).query)["redirect_uri"]
    try:
        async with aiohttp.ClientSession() as session, session.get(callback):
            return True
    except aiohttp.ClientError:
        return False


async def test_a_login_is_started_finished_and_deleted(server: LiveServer, free_tcp_port: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with vault(server, free_tcp_port) as accounts:
        assert (await the_server(server))["login"] == {"state": "none", "address": "", "error": ""}
        refused = await server.client.post("/api/mcp/vault/connect")
        assert refused.status >= 400 and (await the_server(server))["login"]["state"] == "needed"
        started = await login(server, "POST")
        assert started["state"] == "pending" and started["address"].startswith(f"http://127.0.0.1:{free_tcp_port}/authorize?")
        assert (await the_server(server))["login"] == started
        await browse(started["address"])
        assert await settled(server) == {"state": "signed in", "address": "", "error": ""}
        assert not await is_open(started["address"])
        connected = await server.client.post("/api/mcp/vault/connect")
        assert connected.status == 200 and (await connected.json())["status"] == "connected"

        assert (await login(server, "DELETE"))["state"] == "none"
        assert not (server.engine.settings.home / "state" / "logins" / "vault.json").exists()
        assert (await server.client.post("/api/mcp/vault/connect")).status >= 400
        (token,) = accounts.access
        assert token not in caplog.text and "canary-" not in await connected.text() + str(await the_server(server))


async def test_a_login_that_starts_again_or_is_cancelled_stops_the_earlier_one(server: LiveServer, free_tcp_port: int) -> None:
    async with vault(server, free_tcp_port):
        first = await login(server, "POST")
        second = await login(server, "POST")
        assert first["address"] != second["address"]
        with anyio.fail_after(30):
            while await is_open(first["address"]):
                await anyio.sleep(0.02)
        assert await is_open(second["address"])
        assert (await login(server, "DELETE"))["state"] == "none"
        assert not await is_open(second["address"])
        third = await login(server, "POST")
        await server.client.patch("/api/mcp/vault", json={"enabled": False})
        with anyio.fail_after(30):
            while await is_open(third["address"]):
                await anyio.sleep(0.02)
        assert (await server.client.post("/api/mcp/vault/login")).status == 409


async def test_cancelling_a_login_keeps_the_stored_one(server: LiveServer, free_tcp_port: int) -> None:
    async with vault(server, free_tcp_port):
        await browse((await login(server, "POST"))["address"])
        assert (await settled(server))["state"] == "signed in"
        await login(server, "POST")
        assert (await login(server, "DELETE"))["state"] == "signed in"
        assert (await login(server, "DELETE"))["state"] == "none"


async def test_a_login_that_fails_says_why(server: LiveServer, free_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async with vault(server, free_tcp_port) as accounts:
        accounts.denies = True
        await browse((await login(server, "POST"))["address"])
        found = await settled(server)
        assert found["state"] == "needed" and "was refused" in found["error"]
        monkeypatch.setattr(oauth, "LOGIN_SECONDS", 0.5)
        late = await login(server, "POST")
        found = await settled(server)
        assert found["state"] == "needed" and "was not completed" in found["error"]
        assert not await is_open(late["address"])


async def test_a_program_and_a_server_without_logins_have_no_login(server: LiveServer, tmp_path: Path) -> None:
    await configured(server, tmp_path)
    refused = await server.client.post("/api/mcp/demo/login")
    assert refused.status >= 400 and "Only remote servers have a login" in await refused.text()
    values = {
        "mcp.gone": {"url": "http://127.0.0.1:9/mcp"},
        "mcp.keyed": {"url": "https://127.0.0.1:9/mcp", "headers": {"Authorization": "x"}},
    }
    assert (await server.client.patch("/api/config", json={"values": values})).status == 200
    assert (await server.client.post("/api/mcp/gone/login")).status >= 400
    keyed = await server.client.post("/api/mcp/keyed/login")
    assert keyed.status >= 400 and "configured with a key" in await keyed.text()
    listed = (await (await server.client.get("/api/mcp")).json())["data"]
    assert [one["login"]["state"] for one in listed] == ["none"] * 3


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
            ("POST", "/demo/login"),
            ("DELETE", "/demo/login"),
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
