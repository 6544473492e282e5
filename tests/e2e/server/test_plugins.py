"""Plugins over HTTP: installing exactly what was shown, and enabling, accepting and deleting them."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import got, sent

pytestmark = pytest.mark.anyio


async def test_a_plugin_is_installed_as_shown_disabled_accepted_and_deleted(server: LiveServer, tmp_path: Path, repository: Path) -> None:
    client = server.client
    market = shutil.copytree(repository / "examples/marketplace", tmp_path / "market")
    wanted = {"source": str(market), "plugin": "house-style"}
    await sent(client, "POST", "/api/plugins/preview", {"source": str(market)}, 400)
    shown = await sent(client, "POST", "/api/plugins/preview", wanted, 200)
    assert [hook["event"] for hook in shown["hooks"]] == ["PreToolUse", "UserPromptSubmit"]
    assert "hooks/guard.sh" in [text["title"] for text in shown["texts"]] and len(shown["not_installed"]) == 5
    guard = market / "plugins/house-style/hooks/guard.sh"
    before = guard.read_text()
    guard.write_text("true\n")
    await sent(client, "POST", "/api/plugins", {**wanted, "digest": shown["digest"]}, 409)
    guard.write_text(before)
    made = await sent(client, "POST", "/api/plugins", {**wanted, "digest": shown["digest"]}, 201)
    assert made["status"] == "enabled" and made["digest"] == shown["digest"]
    with anyio.fail_after(60):  # without a restart
        while not (await got(client, "/api/mcp"))["data"]:
            await anyio.sleep(0.05)
    await sent(client, "PATCH", "/api/mcp/plugin_house-style_words", {"enabled": False}, 400)
    await sent(client, "POST", "/api/mcp/plugin_house-style_words/connect", None, 200)
    accepted = server.engine.settings.home / "mcp/plugin_house-style_words.json"
    assert accepted.is_file()
    assert (await sent(client, "PATCH", "/api/plugins/house-style", {"enabled": False}, 200))["status"] == "disabled"
    assert (await sent(client, "PATCH", "/api/plugins/house-style", {"enabled": True}, 200))["status"] == "enabled"

    (Path(made["folder"]) / "hooks/guard.sh").write_text("true\n")
    assert (await got(client, "/api/plugins"))["data"][0]["status"] == "changed"
    await sent(client, "PATCH", "/api/plugins/house-style", {"enabled": True}, 403)
    await sent(client, "POST", "/api/plugins/house-style/accept", {"digest": shown["digest"]}, 409)
    current = await got(client, "/api/plugins/house-style/content")
    assert {"title": "hooks/guard.sh", "text": "true\n"} in current["texts"]
    assert (await sent(client, "POST", "/api/plugins/house-style/accept", {"digest": current["digest"]}, 200))["status"] == "enabled"
    (market / "plugins/house-style/.mcp.json").unlink()
    newer = await sent(client, "POST", "/api/plugins/preview", wanted, 200)
    await sent(client, "POST", "/api/plugins", {**wanted, "digest": newer["digest"], "update": True}, 201)
    assert not accepted.exists()  # a later server of this name is a new one
    await sent(client, "DELETE", "/api/plugins/house-style", None, 200)
    assert (await got(client, "/api/plugins"))["data"] == []
    await sent(client, "DELETE", "/api/plugins/house-style", None, 404)
    await sent(client, "POST", "/api/plugins/preview", {"source": "relative"}, 400)


async def test_only_an_administrator_of_the_machine_decides_about_plugins(server: LiveServer) -> None:
    async with server.caller(scopes=["tools"]) as caller:
        for method, path in (("GET", ""), ("GET", "/a"), ("PATCH", "/a"), ("POST", ""), ("POST", "/preview"), ("DELETE", "/a")):
            assert (await caller.request(method, f"/api/plugins{path}", json={})).status == 403, f"{method} {path}"
