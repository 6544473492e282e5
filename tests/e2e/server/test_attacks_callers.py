"""Every described operation without a token, with a wrong token in every place, and with an insufficient scope."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import FIXED, LiveServer
from e2e.server.raw import Answer, Wire, request, wire
from e2e.server.test_attacks_doors import commits
from moot.server.state import Limits
from moot.types.token import SCOPES, expand_scopes

pytestmark = pytest.mark.anyio

NO_ID = "018f0000-0000-7000-8000-000000000000"


@dataclass(frozen=True)
class Operation:
    """One operation, with ids that don't exist."""

    method: str
    path: str
    needs: str | None
    foreign: bool
    """True if the operation also accepts `x-api-key`."""

    @property
    def body(self) -> bytes:
        return b"{}" if self.method in ("POST", "PUT", "PATCH") else b""


def operations() -> list[Operation]:
    found: list[Operation] = []
    described: Any = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    for template, methods in described.items():
        path = template
        while "{" in path:
            path = path[: path.index("{")] + NO_ID + path[path.index("}") + 1 :]
        for method, description in methods.items():
            security: list[dict[str, list[str]]] = description.get("security", [])
            needs = next(iter(security[0].values()))[0] if security else None
            found.append(Operation(method.upper(), path, needs, any("key" in each for each in security)))
    return found


ALL = operations()
GUARDED = [operation for operation in ALL if operation.needs]


class Caller:
    """A client that sends one request after the other on one connection."""

    def __init__(self, server: LiveServer, connection: Wire) -> None:
        self.host = f"host: {server.url.removeprefix('http://')}"
        self.connection = connection

    async def status(self, operation: Operation, *headers: str, target: str = "") -> int:
        return (await self.send(operation, *headers, target=target)).status

    async def send(self, operation: Operation, *headers: str, target: str = "") -> Answer:
        more = ["content-type: application/json"] if operation.body else []
        await self.connection.send(request(operation.method, target or operation.path, self.host, *headers, *more, body=operation.body))
        return await self.connection.answer(bare=operation.method == "HEAD")


@asynccontextmanager
async def caller(server: LiveServer) -> AsyncGenerator[Caller]:
    async with wire(server.url) as connection:
        yield Caller(server, connection)


async def test_every_guarded_operation_requires_a_token(server: LiveServer) -> None:
    before = commits(server)
    async with caller(server) as stranger:
        for operation in GUARDED:
            answer = await stranger.send(operation)
            kind = "application/json" if operation.foreign else "application/problem+json"
            assert (answer.status, answer.headers["content-type"]) == (401, kind), operation
    assert commits(server) == before
    unguarded = [operation for operation in ALL if not operation.needs]
    named = {("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/api/login")}
    shared, hooked = [operation for operation in unguarded if (operation.method, operation.path) not in named]
    assert shared.path.startswith("/share/")  # the link itself is the credential
    async with caller(server) as stranger:
        assert (await stranger.send(shared)).status == 404
        assert hooked.path.startswith("/api/webhooks/")  # authenticated by the webhook's own secret
        assert (await stranger.send(hooked)).status == 401


@pytest.fixture
async def server(open_server: Callable[..., Any]) -> AsyncGenerator[LiveServer, None]:
    """A server without a limit on wrong credentials; the test of the limit has its own."""
    async with open_server(bounds=Limits(logins=10_000, guesses=100_000)) as opened:
        yield opened


