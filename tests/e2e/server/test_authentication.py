"""Authentication, error responses and metrics."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from e2e.server.conftest import FIXED, LiveServer

pytestmark = pytest.mark.anyio


# ── credentials ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (f"/api/session?token={FIXED}", {}),
        (f"/api/session?access_token={FIXED}", {}),
        ("/api/session", {"referer": f"http://127.0.0.1/?token={FIXED}"}),
        ("/api/session", {"authorization": FIXED}),
        ("/api/session", {"authorization": "Basic dXNlcjp0ZXN0LWFkbWluLXNlY3JldC0wMTIzNDU2Nzg5"}),
        ("/api/session", {"authorization": f"Bearer {FIXED}x"}),
        ("/api/session", {"authorization": "Bearer "}),
        ("/api/session", {"x-api-key": FIXED}),
        ("/api/session", {"authorization": "Bearer wrong", "cookie": f"moot_session={FIXED}"}),
        ("/api/session", {"cookie": f"session={FIXED}"}),
    ],
)
@pytest.mark.slow
async def test_a_secret_in_another_place_is_ignored(server: LiveServer, path: str, headers: dict[str, str]) -> None:
    async with server.stranger() as stranger:
        answer = await stranger.get(path, headers=headers)
        assert answer.status == 401 and FIXED not in await answer.text()


@pytest.mark.parametrize("place", ["header", "cookie"])
@pytest.mark.parametrize(("scope", "allowed"), [("chat", False), ("admin", True)])
async def test_a_token_grants_the_same_access_in_every_header(server: LiveServer, place: str, scope: Any, allowed: bool) -> None:
    secret = await server.token(scopes=[scope])
    headers = {"authorization": f"Bearer {secret}"} if place == "header" else {"cookie": f"moot_session={secret}"}
    async with server.stranger(headers=headers) as caller:
        assert ((await caller.get("/api/tokens")).status == 200) == allowed


async def test_a_login_code_signs_in_one_browser_until_it_signs_out(server: LiveServer) -> None:
    code = await server.state.tokens.code("local")
    async with server.stranger(headers={"origin": server.url}) as browser:
        answer = await browser.post("/api/login", json={"code": code})
        cookie = answer.headers["set-cookie"]
        assert answer.status == 200 and "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
        assert (await browser.get("/api/session", headers={"cookie": cookie.partition(";")[0]})).status == 200
        assert (await browser.post("/api/login", json={"code": code})).status == 401
        kept = {"cookie": cookie.partition(";")[0]}
        assert (await browser.post("/api/logout", headers=kept)).status == 204
    async with server.stranger(headers=kept) as thief:
        assert (await thief.get("/api/session")).status == 401


async def test_an_expired_login_code_is_rejected(server: LiveServer) -> None:
    await server.engine.store.tokens.put_code(b"d" * 32, owner="local", expires_at=1)
    assert await server.engine.store.tokens.redeem(b"d" * 32) is None


async def test_an_expired_token_is_rejected(server: LiveServer) -> None:
    for seconds in (3600, 1):
        made = await (await server.client.post("/api/tokens", json={"name": "short", "expires_in": seconds})).json()
        async with server.stranger(headers={"authorization": f"Bearer {made['secret']}"}) as caller:
            assert seconds == 1 or (await caller.get("/api/session")).status == 200
            while seconds == 1 and (answer := await caller.get("/api/session")).status != 401:
                assert answer.status == 200
                await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_a_revoked_token_is_rejected_at_once_or_soon_if_another_process_revoked_it(server: LiveServer) -> None:
    for revoke in (server.state.tokens.revoke, server.engine.store.tokens.revoke):  # the second as another process would do it
        secret = await server.token(name="doomed")
        caller = await server.state.tokens.caller(secret)
        assert caller is not None and not caller.revoked.is_set()
        await revoke(caller.token_id)
        async with asyncio.timeout(5):
            await caller.revoked.wait()
        assert await server.state.tokens.caller(secret) is None


async def test_the_last_use_of_a_token_is_stored_without_a_write_per_request(server: LiveServer) -> None:
    async with server.caller(scopes=["read"]) as caller:
        for _ in range(3):
            await caller.get("/api/session")
    before = await server.engine.store.tokens.list()
    await server.state.tokens.note()
    after = await server.engine.store.tokens.list()
    assert before[0].used_at is None and after[0].used_at is not None


# ── every response ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_callers_request_id_is_kept_if_it_is_harmless(server: LiveServer) -> None:
    given = await server.client.get("/healthz", headers={"x-request-id": "my-id_1.2"})
    assert given.headers["x-request-id"] == "my-id_1.2"
    for odd in ("a b", "x" * 65, "<b>", "a;b"):
        answer = await server.client.get("/healthz", headers={"x-request-id": odd})
        assert len(answer.headers["x-request-id"]) == 16


@pytest.mark.parametrize(
    ("method", "path", "body", "expected", "code"),
    [
        ("GET", "/api/nothing", None, 404, "not_found"),
        ("POST", "/nothing", None, 404, "not_found"),
        ("DELETE", "/api/session", None, 405, "method_not_allowed"),
        ("POST", "/api/tokens", b"{", 400, "bad_json"),
        ("POST", "/api/tokens", b'{"name": "a", "unknown": 1}', 422, "invalid"),
        ("POST", "/api/tokens", b'{"name": ""}', 422, "invalid"),
        ("DELETE", "/api/tokens/nobody", None, 404, "not_found"),
    ],
)
async def test_every_error_is_a_problem(server: LiveServer, method: str, path: str, body: bytes | None, expected: int, code: str) -> None:
    answer = await server.client.request(method, path, data=body, headers={"content-type": "application/json"})
    told: dict[str, Any] = await answer.json(content_type="application/problem+json")
    assert (answer.status, told["status"], told["code"]) == (expected, expected, code)
    assert told["detail"] and told["title"] and told["request_id"] == answer.headers["x-request-id"]
    assert set(told) <= {"type", "title", "status", "detail", "code", "fix", "request_id", "errors"}


async def test_an_internal_error_is_a_problem_without_details(server: LiveServer) -> None:
    await server.engine.store.close()  # from here on, every access raises that the store is closed
    answer = await server.client.get("/api/tokens")
    told = await answer.json(content_type="application/problem+json")
    assert answer.status == 503 and "Traceback" not in json.dumps(told)
    assert (await server.client.get("/readyz")).status == 503
    assert (await server.client.get("/healthz")).status == 200


async def test_a_body_of_another_media_type_is_rejected(server: LiveServer) -> None:
    answer = await server.client.post("/api/tokens", data=b"name=x", headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status in (415, 422)


# ── metrics ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_requests_are_counted_by_route_and_not_by_path(server: LiveServer) -> None:
    for name in ("one", "two"):
        await server.client.delete(f"/api/tokens/{name}")
        await server.client.get(f"/api/{name}")
    text = await (await server.client.get("/metrics")).text()
    assert 'moot_requests_total{method="DELETE",route="/api/tokens/{token_id}",status="404"} 2.0' in text
    assert 'moot_requests_total{method="GET",route="(none)",status="404"} 2.0' in text
    assert 'moot_live_runs{status="running"} 0.0' in text and "moot_events_appended_total 0.0" in text
    assert "/api/one" not in text and "moot_request_seconds_bucket" in text and "process_resident_memory_bytes" in text
