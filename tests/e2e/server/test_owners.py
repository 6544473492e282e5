"""Two users of one server: resources of the other user return 404 and don't change."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import anyio
import pytest

from e2e.server.conftest import LiveServer
from moot.server.app import routed
from moot.server.routes.documentation import specification
from moot.store.database.connection import connect
from moot.testing.script import Reply, ToolCall
from moot.types.ids import new_id

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
SECRET = "heliotrope"


@dataclass(frozen=True)
class Names:
    """Ids of resources of one user, or ids that don't exist."""

    conversation_id: str
    client: str
    message_id: str
    run_id: str
    approval_id: str
    project_id: str
    sha256: str
    source_id: str
    task: str


UNKNOWN = Names(new_id(), "never-said", new_id(), new_id(), f"{new_id()}/tool:0.0", new_id(), "0" * 64, new_id(), "1")
TEXT = [{"type": "text", "text": "hi"}]

QUERIES = {"export": "?format=json", **dict.fromkeys(("get_file", "put_file", "get_git_diff"), "?path=a.txt")}
BODIES: dict[str, Json] = {
    "change_conversation": {"title": "mine"},
    "fork_conversation": {},
    "show_branch": {"message": "x"},
    "continue_conversation": {},
    "submit_prompt": {"text": "hi"},
    "edit_message": {"parts": TEXT},
    "change_compaction": {"summary": "hi"},
    "undo_prompt": {"part": "talk"},
    "redo_prompt": {"part": "talk"},
    "edit_queued": {"parts": TEXT},
    "answer_approval": {"approved": True},
    "change_project": {"name": "mine"},
    "add_task": {"title": "mine"},
    "change_task": {"title": "mine"},
    "comment_on_task": {"text": "mine"},
    "put_file": {"text": "mine"},
    "stage_files": {},
    "unstage_files": {},
    "commit_staged": {"message": "mine"},
}
"""Request bodies of operations with ids in their path."""

NOT_OURS = ("/api/tokens/", "/api/memory/", "/api/knowledge/uploads/", "/v1/")
"""Paths whose ids don't belong to a user's conversations."""

NAMED: dict[str, Callable[[str, Names], tuple[str, str, Any]]] = {
    "a project's conversation": lambda _, it: ("POST", "/api/conversations", {"project": it.project_id}),
    "into a project": lambda own, it: ("PATCH", f"/api/conversations/{own}", {"project": it.project_id}),
    "the head": lambda own, it: ("PATCH", f"/api/conversations/{own}", {"head": it.message_id}),
    "a branch": lambda own, it: ("POST", f"/api/conversations/{own}/head", {"message": it.message_id}),
    "a message to continue after": lambda own, it: ("POST", f"/api/conversations/{own}/continue", {"message": it.message_id}),
    "a fork's end": lambda own, it: ("POST", f"/api/conversations/{own}/fork", {"message": it.message_id}),
    "an edit": lambda own, it: ("POST", f"/api/conversations/{own}/messages", {"text": "hi", "edits": it.message_id}),
    "an answer": lambda own, it: ("POST", f"/api/conversations/{own}/messages", {"answers": it.message_id}),
    "a file": lambda own, it: ("POST", f"/api/conversations/{own}/messages", {"parts": [said_file(it)]}),
    "an edit with a file": lambda own, it: ("PUT", f"/api/conversations/{own}/messages/mine", {"parts": [said_file(it)]}),
    "a page of messages": lambda own, it: ("GET", f"/api/conversations/{own}/messages?cursor={it.message_id}", None),
    "a message": lambda own, it: ("GET", f"/api/conversations/{own}/messages/{it.message_id}", None),
    "a message to delete": lambda own, it: ("DELETE", f"/api/conversations/{own}/messages/{it.message_id}", None),
    "raw events of a message": lambda own, it: ("GET", f"/api/conversations/{own}/raw?message={it.message_id}", None),
    "raw events of a run": lambda own, it: ("GET", f"/api/conversations/{own}/raw?run={it.run_id}", None),
    "a queued run": lambda own, it: ("DELETE", f"/api/conversations/{own}/queue/{it.run_id}", None),
    "runs": lambda _, it: ("GET", f"/api/runs?conversation={it.conversation_id}", None),
    "approvals": lambda _, it: ("GET", f"/api/approvals?conversation={it.conversation_id}", None),
    "approvals of a run": lambda _, it: ("GET", f"/api/approvals?run={it.run_id}", None),
    "a search": lambda _, it: ("GET", f"/api/search?q=x&conversation={it.conversation_id}", None),
    "stats": lambda _, it: ("GET", f"/api/stats?conversation={it.conversation_id}", None),
}
"""Ids of another user's resources in queries and bodies."""

