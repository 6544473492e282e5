from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from moot.types.token import StoredResponse

pytestmark = pytest.mark.anyio

KEY = {"idempotency-key": "k-1"}


async def tokens(server: LiveServer) -> int:
    return len((await (await server.client.get("/api/tokens")).json())["data"])


async def problem(answer: Any) -> dict[str, Any]:
    told: dict[str, Any] = await answer.json(content_type="application/problem+json")
    return told


async def test_twenty_concurrent_requests_with_one_key_have_one_effect(server: LiveServer) -> None:
    answers = await asyncio.gather(*(server.client.post("/api/tokens", json={"name": "once"}, headers=KEY) for _ in range(20)))
    assert await tokens(server) == 1
    assert sorted(answer.status for answer in answers) == [201, *[409] * 19]


async def test_a_repeated_request_returns_the_same_bytes(server: LiveServer) -> None:
    first = await server.client.post("/api/logout", headers={**KEY, "authorization": f"Bearer {await server.token()}"})
    assert first.status == 204
    store = server.engine.store.tokens.idempotency
    await store.claim("local", "k-2", request=b"x", worker="w")
    await store.keep("local", "k-2", StoredResponse(201, [("content-type", "application/json")], b'{"a":1}'))
    claim = await store.claim("local", "k-2", request=b"x", worker="w")
    assert claim.kept == StoredResponse(201, (("content-type", "application/json"),), b'{"a":1}')


async def test_the_same_key_with_another_body_is_rejected(server: LiveServer) -> None:
    assert (await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)).status == 201
    other = await server.client.post("/api/tokens", json={"name": "other"}, headers=KEY)
    assert (other.status, (await problem(other))["code"]) == (409, "key_reused")
    assert await tokens(server) == 1


async def test_keys_of_different_users_are_independent(server: LiveServer) -> None:
    assert (await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)).status == 201
    async with server.caller(scopes=["admin"], owner="mara") as mara:
        assert (await mara.post("/api/tokens", json={"name": "hers"}, headers=KEY)).status == 201


async def test_a_rejected_request_does_not_use_up_the_key(server: LiveServer) -> None:
    assert (await server.client.post("/api/tokens", json={"name": ""}, headers=KEY)).status == 422
    assert (await server.client.post("/api/tokens", json={"name": "good"}, headers=KEY)).status == 201


async def test_the_secret_of_a_token_is_not_stored_for_repeated_requests(server: LiveServer) -> None:
    first = await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)
    secret = (await first.json())["secret"]
    again = await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)
    assert (again.status, (await problem(again))["code"]) == (409, "answer_unknown")
    assert not any(secret.encode() in path.read_bytes() for path in server.engine.settings.home.rglob("moot.db*"))


async def test_after_a_crash_the_outcome_of_a_request_is_reported_as_unknown(open_server: Callable[..., Any]) -> None:
    async with open_server() as server:
        asked = await server.engine.store.tokens.idempotency.claim("local", "k-1", request=b"another", worker="dead")
        assert asked.standing == "new"
    async with open_server() as server:  # after a restart
        answer = await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)
        assert answer.status == 409


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
async def test_an_invalid_key_is_rejected(server: LiveServer, key: str) -> None:
    assert (await server.client.post("/api/tokens", json={"name": "once"}, headers={"idempotency-key": key})).status == 400
