"""Routes for push notifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import CookieJar

from e2e.push_service import CONTACT, SECRET, PushService, push_service
from e2e.server.conftest import LiveServer
from moot.config.settings import ServerSettings
from moot.features.webhooks.encryption import decode
from moot.server.state import Limits

pytestmark = pytest.mark.anyio

BROWSER = PushService(url="https://push.example.com")


async def add(client: Any, **changes: Any) -> dict[str, Any]:
    answer = await client.post("/api/push/devices", json=BROWSER.subscription(**changes))
    assert answer.status == 201, await answer.text()
    return await answer.json()


async def devices(client: Any) -> list[dict[str, Any]]:
    return (await (await client.get("/api/push/devices")).json())["data"]


async def test_the_public_key_is_always_the_same(server: LiveServer) -> None:
    first, second = [await (await server.client.get("/api/push/key")).json() for _ in range(2)]
    assert first == second and len(decode(first["key"])) == 65


async def test_a_device_is_added_once_listed_and_removed(server: LiveServer) -> None:
    made = await add(server.client)
    assert made["events"] == ["run.finished", "run.failed", "approval.asked"] and made["details"] is False
    assert (made["service"], made["sent_at"], made["failures"], made["error"]) == ("push.example.com", None, 0, "")
    again = await add(server.client, details=True, events=["approval.asked", "approval.asked"])
    assert again["id"] == made["id"] and again["details"] is True and again["events"] == ["approval.asked"]
    assert await devices(server.client) == [again]
    assert (await server.client.delete(f"/api/push/devices/{made['id']}")).status == 204
    assert await devices(server.client) == []
    assert (await server.client.delete(f"/api/push/devices/{made['id']}")).status == 404


async def test_secrets_of_a_subscription_are_never_returned(server: LiveServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "moot")
    made = await add(server.client)
    listed = await (await server.client.get("/api/push/devices")).text()
    wrong = await server.client.post("/api/push/devices", json=BROWSER.subscription(endpoint=f"http://10.1.2.3/{SECRET}"))
    said = f"{made} {listed} {await wrong.text()} {caplog.text}"
    for secret in (SECRET, BROWSER.subscription()["auth"], BROWSER.subscription()["p256dh"]):
        assert secret not in said
    assert wrong.status == 400


@pytest.mark.parametrize(
    "changes",
    [
        {"endpoint": "http://push.example.com/x"},
        {"endpoint": "https://push.example.com:8443/x"},
        {"endpoint": "https://me:pw@push.example.com/x"},
        {"endpoint": "file:///etc/passwd"},
        {"endpoint": "https://"},
        {"endpoint": f"https://push.example.com/{'x' * 2048}"},
        {"p256dh": "AAAA"},
        {"p256dh": "not base64!"},
        {"p256dh": "é"},
        {"auth": "AAAA"},
        {"events": []},
        {"events": ["budget.warning"]},
        {"name": ""},
    ],
)
async def test_subscriptions_of_no_browser_are_refused(server: LiveServer, changes: dict[str, Any]) -> None:
    answer = await server.client.post("/api/push/devices", json=BROWSER.subscription(**changes))
    assert answer.status in (400, 422), await answer.text()
    assert await devices(server.client) == []


async def test_users_see_and_change_only_their_own_devices(server: LiveServer) -> None:
    mine = await add(server.client)
    async with server.caller(owner="anna", scopes=("admin",)) as anna:
        assert await devices(anna) == []
        for method, path in (("DELETE", ""), ("POST", "/test")):
            answer = await anna.request(method, f"/api/push/devices/{mine['id']}{path}")
            assert answer.status == 404
    assert await devices(server.client) == [mine]


async def test_a_token_that_only_reads_can_not_add_devices(server: LiveServer) -> None:
    async with server.caller(scopes=("read",)) as reader:
        assert (await reader.post("/api/push/devices", json=BROWSER.subscription())).status == 403
        assert (await reader.get("/api/push/key")).status == 200


async def test_a_test_notification_says_whether_it_was_accepted(open_server: Callable[..., Any]) -> None:
    async with push_service() as service:
        listens = ServerSettings(push_contact=CONTACT)
        async with open_server(listens=listens, bounds=Limits(push=service.policy)) as server:
            made = await (await server.client.post("/api/push/devices", json=service.subscription())).json()
            path = f"/api/push/devices/{made['id']}/test"
            assert await (await server.client.post(path)).json() == {"accepted": True, "reason": ""}
            assert (service.got[0]["event"], service.got[0]["path"]) == ("test", "/")
            service.answers = [(500, {}), (410, {})]
            assert (await (await server.client.post(path)).json())["reason"] == "The push service answered with the status 500."
            assert (await devices(server.client))[0]["failures"] == 1
            gone = await (await server.client.post(path)).json()
            assert gone == {"accepted": False, "reason": "The browser has ended the subscription."}
            assert await devices(server.client) == []


async def test_signing_out_removes_the_browsers_device(server: LiveServer) -> None:
    async with server.stranger(cookie_jar=CookieJar(unsafe=True), headers={"origin": server.url}) as browser:
        signed = await browser.post("/api/login", json={"code": await server.state.tokens.code("local")})
        assert signed.status == 200
        await add(browser)
        assert len(await devices(server.client)) == 1
        assert (await browser.post("/api/logout")).status == 204
    assert await devices(server.client) == []
