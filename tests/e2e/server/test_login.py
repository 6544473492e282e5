from __future__ import annotations

from typing import Any

import pytest
from aiohttp import CookieJar

from e2e.server.conftest import LiveServer
from moot.server.auth import COOKIE

pytestmark = pytest.mark.anyio


def a_browser(server: LiveServer) -> dict[str, Any]:
    """A client that acts like a browser: it keeps cookies and sends its origin."""
    return {"cookie_jar": CookieJar(unsafe=True), "headers": {"origin": server.url}}


async def test_a_pasted_token_signs_a_browser_in_with_no_more_rights_than_it_has(server: LiveServer) -> None:
    secret = await server.token(scopes=["read"])
    async with server.stranger(**a_browser(server)) as browser:
        answer = await browser.post("/api/login", json={"token": secret})
        assert (answer.status, (await answer.json())["scopes"]) == (200, ["read"])
        assert (await browser.get("/api/session")).status == 200
        assert (await browser.get("/api/tokens")).status == 403


async def test_revoking_a_pasted_token_signs_the_browser_out(server: LiveServer) -> None:
    secret = await server.token(name="pasted")
    async with server.stranger(**a_browser(server)) as browser:
        await browser.post("/api/login", json={"token": secret})
        tokens = (await (await server.client.get("/api/tokens")).json())["data"]
        pasted = next(token["id"] for token in tokens if token["name"] == "pasted")
        assert (await server.client.delete(f"/api/tokens/{pasted}")).status == 200
        assert (await browser.get("/api/session")).status == 401


async def test_signing_out_keeps_a_pasted_token_and_revokes_a_login_token(server: LiveServer) -> None:
    pasted = await server.token()
    async with server.stranger(**a_browser(server)) as browser:
        await browser.post("/api/login", json={"token": pasted})
        assert (await browser.post("/api/logout")).status == 204
        assert (await browser.get("/api/session", headers={"authorization": f"Bearer {pasted}"})).status == 200
    async with server.stranger(**a_browser(server)) as browser:
        answer = await browser.post("/api/login", json={"code": await server.state.tokens.code("local")})
        made = answer.cookies[COOKIE].value
        assert (await browser.post("/api/logout")).status == 204
        assert (await browser.get("/api/session", headers={"authorization": f"Bearer {made}"})).status == 401


async def test_the_fixed_token_signs_in_and_out(server: LiveServer) -> None:
    async with server.stranger(**a_browser(server)) as browser:
        fixed = server.client.headers["authorization"].removeprefix("Bearer ")
        assert (await browser.post("/api/login", json={"token": fixed})).status == 200
        assert (await browser.post("/api/logout")).status == 204


@pytest.mark.parametrize("given", [{}, {"code": "a", "token": "b"}, {"token": "wrong"}, {"code": "wrong"}])
async def test_an_invalid_token_does_not_sign_in(server: LiveServer, given: dict[str, str]) -> None:
    async with server.stranger(**a_browser(server)) as browser:
        answer = await browser.post("/api/login", json=given)
        assert answer.status in (401, 422)
        assert COOKIE not in answer.cookies