LISTS = (
    "/api/conversations",
    "/api/conversations?archived=true",
    "/api/conversations?deleted=true",
    f"/api/conversations?query={SECRET}",
    "/api/projects",
    f"/api/projects?query={SECRET}",
    "/api/runs",
    "/api/runs?live=true",
    "/api/memory",
    "/api/knowledge",
    f"/api/knowledge/search?q={SECRET}",
    "/api/approvals",
    f"/api/search?q={SECRET}",
    "/api/stats",
    "/api/stats/activity",
    "/api/stats/windows",
    "/api/stats/budgets",
    "/api/edits",
    "/api/store",
)


def said_file(of: Names) -> Json:
    return {"type": "file", "mediaType": "text/plain", "url": f"/api/blobs/{of.sha256}"}


def script(recorded: Any) -> Reply:
    return Reply(text="ok") if "hello" in recorded.user_text else Reply(tool_calls=[ToolCall("shell", {"command": f"touch {SECRET}"})])


@dataclass
class Two:
    """Create one resource of each kind for Ann, and a conversation for Bob."""

    server: LiveServer
    ann: aiohttp.ClientSession
    bob: aiohttp.ClientSession
    hers: Names
    own: str


async def posted(client: aiohttp.ClientSession, path: str, body: Any) -> Json:
    async with client.post(path, json=body) as answer:
        found: Json = await answer.json(content_type=None)
        assert answer.status < 300, found
        return found


async def belongings(server: LiveServer, ann: aiohttp.ClientSession) -> Names:
    root = {"name": f"project {SECRET}", "root_path": str(server.directory)}
    project = await posted(server.client, "/api/projects?user=ann", root)
    made = await posted(ann, "/api/conversations", {"title": f"about {SECRET}", "project": project["id"], "client_id": "hers"})
    submitted = await posted(ann, f"/api/conversations/{made['id']}/messages", {"text": f"a {SECRET}", "client_id": "m-1"})
    with anyio.fail_after(60):
        assert (await server.engine.runs.wait(submitted["run"]["id"])).status == "waiting"
    async with ann.get("/api/approvals") as answer:
        (asked,) = (await answer.json())["data"]
    async with ann.get(f"/api/conversations/{made['id']}/messages/m-1") as answer:
        message = await answer.json()
    async with ann.post("/api/blobs", data=SECRET.encode(), headers={"content-type": "text/plain"}) as answer:
        blob = await answer.json()
    async with ann.post(f"/api/knowledge/uploads/{SECRET}.txt", data=SECRET.encode()) as answer:
        source = await answer.json()
    task = await posted(ann, f"/api/projects/{project['id']}/tasks", {"title": SECRET})
    names = (made["id"], "hers", message["id"], submitted["run"]["id"], asked["id"], project["id"], blob["sha256"])
    return Names(*names, source["id"], str(task["number"]))


@pytest.fixture
async def two(open_server: Callable[..., Any]) -> AsyncGenerator[Two, None]:
    async with (
        open_server(script, mode="ask") as server,
        server.caller(scopes=["admin"], owner="ann") as ann,
        server.caller(scopes=["admin"], owner="bob") as bob,
    ):
        hers = await belongings(server, ann)
        own = (await posted(bob, "/api/conversations", {}))["id"]
        said = await posted(bob, f"/api/conversations/{own}/messages", {"text": "hello", "client_id": "mine"})
        with anyio.fail_after(60):
            await server.engine.runs.wait(said["run"]["id"])
        await server.engine.store.search.index()
        await server.engine.store.stats.count()
        yield Two(server, ann, bob, hers, own)


async def contents(two: Two) -> dict[str, list[Any]]:
    """Return every row of every table, except for the last use of tokens."""
    with closing(connect(Path(str((await two.server.engine.store.health())["path"])))) as connection:
        named = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name <> 'token'"
        tables = [row[0] for row in connection.execute(named)]
        return {table: sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr) for table in tables}


async def told(client: aiohttp.ClientSession, method: str, path: str, body: Any, names: Names) -> tuple[int, str]:
    """Return the response without ids and without its request id."""
    async with client.request(method, path, json=body) as answer:
        text = (await answer.content.read(4096)).decode("utf-8", "replace")
        status = answer.status
    for name in sorted((str(getattr(names, field.name)) for field in fields(names)), key=len, reverse=True):
        text = text.replace(name, "…")
    return status, re.sub(r'"request_id":"[^"]*"', "", text)


