"""Conversations as downloads and as shared pages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import pytest

from e2e.server.conftest import LiveServer
from moot.plugins import FORMATS
from moot.server.state import Limits
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, text_part

pytestmark = pytest.mark.anyio

KEY = "sk-ant-api03-Vb2Qk9Xw3mZt7Lp0Rs5Yd8"
Open = Callable[..., AbstractAsyncContextManager[LiveServer]]


async def told(server: LiveServer, title: str = "Ünder würfen", text: str = f"my key is {KEY}") -> str:
    made = await server.engine.store.conversations.create(Conversation(new_id(), title=title, directory=str(server.directory)))
    parent = None
    for role, words in (("user", text), ("assistant", "I **see**, a@example.org.")):
        message = Message(new_id(), role, (text_part(words),), conversation=made.id, parent=parent)  # type: ignore[arg-type]
        parent = (await server.engine.store.conversations.add_message(message)).id
    return made.id


async def anybody(url: str) -> tuple[int, str, Any]:
    """Fetch a shared page with nothing but its link."""
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return answer.status, await answer.text(), answer.headers


async def share(server: LiveServer, conversation: str, **more: Any) -> Any:
    async with server.client.post("/api/shares", json={"conversation": conversation, **more}) as answer:
        assert answer.status == 201, await answer.text()
        return await answer.json()


async def test_a_conversation_is_downloaded_in_every_listed_format(server: LiveServer) -> None:
    id = await told(server)
    async with server.client.get("/api/exports") as answer:
        forms = (await answer.json())["data"]
    assert {"html", "md", "json", "recording"} <= {form["id"] for form in forms} <= set(FORMATS.names())
    for form in forms:
        async with server.client.get(f"/api/conversations/{id}/export", params={"format": form["id"]}) as answer:
            assert answer.status == 200
            disposition = answer.headers["content-disposition"]
            assert disposition.startswith('attachment; filename="') and disposition.isascii() and form["suffix"] in disposition
            assert "filename*=UTF-8''%C3%BCnder" in disposition
            assert await answer.read()


async def test_a_download_for_others_contains_no_secrets(server: LiveServer) -> None:
    id = await told(server, title=f"About {KEY}")
    async with server.client.get(f"/api/conversations/{id}/export", params={"format": "html", "share": "true"}) as answer:
        assert KEY not in await answer.text() and KEY.lower() not in str(answer.headers).lower()
    async with server.client.get(f"/api/conversations/{id}/export", params={"format": "recording", "share": "true"}) as answer:
        assert answer.status == 400 and "keeps all raw data" in (await answer.json())["detail"]
    async with server.client.get(f"/api/conversations/{id}/export", params={"format": "none"}) as answer:
        assert answer.status == 400


async def test_a_shared_page_is_readable_with_the_link_and_runs_nothing(server: LiveServer) -> None:
    id = await told(server)
    async with server.client.post("/api/shares/preview", json={"conversation": id}) as answer:
        draft = await answer.json()
    assert {one["kind"] for one in draft["left_out"]} >= {"secrets", "emails"} and KEY not in str(draft)
    made = await share(server, id, digest=draft["digest"])
    assert made["reach"] == "machine"
    status, page, headers = await anybody(made["url"])
    assert status == 200 and page == draft["page"] and "<strong>see</strong>" in page and KEY not in page and "example.org" not in page
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "frame-ancestors 'none'" in policy and "script" not in policy
    assert (headers["x-robots-tag"], headers["referrer-policy"]) == ("noindex, nofollow, noarchive", "no-referrer")
    assert "set-cookie" not in headers and headers["cache-control"] == "no-store"
    row = await server.engine.store.shares.list()
    assert made["url"].rpartition("/")[2] not in str(row)


async def test_revoked_expired_and_invalid_links_show_nothing(server: LiveServer) -> None:
    id = await told(server)
    made, other = await share(server, id), await share(server, id)
    assert (await anybody(f"{server.url}/share/nothing"))[0] == 404
    async with server.client.delete(f"/api/shares/{made['id']}") as answer:
        assert answer.status == 200
    gone = await anybody(made["url"])
    assert gone[0] == 404 and gone[1] == (await anybody(f"{server.url}/share/nothing"))[1]
    async with server.client.get("/api/shares", params={"conversation": id}) as answer:
        assert [one["id"] for one in (await answer.json())["data"]] == [other["id"]]
    assert (await anybody(other["url"]))[0] == 200
    async with server.client.delete(f"/api/conversations/{id}"):
        pass
    assert (await anybody(other["url"]))[0] == 404
    async with server.client.post("/api/shares", json={"conversation": id, "expires_in": 1}) as answer:
        assert answer.status == 422


async def test_the_previewed_page_is_the_shared_page(server: LiveServer) -> None:
    id = await told(server)
    async with server.client.post("/api/shares/preview", json={"conversation": id}) as answer:
        digest = (await answer.json())["digest"]
    await server.engine.store.conversations.add_message(
        Message(new_id(), "user", (text_part("more"),), conversation=id, parent=(await server.engine.store.conversations.branch(id))[-1].id)
    )
    async with server.client.post("/api/shares", json={"conversation": id, "digest": digest}) as answer:
        assert answer.status == 409
    first = await share(server, id)
    before = (await anybody(first["url"]))[1]
    await server.engine.store.conversations.rename(id, "Another name", "user")
    assert (await anybody(first["url"]))[1] == before


async def test_shares_of_other_users_return_404(server: LiveServer) -> None:
    id = await told(server)
    made = await share(server, id)
    for scopes in (("read",), ("chat",)):
        secret = await server.token(scopes=scopes, owner="somebody")  # type: ignore[arg-type]
        headers = {"authorization": f"Bearer {secret}"}
        async with aiohttp.ClientSession(server.url, headers=headers) as client:
            async with client.get("/api/shares") as answer:
                assert (await answer.json())["data"] == []
            async with client.delete(f"/api/shares/{made['id']}") as answer:
                assert answer.status == (404 if scopes == ("chat",) else 403)
            async with client.post("/api/shares", json={"conversation": id}) as answer:
                assert answer.status == (404 if scopes == ("chat",) else 403)
    assert (await anybody(made["url"]))[0] == 200


async def test_requests_for_shared_pages_are_rate_limited(open_server: Open) -> None:
    async with open_server(bounds=Limits(views=3)) as server:
        made = await share(server, await told(server))
        statuses = [(await anybody(f"{server.url}/share/{guess}"))[0] for guess in range(3)]
        assert statuses == [404, 404, 404] and (await anybody(made["url"]))[0] == 429
