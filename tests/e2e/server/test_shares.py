"""Conversations as downloads and as shared pages."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from e2e.server.conftest import LiveServer
from moot.features.renderer import PROGRAM, Renderer
from moot.features.shares import RenderOrder
from moot.plugins import FORMATS
from moot.server.state import Limits
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation
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
    async with server.client.get(f"/api/conversations/{id}/export", params={"format": "html", "view": "true"}) as answer:
        policy = answer.headers["content-security-policy"]
        assert answer.headers["content-disposition"] == "inline" and answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert "default-src 'none'" in policy and "allow-scripts" not in policy and "frame-ancestors 'self'" in policy
    async with server.client.get(f"/api/conversations/{id}/export", params={"format": "md", "view": "true"}) as answer:
        assert answer.status == 400
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


HELD = "import runpy, sys; open(sys.argv[1]).read(); runpy.run_module(sys.argv[2], run_name='__main__')"


class Gate:
    """A pipe that processes of a renderer wait for."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "gate"
        os.mkfifo(self.path)
        self.program = ("-P", "-c", HELD, str(self.path), PROGRAM[-1])

    def waiting(self) -> int | None:
        """Return an open end of the pipe, or None if no process waits for it. Closing it lets the process continue."""
        try:
            return os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/shares/preview"), ("GET", "/api/conversations/{id}/export?format=html")])
async def test_other_requests_are_answered_while_a_large_file_is_written(
    server: LiveServer, tmp_path: Path, method: str, path: str
) -> None:
    id = await told(server, text=f"my key is {KEY} " + "word " * 60_000)
    gate = Gate(tmp_path)
    object.__setattr__(server.state, "renderer", Renderer(program=gate.program))
    answers: list[str] = []

    async def write() -> None:
        body = {"conversation": id} if method == "POST" else None
        async with server.client.request(method, path.format(id=id), json=body) as answer:
            answers.append(await answer.text())
            assert answer.status == 200, answers

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        while (held := gate.waiting()) is None:
            assert not answers, "the file was not written in a process of its own"
            await anyio.sleep(0.01)
        async with server.client.get("/api/conversations") as answer:
            assert answer.status == 200 and not answers
        os.close(held)
    assert "word word" in answers[0] and (KEY in answers[0]) == (method == "GET")


async def test_a_file_beyond_the_limits_is_refused_and_its_process_ended(server: LiveServer, tmp_path: Path) -> None:
    id = await told(server)
    gate = Gate(tmp_path)
    for renderer, reason in (
        (Renderer(worth=0, program=gate.program, seconds=0.5), "took longer than 0.5 seconds"),
        (Renderer(size=10), "the limit is"),
        (Renderer(worth=0, size=5000), "The file would be"),
    ):
        object.__setattr__(server.state, "renderer", renderer)
        async with server.client.post("/api/shares/preview", json={"conversation": id}) as answer:
            problem = await answer.json(content_type=None)
        assert (answer.status, problem["code"]) == (429, "limit") and reason in problem["detail"] and "moot export" in problem["fix"]
    assert gate.waiting() is None
    object.__setattr__(server.state, "renderer", Renderer(worth=0, program=("-c", "import os; os.write(1, b'ready'); os._exit(3)")))
    async with server.client.post("/api/shares/preview", json={"conversation": id}) as answer:
        assert answer.status == 500 and "ended with code 3" in (await answer.json(content_type=None))["detail"]


async def test_cancelling_ends_the_process_that_writes_a_file(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    order = RenderOrder("html", ExportedConversation(Conversation(new_id()), ()))
    async with anyio.create_task_group() as group:
        group.start_soon(Renderer(worth=0, program=gate.program).render, order)
        while (held := gate.waiting()) is None:
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    os.close(held)
    assert gate.waiting() is None
