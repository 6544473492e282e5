from __future__ import annotations

from typing import Any

import pytest

from e2e.server.conftest import LiveServer

pytestmark = pytest.mark.anyio


async def test_a_request_without_a_token_explains_how_to_authenticate(server: LiveServer) -> None:
    async with server.stranger() as stranger:
        answer = await stranger.get("/api/session")
        told: dict[str, Any] = await answer.json(content_type="application/problem+json")
    assert (answer.status, told["code"], told["status"]) == (401, "unauthorized", 401)
    assert "moot tokens create" in told["fix"] and told["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_token_grants_what_its_scope_includes(server: LiveServer) -> None:
    async with server.caller(scopes=["chat"], owner="mara") as mara:
        session = await (await mara.get("/api/session")).json()
        assert session["scopes"] == ["read", "chat"] and session["owner"] != "local"
        refused = await mara.get("/api/tokens")
        assert refused.status == 403 and "admin" in (await refused.json(content_type=None))["detail"]
    assert (await (await server.client.get("/api/session")).json())["scopes"] == ["read", "chat", "tools", "admin", "machine"]