def operations() -> list[tuple[str, str, str]]:
    """Yield method, path and name of every operation with ids in its path."""
    found: list[tuple[str, str, str]] = []
    for path, methods in specification(routed())["paths"].items():
        if "{" in path and not path.startswith(NOT_OURS):
            found += [(method.upper(), path, about["operationId"]) for method, about in methods.items()]
    return found


def filled(path: str, names: Names) -> str | None:
    """Return the path with the ids filled in, or None if it has ids of other kinds."""
    values = {field.name: getattr(names, field.name) for field in fields(names)} | {"chat_id": names.conversation_id}
    wanted = re.findall(r"\{(\w+)(?::path)?\}", path)
    if not set(wanted) <= values.keys():
        return None
    return re.sub(r"\{(\w+)(?::path)?\}", lambda match: quote(values[match[1]], safe=""), path)


def test_all_paths_with_resource_ids_are_tried() -> None:
    tried = {path for _, path, _ in operations() if filled(path, UNKNOWN) is not None}
    for part in (
        "/queue/{run_id}",
        "/messages/{message_id}",
        "/raw",
        "/tree",
        "/fork",
        "/head",
        "/runs/{run_id}/cancel",
        "/blobs/{sha256}",
    ):
        assert any(path.endswith(part) for path in tried), part
    unknown = {path for _, path, _ in operations()} - tried
    assert not {
        path
        for path in unknown
        if "/worktrees/" not in path  # its name is not an id, and only the owner of the machine may use the route
        and path.startswith(("/api/conversations", "/api/runs", "/api/approvals", "/api/projects", "/api/blobs", "/api/chat"))
    }


async def test_resources_of_other_users_return_404_and_do_not_change(two: Two) -> None:
    before = await contents(two)
    for method, path, name in operations():
        place = filled(path, two.hers)
        if place is None:
            continue
        body, place = BODIES.get(name), place + QUERIES.get(name, "")
        found = await told(two.bob, method, place, body, two.hers)
        assert found == await told(two.bob, method, (filled(path, UNKNOWN) or "") + QUERIES.get(name, ""), body, UNKNOWN), (method, path)
        assert found[0] in ((403,) if "/worktrees" in path else (404, 204)), (method, path, found)  # for the owner of the machine
    for name, call in NAMED.items():
        method, place, body = call(two.own, two.hers)
        found = await told(two.bob, method, place, body, two.hers)
        method, place, body = call(two.own, UNKNOWN)
        assert found == await told(two.bob, method, place, body, UNKNOWN), name
        assert found[0] == 404, (name, found)
    assert await contents(two) == before


async def test_lists_contain_no_resources_of_other_users(two: Two) -> None:
    hers = [getattr(two.hers, field.name) for field in fields(two.hers) if field.name != "task"]
    for path in LISTS:
        async with two.bob.get(path) as answer:
            text = await answer.text()
            assert answer.status == 200, path
        assert SECRET not in text and not any(name in text for name in hers if name != "hers"), path
    async with two.bob.get("/api/stats") as answer:
        stats = await answer.json()
    assert (stats["conversations"], stats["messages"], stats["total"]["runs"]) == (1, 2, 1)


async def test_owners_reach_their_own_resources(two: Two) -> None:
    for path in ("", "/messages", "/tree", "/queue", "/raw"):
        async with two.ann.get(f"/api/conversations/{two.hers.conversation_id}{path}") as answer:
            assert answer.status == 200
            assert SECRET in await answer.text() or path == "/queue"
    for path in (f"/api/runs/{two.hers.run_id}", f"/api/blobs/{two.hers.sha256}", f"/api/approvals/{quote(two.hers.approval_id, safe='')}"):
        async with two.ann.get(path) as answer:
            assert answer.status == 200


async def test_client_ids_of_different_users_are_independent(two: Two) -> None:
    made = await posted(two.bob, "/api/conversations", {"client_id": "hers"})
    assert made["id"] != two.hers.conversation_id
    async with two.bob.get("/api/conversations/hers") as answer:
        assert (await answer.json())["id"] == made["id"]
    async with two.ann.get("/api/conversations/hers") as answer:
        assert (await answer.json())["id"] == two.hers.conversation_id
    async with two.bob.post("/api/blobs", data=SECRET.encode(), headers={"content-type": "image/png"}) as answer:
        assert (await answer.json())["media_type"] == "image/png"
    root = {"name": "mine", "root_path": str(two.server.directory)}
    project = await posted(two.server.client, "/api/projects?user=bob", root)
    assert project["id"] != two.hers.project_id
