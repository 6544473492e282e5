"""Importing over HTTP: uploads, files of the machine, and progress."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import Json, got
from e2e.server.stream_calls import messages, read, say, text
from moot.server.state import Limits

pytestmark = pytest.mark.anyio

FILE = b'[{"role": "user", "content": "sent words"}, {"role": "assistant", "content": "an answer"}]'


async def over(server: LiveServer, id: str) -> Json:
    while True:
        found = await got(server.client, f"/api/imports/{id}")
        if found["state"] in ("finished", "failed"):
            return found
        await anyio.sleep(0.02)


async def test_an_uploaded_file_is_imported_with_a_report(open_server: Callable[..., Any]) -> None:
    async with open_server() as server:
        async with server.client.post("/api/imports", params={"name": "../../talk.json"}, data=FILE) as answer:
            assert answer.status == 202, await answer.text()
            asked = await answer.json()
        done = await over(server, asked["id"])
        assert (done["state"], done["added"], done["conversations"]) == ("finished", 2, {"added": 1})
        (one,) = done["brought"]
        assert one["path"] == "talk.json"
        assert (await got(server.client, f"/api/conversations/{one['conversation']}"))["origin"]["path"] == "talk.json"
        messages = await got(server.client, f"/api/chat/{one['conversation']}/messages")
        texts = ["".join(part.get("text", "") for part in message["parts"]) for message in messages]
        assert texts == ["sent words", "an answer"]
        assert not list((server.engine.settings.home / "state" / "uploads").iterdir())
        (listed,) = (await got(server.client, "/api/imports"))["data"]
        assert (listed["id"], listed["brought"]) == (asked["id"], [])


def left(server: LiveServer) -> list[Path]:
    """Return uploaded files that were not deleted."""
    return list((server.engine.settings.home / "state" / "uploads").glob("*"))


@pytest.mark.parametrize("name", ["x", "..", "/etc/passwd", "a\\b.json", "ü" * 250, "\x1b[31m.json"])
@pytest.mark.slow
async def test_an_unreadable_upload_fails_without_revealing_its_path(open_server: Callable[..., Any], name: str) -> None:
    async with open_server() as server:
        async with server.client.post("/api/imports", params={"name": name}, data=b"\x00\x01") as answer:
            asked = await answer.json()
            assert answer.status == 202, asked
        done = await over(server, asked["id"])
        assert (done["state"], "No format recognizes" in done["error"]) == ("failed", True)
        assert "uploads" not in str(done) and "/" not in done["error"].partition(";")[0]
        assert left(server) == []


async def test_uploading_the_same_file_again_adds_nothing(open_server: Callable[..., Any]) -> None:
    talk = b'{"role": "user", "content": "%s", "timestamp": "2026-11-20T10:00:00"}\n'
    async with open_server() as server:
        for said, added in ((b"one", 1), (b"one", 0), (b"other", 1)):
            async with server.client.post("/api/imports", params={"name": "conversation.jsonl"}, data=talk % said) as answer:
                asked = await answer.json()
            assert (await over(server, asked["id"]))["added"] == added


async def test_an_upload_that_is_too_large_or_never_ends_leaves_no_files(open_server: Callable[..., Any]) -> None:
    async def pieces(count: int) -> AsyncGenerator[bytes, None]:
        for _ in range(count):
            yield b" " * 8_000
        await anyio.sleep_forever()

    async with open_server(bounds=Limits(body=100_000, silence=60)) as server:
        async with server.client.post("/api/imports", params={"name": "x.json"}, data=pieces(40)) as answer:
            assert answer.status == 413
        assert left(server) == []
        with anyio.move_on_after(60), anyio.CancelScope() as going:
            async with anyio.create_task_group() as tasks:

                async def go_away() -> None:
                    while not left(server):
                        await anyio.sleep(0.02)
                    going.cancel()

                tasks.start_soon(go_away)
                async with server.client.post("/api/imports", params={"name": "x.json"}, data=pieces(3)):
                    pytest.fail("it was answered")
        with anyio.fail_after(60):
            while left(server):
                await anyio.sleep(0.02)
        assert (await got(server.client, "/api/imports"))["data"] == []


async def test_importing_a_folder_lists_files_without_a_known_format(open_server: Callable[..., Any], directory: Path) -> None:
    async with open_server() as server:
        (directory / "talk.json").write_bytes(FILE)
        (directory / "letter.txt").write_text("Dear machine,")
        async with server.client.post("/api/imports", json={"path": str(directory)}) as answer:
            asked = await answer.json()
        done = await over(server, asked["id"])
        assert (done["added"], done["unclaimed"]["count"]) == (2, 1)
        assert done["unclaimed"]["some"][0].endswith("letter.txt")


async def test_importing_files_of_the_machine_requires_the_scope_admin(open_server: Callable[..., Any], directory: Path) -> None:
    async with open_server() as server:
        (directory / "talk.json").write_bytes(FILE)
        wanted = {"path": str(directory / "talk.json")}
        mine = {"authorization": f"Bearer {await server.token(scopes=('chat',))}"}
        for path, body in (("/api/imports", wanted), ("/api/imports", {"all": True})):
            async with server.client.post(path, json=body, headers=mine) as answer:
                assert answer.status == 403
        async with server.client.get("/api/imports/found", headers=mine) as answer:
            assert answer.status == 403
        for body in ({}, {"all": True, "path": "/x"}, {"path": "relative"}, {"nonsense": 1}, []):
            async with server.client.post("/api/imports", json=body) as answer:
                assert answer.status == 400, body
        async with server.client.post("/api/imports", json=wanted) as answer:
            asked = await answer.json()
        assert (await over(server, asked["id"]))["added"] == 2
        unread = Path.home() / ".codeium" / "windsurf" / "cascade"
        unread.mkdir(parents=True)
        (unread / "a.pb").write_bytes(b"12345")
        async with server.client.post("/api/imports", json={"all": True, "dry_run": True}) as answer:
            every = await answer.json()
        assert [one["path"] for one in (await over(server, every["id"]))["unread"]] == [str(unread)]
        async with server.client.get(
            f"/api/imports/{asked['id']}", headers={"authorization": f"Bearer {await server.token(owner='eve')}"}
        ) as answer:
            assert answer.status == 404
        assert isinstance((await got(server.client, "/api/imports/found"))["data"], list)


async def test_every_api_continues_an_imported_conversation_in_a_copy(open_server: Callable[..., Any]) -> None:
    async with open_server() as server:
        async with server.client.post("/api/imports", params={"name": "talk.json"}, data=FILE) as answer:
            (one,) = (await over(server, (await answer.json())["id"]))["brought"]
        whole, path = one["conversation"], f"/api/conversations/{one['conversation']}"
        async with server.client.post("/api/chat", json=say("and now?", chat=whole)) as answer:
            chunks = [chunk for _, chunk in read(await answer.text())]
            copy = answer.headers["content-location"].removeprefix("/api/conversations/")
        assert text(chunks) == "Hello there." and copy != whole
        async with server.client.post("/api/chat", json=say("and now?", chat=whole)) as answer:
            again = [chunk for _, chunk in read(await answer.text())]
        assert again[0]["messageId"] == chunks[0]["messageId"], "the same words join their run"
        texts = ["".join(part.get("text", "") for part in message["parts"]) for message in await messages(server, whole)]
        assert texts == ["sent words", "an answer", "and now?", "Hello there."], "a client that knows only the one id sees all"
        async with server.client.post(f"{path}/messages", json={"parts": [{"type": "text", "text": "more"}]}) as answer:
            assert (await answer.json())["conversation"] == copy
        first = (await got(server.client, f"{path}/messages"))["data"][0]["id"]
        async with server.client.post(f"{path}/continue", json={}) as answer:
            assert (await answer.json())["conversation"]["id"] == copy
        async with server.client.post(f"{path}/continue", json={"message": first}) as answer:
            going = await answer.json()
        assert going["conversation"]["id"] not in (whole, copy) and going["conversation"]["forked_from"] == whole
        assert going["conversation"]["head"] == going["message"]
        async with server.client.post(f"/api/conversations/{copy}/continue", json={}) as answer:
            assert (await answer.json()) | {"conversation": None} == {"conversation": None, "message": None}
        assert len((await got(server.client, f"{path}/messages"))["data"]) == 2
