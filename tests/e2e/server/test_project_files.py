"""Files of projects and Git over HTTP."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import got, sent

pytestmark = pytest.mark.anyio


async def shop(server: LiveServer, root: Path, user: str = "") -> str:
    """Create a project with this folder and return its path in the API."""
    root.mkdir(exist_ok=True)
    made = await sent(server.client, "POST", f"/api/projects{user}", {"name": "shop", "root_path": str(root)}, 201)
    return f"/api/projects/{made['id']}"


async def put(client: aiohttp.ClientSession, at: str, path: str, text: str, status: int, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await sent(client, "PUT", f"{at}/file?path={path}", {"text": text}, status, headers=named)


async def test_a_file_is_saved_only_if_it_has_not_changed_since_it_was_read(server: LiveServer) -> None:
    root, client = server.directory / "shop", server.client
    at = await shop(server, root)
    made = await put(client, at, "src/a.py", "one\n", 200, if_none_match="*")
    assert (made["path"], made["kind"], made["text"], made["protected"]) == ("src/a.py", "text", "one\n", "")
    tree = await got(client, f"{at}/tree")
    assert (tree["entries"], tree["rest"]) == ([{"name": "src", "path": "src", "type": "directory", "ignored": False}], 0)
    read = await client.get(f"{at}/file", params={"path": str(root / "src" / "a.py")})
    etag = read.headers["etag"]
    assert etag == f'"{made["sha256"]}"'
    assert (await put(client, at, "src/a.py", "two\n", 428))["code"] == "precondition_required"
    (root / "src" / "a.py").write_text("theirs\n")
    assert "changed" in (await put(client, at, "src/a.py", "two\n", 412, if_match=etag))["detail"]
    await put(client, at, "src/a.py", "two\n", 412, if_none_match="*")
    assert (root / "src" / "a.py").read_text() == "theirs\n"
    await put(client, at, "src/a.py", "two\n", 200, if_match="*")
    assert (root / "src" / "a.py").read_text() == "two\n"
    (root / "src" / "a.py").unlink()
    await put(client, at, "src/a.py", "two\n", 412, if_match=etag)
    await put(client, at, ".git/config", "x", 403, if_none_match="*")
    await got(client, f"{at}/file?path=../other.txt", 403)
    async with server.caller(scopes=["chat"]) as chatter, server.caller(scopes=["read"]) as reader:
        await got(chatter, f"{at}/tree")
        await put(chatter, at, "b.txt", "x", 403, if_none_match="*")
        await sent(chatter, "POST", f"{at}/git/commit", {"message": "x"}, 403)
        await got(reader, f"{at}/file?path=src/a.py", 403)
    assert "no folder" in (await got(client, "/api/projects/default/tree", 400))["detail"]


async def test_changes_are_shown_staged_and_committed(server: LiveServer) -> None:
    root, client = server.directory / "shop", server.client
    at = await shop(server, root)
    assert await got(client, f"{at}/git/status") == {"status": None}
    for command in ("init --quiet --initial-branch=main", "config user.name Ada", "config user.email ada@example.org"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)
    (root / "a.txt").write_text("one\n")
    untracked = (await got(client, f"{at}/git/status"))["status"]
    assert (untracked["branch"], untracked["untracked"]) == ("main", [{"path": "a.txt", "change": "untracked", "before": None}])
    for method in ("stage", "unstage", "stage"):
        assert (await client.post(f"{at}/git/{method}", json={"paths": ["a.txt"]})).status == 204
    assert "+one" in (await got(client, f"{at}/git/diff?path=a.txt&staged=true"))["diff"]
    commit = (await sent(client, "POST", f"{at}/git/commit", {"message": "feat: first"}, 201))["commit"]
    assert (await got(client, f"{at}/git"))["commit"] == commit
    assert "nothing to commit" in (await sent(client, "POST", f"{at}/git/commit", {"message": "again"}, 400))["detail"]


async def test_another_user_gets_the_files_of_their_project_but_not_git(server: LiveServer) -> None:
    (server.directory / "secret.txt").write_text("secret")
    async with server.caller(scopes=["admin"], owner="bob") as bob:
        at = await shop(server, server.directory / "shop", "?user=bob")
        (server.directory / "shop" / "way-out").symlink_to(server.directory / "secret.txt")
        await put(bob, at, "a.txt", "bob's", 200, if_none_match="*")
        assert [entry["name"] for entry in (await got(bob, f"{at}/tree"))["entries"]] == ["a.txt", "way-out"]
        await got(bob, f"{at}/file?path=way-out", 403)
        await got(bob, f"{at}/git/status", 403)
        await sent(bob, "POST", f"{at}/git/stage", {}, 403)
        own = (await sent(server.client, "POST", "/api/projects", {"name": "mine", "root_path": str(server.directory)}, 201))["id"]
        await got(bob, f"/api/projects/{own}/file?path=secret.txt", 404)
