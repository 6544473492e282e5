"""Undo and redo over HTTP, and whose files they may change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import began, ended, got, said, sent
from moot.testing.script import Reply, ToolCall
from moot.types.conversation import Project

pytestmark = pytest.mark.anyio

SCRIPT = [Reply(tool_calls=[ToolCall("write_file", {"path": "note", "content": "agent"})]), Reply(text="Done.")]


async def test_files_need_the_scope_for_tools_and_messages_do_not(open_server: Callable[..., Any], tmp_path: Path) -> None:
    async with open_server(SCRIPT, mode="auto") as server:
        server: LiveServer
        conversation = await began(server, directory=str(tmp_path))
        path = f"/api/conversations/{conversation['id']}"
        await ended(server, await said(server, conversation["id"], "Write"))
        preview = await sent(server.client, "POST", f"{path}/undo", {"dry_run": True})
        assert preview["files"] == [{"path": "note", "change": "delete"}] and not preview["done"]
        async with server.caller(scopes=["chat"]) as chatter:
            async with chatter.post(f"{path}/undo", json={}) as answer:
                assert answer.status == 403
            assert (await sent(chatter, "POST", f"{path}/undo", {"part": "talk"}))["messages"] == 2
            async with chatter.post(f"{path}/redo", json={}) as answer:
                assert answer.status == 403
        assert (await sent(server.client, "POST", f"{path}/redo", {}))["part"] == "talk"
        assert (await sent(server.client, "POST", f"{path}/undo", {}))["done"] and not (tmp_path / "note").exists()
        async with server.client.post(f"{path}/undo", json={}) as answer:
            assert answer.status == 400 and "nothing to undo" in (await answer.json())["detail"]


async def test_the_changes_of_a_run_and_of_a_conversation_are_compared(open_server: Callable[..., Any], tmp_path: Path) -> None:
    script = [
        Reply(tool_calls=[ToolCall("write_file", {"path": "note", "content": "one\ntwo\n"})]),
        Reply(text="Done."),
        Reply(tool_calls=[ToolCall("shell", {"command": "printf 'one\\nthree\\n' > note; printf '\\000' > image; rm old"})]),
        Reply(text="Done."),
    ]
    (tmp_path / "old").write_text("old\n")
    async with open_server(script, mode="auto") as server:
        server: LiveServer
        conversation = await began(server, directory=str(tmp_path))
        path = f"/api/conversations/{conversation['id']}"
        runs = [await ended(server, await said(server, conversation["id"], text)) for text in ("Write", "Change")]
        first, second = [await got(server.client, f"{path}/changes", message=run["message"]) for run in runs]
        created = {"path": "note", "change": "created", "diff": "@@ -0,0 +1,2 @@\n+one\n+two", "added": 2, "removed": 0}
        assert first["files"] == [{**created, "obstacle": None, "mixed": False}] and first["file_count"] == 1
        image, note, old = second["files"]
        assert (image["path"], image["change"], image["diff"], image["obstacle"]) == ("image", "created", None, "binary")
        assert note["diff"] == "@@ -1,2 +1,2 @@\n one\n-two\n+three" and (note["added"], note["removed"]) == (1, 1)
        assert (old["path"], old["change"], old["diff"]) == ("old", "deleted", "@@ -1 +0,0 @@\n-old")
        whole = await got(server.client, f"{path}/changes")
        assert [file["diff"] for file in whole["files"]] == [None, "@@ -0,0 +1,2 @@\n+one\n+three", old["diff"]]
        assert not whole["undone"] and not whole["partial"]
        async with server.caller(scopes=["chat"]) as chatter, chatter.get(f"{path}/changes") as answer:
            assert answer.status == 403
        await sent(server.client, "POST", f"{path}/undo", {"part": "files"})
        undone = await got(server.client, f"{path}/changes")
        assert undone["undone"] and [file["path"] for file in undone["files"]] == ["note"]


async def test_the_files_of_other_users_stay_in_the_folders_that_they_may_use(open_server: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    async with open_server(SCRIPT, mode="auto") as server, server.caller(scopes=["tools"], owner="mara") as mara:
        owner = (await (await mara.get("/api/session")).json())["owner"]
        projects = server.engine.store.of(owner).projects
        project = await projects.create(Project("shop", "shop", owner=owner, root_path=str(tmp_path / "shop")))
        conversation = await sent(mara, "POST", "/api/conversations", {"project": project.id}, 201)
        path = f"/api/conversations/{conversation['id']}"
        submitted = await sent(mara, "POST", f"{path}/messages", {"text": "Write", "mode": "auto"}, 202)
        await server.engine.runs.wait(submitted["run"]["id"])
        assert (tmp_path / "shop" / "note").exists()
        await projects.update(project.id, root_path="")
        undone = await sent(mara, "POST", f"{path}/undo", {"overwrite": True})
        assert undone["files"] == [] and "outside the folders" in undone["kept"][0]["reason"]
        assert (tmp_path / "shop" / "note").exists()
