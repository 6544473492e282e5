"""The routes of tasks."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from e2e.server.http_calls import got, sent

pytestmark = pytest.mark.anyio


async def project(server: Any, name: str = "shop") -> str:
    made = await sent(server.client, "POST", "/api/projects", {"name": name}, 201)
    return f"/api/projects/{made['id']}/tasks"


async def test_a_task_is_added_changed_commented_and_removed(server: Any) -> None:
    path = await project(server)
    added = await sent(server.client, "POST", path, {"title": "Fix it", "tags": ["ui"], "due": "2026-12-24"}, 201)
    assert (added["number"], added["status"], added["tags"], added["due"], added["author"], added["version"]) == (
        *(1, "backlog", ["ui"], "2026-12-24", "local", 1),
    )
    changed = await sent(server.client, "PATCH", f"{path}/1", {"status": "in_review", "tags": []})
    assert (changed["status"], changed["tags"], changed["title"], changed["version"]) == ("in_review", [], "Fix it", 2)
    comment = await sent(server.client, "POST", f"{path}/1/comments", {"text": "Seen."}, 201)
    assert (await got(server.client, f"{path}/1/comments"))["data"] == [comment]
    history = await got(server.client, f"{path}/{added['id']}/history")
    assert [change["event"] for change in history["changes"]] == ["commented", "status", "created"]
    assert history["changes"][1]["fields"] == ["status", "tags"] and history["runs"] == []
    await sent(server.client, "DELETE", f"{path}/1")
    await got(server.client, f"{path}/1", 404)
    assert (await got(server.client, path))["data"] == []


async def test_lists_are_filtered_and_paged(server: Any) -> None:
    path = await project(server)
    for title, status in (("one", "done"), ("two", "backlog"), ("three", "archived")):
        await sent(server.client, "POST", path, {"title": title, "status": status, "tags": [title]}, 201)
    first = await got(server.client, path, limit=1)
    second = await got(server.client, path, limit=1, cursor=first["next_cursor"])
    assert [first["data"][0]["title"], second["data"][0]["title"], second["next_cursor"]] == ["two", "one", None]
    async with server.client.get(path, params=[("status", "done"), ("status", "archived")]) as answer:
        assert [task["title"] for task in (await answer.json())["data"]] == ["one", "three"]
    assert [task["title"] for task in (await got(server.client, path, tag="two"))["data"]] == ["two"]
    assert [task["title"] for task in (await got(server.client, path, query="ON"))["data"]] == ["one"]
    await got(server.client, path, 400, cursor="nonsense")


@pytest.mark.parametrize(
    ("body", "words", "status"),
    [
        ({}, "title", 422),
        ({"title": "x" * 201}, "title", 422),
        ({"title": "  "}, "title of the task is empty", 400),
        ({"title": "x", "status": "new"}, "status", 422),
        ({"title": "x", "due": "soon"}, "Invalid due date 'soon'", 400),
        ({"title": "x", "tags": [""]}, "tags", 422),
        ({"title": "x", "author": "ann"}, "author", 422),
    ],
)
@pytest.mark.slow
async def test_an_invalid_task_is_a_problem(server: Any, body: Any, words: str, status: int) -> None:
    path = await project(server)
    problem = await sent(server.client, "POST", path, body, status)
    assert words in str(problem)
    assert (await got(server.client, path))["data"] == []


async def test_a_stale_etag_is_refused_and_a_known_one_answers_304(server: Any) -> None:
    path = await project(server)
    await sent(server.client, "POST", path, {"title": "x"}, 201)
    async with server.client.get(f"{path}/1") as answer:
        etag = answer.headers["etag"]
    async with server.client.get(f"{path}/1", headers={"if-none-match": etag}) as answer:
        assert answer.status == 304
    async with server.client.patch(f"{path}/1", json={"status": "done"}, headers={"if-match": etag}) as answer:
        assert (answer.status, (await answer.json())["version"]) == (200, 2)
        assert answer.headers["etag"] not in ("", etag)
    await sent(server.client, "PATCH", f"{path}/1", {"status": "backlog"}, 412, headers={"if-match": etag})
    await sent(server.client, "DELETE", f"{path}/1", None, 412, headers={"if-match": etag})
    assert (await got(server.client, f"{path}/1"))["status"] == "done"


async def test_a_repeated_request_adds_one_task_and_one_comment(server: Any) -> None:
    path = await project(server)
    first, again = [await sent(server.client, "POST", path, {"title": "x"}, 201, headers={"idempotency-key": "k"}) for _ in range(2)]
    assert first == again
    for _ in range(2):
        await sent(server.client, "POST", f"{path}/1/comments", {"text": "c"}, 201, headers={"idempotency-key": "c"})
    assert (await got(server.client, f"{path}/1"))["comments"] == 1


async def test_scopes_are_those_of_projects_and_chat_starts_no_watcher(server: Any) -> None:
    path = await project(server)
    depths: list[int] = []
    for scope, status in (("read", 403), ("chat", 201), ("tools", 201)):
        token = await sent(server.client, "POST", "/api/tokens", {"name": scope, "scopes": [scope]}, 201)
        async with aiohttp.ClientSession(server.url, headers={"authorization": f"Bearer {token['secret']}"}) as client:
            await sent(client, "POST", path, {"title": scope}, status)
            await got(client, path)
    for number in ("1", "2"):
        changes, _ = await server.engine.store.tasks.history(path.split("/")[3], number)
        depths.append(changes[0].depth)
    assert depths == [3, 0]


async def test_tasks_of_a_missing_project_are_missing(server: Any) -> None:
    await got(server.client, "/api/projects/nowhere/tasks", 404)
    await got(server.client, "/api/projects/default/tasks/1", 404)
    assert (await got(server.client, "/api/projects/default/tasks"))["data"] == []