@pytest.mark.slow
async def test_a_credential_is_accepted_only_in_its_own_place(server: LiveServer) -> None:
    basic = base64.b64encode(f"moot:{FIXED}".encode()).decode()
    wrong = [
        "authorization: Bearer wrong",
        "authorization: Bearer ",
        f"authorization: {FIXED}",
        f"authorization: Basic {basic}",
        f"authorization: Token {FIXED}",
        f"proxy-authorization: Bearer {FIXED}",
        f"referer: http://127.0.0.1/?token={FIXED}",
        f"x-token: {FIXED}",
        f"cookie: session={FIXED}",
        "cookie: moot_session=wrong",
        f"authorization: Bearer wrong\r\ncookie: moot_session={FIXED}\r\nsec-fetch-site: same-origin",
    ]
    site = "sec-fetch-site: same-origin"
    async with caller(server) as stranger:
        for operation in GUARDED:
            for line in wrong:
                assert await stranger.status(operation, line, *([] if "sec-fetch" in line else [site])) == 401, (operation, line)
            for target in (f"{operation.path}?token={FIXED}", f"{operation.path}?access_token={FIXED}&api_key={FIXED}"):
                assert await stranger.status(operation, target=target) == 401, (operation, target)
            assert await stranger.status(operation, "x-api-key: wrong") == 401, operation
            assert operation.foreign or await stranger.status(operation, f"x-api-key: {FIXED}") == 401, operation


async def test_a_token_grants_the_same_scope_wherever_it_is_sent(server: LiveServer) -> None:
    for scope in ("read", "chat", "tools"):
        secret = await server.token(scopes=[scope])
        async with caller(server) as small:
            for operation in GUARDED:
                if operation.needs in expand_scopes((scope,)):  # allowed operations are covered by other tests
                    continue
                places = [f"authorization: Bearer {secret}", f"cookie: moot_session={secret}\r\nsec-fetch-site: same-origin"]
                for line in places + ([f"x-api-key: {secret}"] if operation.foreign else []):
                    assert await small.status(operation, line) == 403, (operation, scope, line)
    assert {operation.needs for operation in GUARDED} <= set(SCOPES)


async def test_guessing_never_succeeds_and_does_not_lock_others_out(server: LiveServer) -> None:
    async with server.stranger() as stranger:
        for number in range(200):
            guess = f"{FIXED[:-2]}x{number}"
            assert (await stranger.get("/api/session", headers={"authorization": f"Bearer {guess}"})).status in (401, 429)
            assert (await stranger.post("/api/login", json={"code": guess})).status in (401, 429)
    assert (await server.client.get("/api/session")).status == 200
    code, secret = await server.state.tokens.code("local"), await server.token()
    assert len(code) >= 32 and len(secret) >= 43  # at least 192 bits


async def test_an_address_that_guesses_too_often_is_throttled_but_known_callers_are_served(open_server: Callable[..., Any]) -> None:
    async with open_server(bounds=Limits(logins=3, guesses=5)) as server, server.stranger() as stranger:
        known = {"authorization": f"Bearer {await server.token(scopes=['read'])}"}
        assert (await stranger.get("/api/session", headers=known)).status == 200
        wrong = [(await stranger.get("/api/session", headers={"authorization": f"Bearer x{n}"})).status for n in range(7)]
        assert wrong == [401] * 5 + [429] * 2
        fresh = {"authorization": f"Bearer {await server.token(scopes=['read'])}"}
        refused = await stranger.get("/api/session", headers=fresh)  # correct, but the address is throttled, so it is not looked up
        assert refused.status == 429 and 0 < int(refused.headers["retry-after"]) <= 61
        assert (await stranger.get("/api/session", headers=known)).status == 200
        code = await server.state.tokens.code("local")
        assert [(await stranger.post("/api/login", json={"code": f"x{n}"})).status for n in range(5)] == [401] * 3 + [429] * 2
        assert (await stranger.post("/api/login", json={"code": code})).status == 429
        assert (await stranger.get("/healthz")).status == 200


async def test_a_login_code_works_once(server: LiveServer) -> None:
    code = await server.state.tokens.code("local")
    async with server.stranger() as stranger:
        answers = [(await stranger.post("/api/login", json={"code": code})).status for _ in range(3)]
        assert answers == [200, 401, 401]
        cookie = (await stranger.post("/api/login", json={"code": await server.state.tokens.code("local")})).headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
