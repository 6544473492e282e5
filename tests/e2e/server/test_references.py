"""References in prompts over HTTP: who may attach files, and prompts that are sent again or edited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import began, called, ended, got, said, sent
from e2e.server.stream_calls import messages, post, say
from moot.testing.script import Reply

pytestmark = pytest.mark.anyio


def requested(server: LiveServer) -> list[str]:
    """Return the prompts of the last request to the model."""
    return [str(message["content"]) for message in server.model.requests[-1].json["messages"] if message["role"] == "user"]


def prompts(shown: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [message["parts"] for message in shown if message["role"] == "user"]


async def prompts_of(server: LiveServer, id: str) -> list[list[dict[str, Any]]]:
    return prompts((await got(server.client, f"/api/conversations/{id}/messages"))["data"])


async def test_texts_are_literal_unless_the_client_asks_for_references(server: LiveServer, directory: Path) -> None:
    (directory / "notes.txt").write_text("plums")
    (directory / "d").mkdir()
    id = (await began(server))["id"]
    await ended(server, await said(server, id, "Read @notes.txt"))
    assert requested(server) == ["Read @notes.txt"]
    done = await said(server, id, "Read @notes.txt @d/ @gone.txt", references=True)
    await ended(server, done)
    assert done["notes"] == ["File 'gone.txt' not found; sent as text."]
    assert "plums" in requested(server)[-1] and requested(server)[-1].endswith("Read @notes.txt @d/ @gone.txt")
    file, folder, text = (await prompts_of(server, id))[-1]
    assert [(part["filename"], part["providerMetadata"]["moot"]["size"]) for part in (file, folder)] == [("notes.txt", 5), ("d/", 0)]
    assert text["text"] == "Read @notes.txt @d/ @gone.txt"


async def test_only_the_user_of_the_server_with_the_scope_tools_can_use_references(server: LiveServer, directory: Path) -> None:
    (directory / "notes.txt").write_text("plums")
    (directory.parent / "outside.txt").write_text("secret")
    id = (await began(server))["id"]
    body = {"text": "Read @notes.txt", "references": True}
    async with server.caller(scopes=["chat"]) as chatter, server.caller(scopes=["tools"], owner="mara") as other:
        own = (await sent(other, "POST", "/api/conversations", {}, 201))["id"]
        for client, place in ((chatter, id), (other, own)):
            path = f"/api/conversations/{place}"
            for refused in (
                await sent(client, "POST", f"{path}/messages", body, 403),
                await sent(client, "POST", "/api/chat", say("Read @notes.txt", chat=place, references=True), 403),
                await got(client, f"{path}/context", 403, prompt="@notes.txt", references="true"),
            ):
                assert refused["code"] == "forbidden" and "scope 'tools'" in refused["detail"]
            await sent(client, "POST", f"{path}/messages", {"text": "Read @notes.txt"}, 202)
    refused = await sent(server.client, "POST", f"/api/conversations/{id}/messages", {**body, "text": '@"../outside.txt"'}, 403)
    assert "outside the allowed folders" in refused["detail"]


async def test_a_reference_that_can_not_be_attached_stores_nothing(server: LiveServer, directory: Path) -> None:
    (directory / "large.bin").write_bytes(b"x" * (21 << 20))
    problems = {"@large.bin": "larger than 20 MiB", '@[read_file{"path": "x"}': "']' is missing", "@http://10.0.0.1/": "public network"}
    for text, problem in problems.items():
        refused = await _refused(server, text, directory)
        assert problem in refused["detail"]
    assert await server.engine.store.conversations.by_client_id("c1") is None


async def _refused(server: LiveServer, text: str, directory: Path) -> dict[str, Any]:
    async with server.client.post("/api/chat", json=say(text, references=True, directory=str(directory))) as answer:
        assert answer.status in (400, 403)
        return await answer.json(content_type=None)


async def test_a_prompt_that_is_sent_again_is_stored_once_even_if_its_files_have_changed(server: LiveServer, directory: Path) -> None:
    (directory / "notes.txt").write_text("plums")
    body = say("Read @notes.txt @{define tone, kind} @{tone}", references=True, directory=str(directory))
    first = await post(server, body)
    (directory / "notes.txt").write_text("pears")
    again = await post(server, body)
    assert again[0]["messageId"] == first[0]["messageId"] and len(server.model.requests) == 1
    id = (await began(server))["id"]
    queued = {"client_id": "q1", "on_busy": "queue", "references": True}
    one = await said(server, id, "Read @notes.txt", **queued)
    (directory / "notes.txt").unlink()
    two = await said(server, id, "Read @notes.txt", **queued)
    assert one["run"]["id"] == two["run"]["id"] and len(await prompts_of(server, id)) == 1
    await ended(server, one)


async def test_an_edited_prompt_has_each_file_once_and_the_editor_gets_the_typed_text(server: LiveServer, directory: Path) -> None:
    (directory / "notes.txt").write_text("plums")
    typed = "Read @notes.txt @{define tone, kind} @{tone}"
    await post(server, say(typed, references=True, directory=str(directory)))
    ((file, text),) = prompts(await messages(server))
    assert text["text"].endswith(" kind") and text["providerMetadata"]["moot"]["typed"] == typed
    (directory / "notes.txt").write_text("pears")
    upload = {"type": "file", "mediaType": "text/plain", "filename": "up.txt", "url": "data:text/plain,up"}
    edited = {"id": "u1", "role": "user", "parts": [file, upload, {"type": "text", "text": f"Now {typed}"}]}
    await post(server, {"id": "c1", "message": edited, "references": True})
    (parts,) = prompts(await messages(server))
    assert [part.get("filename") for part in parts] == ["up.txt", "notes.txt", None]
    assert "pears" in requested(server)[-1] and "plums" not in requested(server)[-1]
    found = await server.engine.store.conversations.by_client_id("c1")
    assert found is not None
    done = await sent(server.client, "POST", "/api/commands/edit", {"argument": "last", "conversation": found.id})
    assert done["replies"][0]["text"] == f"Now {typed}"
    assert (await sent(server.client, "POST", "/api/commands/context", {"argument": "@notes.txt", "conversation": found.id}))["replies"]
    answer = await post(server, {"id": "c1", "trigger": "regenerate-message"})
    assert answer[-1]["type"] == "finish" and "pears" in requested(server)[-1]


async def test_notes_of_a_stream_are_transient_frames(server: LiveServer, directory: Path) -> None:
    chunks = await post(server, say("Read @gone.txt", references=True, directory=str(directory)))
    note = {"type": "data-notice", "data": {"text": "File 'gone.txt' not found; sent as text."}, "transient": True}
    assert chunks[0] == note and chunks[1]["type"] == "start"


async def test_the_preview_is_the_request_with_what_the_prompt_refers_to(server: LiveServer, directory: Path) -> None:
    (directory / "notes.txt").write_text("plums")
    id = (await began(server))["id"]
    path = f"/api/conversations/{id}/context"
    text = 'Read @notes.txt @gone.txt @[read_file{"path": "notes.txt"}]'
    shown = await got(server.client, path, request="true", prompt=text, references="true")
    assert shown["notes"][0] == "File 'gone.txt' not found; sent as text." and "not included" in shown["notes"][1]
    assert (await got(server.client, path, request="true", prompt=text))["request"]["messages"][-1]["content"] == text
    shown = await got(server.client, path, request="true", prompt="Read @notes.txt", references="true")
    await ended(server, await said(server, id, "Read @notes.txt", references=True))
    assert shown["request"]["messages"] == server.model.requests[-1].json["messages"]


async def test_a_prompt_for_a_running_answer_has_its_files_and_waits_if_it_calls_tools(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Slow.", hang_at=1), Reply(text="Done.", times=0)]) as server:
        server: LiveServer
        (server.directory / "notes.txt").write_text("plums")
        id = (await began(server))["id"]
        first = await said(server, id, "hi")
        await called(server)
        steered = await said(server, id, "See @notes.txt", references=True, on_busy="steer")
        queued = await said(server, id, '@[read_file{"path": "notes.txt"}]', references=True, on_busy="steer")
        assert steered["steered"] and not queued["steered"] and "Queued, because" in queued["notes"][0]
        (waiting,) = (await got(server.client, f"/api/conversations/{id}/queue"))["steered"]
        assert [part.get("filename") for part in waiting["parts"]] == ["notes.txt", None]
        server.model.release()
        await ended(server, first)
        with anyio.fail_after(60):
            assert (await ended(server, queued))["status"] == "finished"
        assert "plums" in str(server.model.requests[-1].json["messages"])
