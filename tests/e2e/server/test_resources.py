"""Approvals, search, usage, blobs and projects over a real socket."""

from __future__ import annotations

import hashlib
import resource
import subprocess
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import Json, began, ended, got, said, sent
from moot.guard.worktrees import create
from moot.store.database.connection import connect
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.command_tool import CommandTool, schema_of
from moot.types.limits import Budget, Limits

pytestmark = pytest.mark.anyio

# ── approvals ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def asks(name: str, arguments: Json) -> Callable[[Any], Reply]:
    def script(recorded: Any) -> Reply:
        tool = any(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(text="done") if tool else Reply(tool_calls=[ToolCall(name, arguments)])

    return script


async def waiting(server: LiveServer, **more: Any) -> tuple[Json, Json]:
    """Start a run that asks for approval. Return the approval and the run."""
    made = await began(server)
    submitted = await said(server, made["id"], "do it", **more)
    assert (await ended(server, submitted))["status"] == "waiting"
    (asked,) = (await got(server.client, "/api/approvals", conversation=made["id"]))["data"]
    return asked, submitted


async def test_a_pending_call_is_shown_and_approved(open_server: Callable[..., Any], directory: Path) -> None:
    (directory / "notes.txt").write_text("one\ntwo\n")
    async with open_server(asks("write_file", {"path": "notes.txt", "content": "one\nthree\n"}), mode="ask") as server:
        asked, submitted = await waiting(server)
        assert (asked["tool"], asked["input"]["path"], asked["run"]) == ("write_file", "notes.txt", submitted["run"]["id"])
        assert asked["parts"][0]["action"] == "ask" and asked["answer"] is None
        seen = await got(server.client, f"/api/approvals/{quoted(asked['id'])}")
        assert "-two" in seen["preview"]["diff"] and "+three" in seen["preview"]["diff"] and "2 lines" in seen["preview"]["fact"]
        answered = await sent(server.client, "POST", f"/api/approvals/{quoted(asked['id'])}", {"approved": True})
        assert answered["answer"]["approved"] is True
        assert (await ended(server, submitted))["status"] == "finished"
        assert (directory / "notes.txt").read_text() == "one\nthree\n"
        assert (await sent(server.client, "POST", f"/api/approvals/{quoted(asked['id'])}", {"approved": False}, 409))["code"] == "busy"
        assert (await got(server.client, "/api/approvals"))["data"] == []
        (kept,) = (await got(server.client, "/api/approvals", open="false", run=submitted["run"]["id"]))["data"]
        assert kept["used_at"]
        await got(server.client, "/api/approvals", 400, open="false")


async def test_an_edit_has_a_diff_with_its_place_and_commands_that_destroy_are_named(
    open_server: Callable[..., Any], directory: Path
) -> None:
    (directory / "notes.txt").write_text("".join(f"{number}\n" for number in range(1, 21)))
    edit = {"path": "notes.txt", "edits": [{"old_text": "10\n", "new_text": "ten\n"}]}
    async with open_server(asks("edit_file", edit), mode="ask") as server:
        asked, _ = await waiting(server)
        diff = (await got(server.client, f"/api/approvals/{quoted(asked['id'])}"))["preview"]["diff"]
        assert "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n" in diff and asked["destructive"] == []
        (directory / "notes.txt").write_text("")  # the edit is not possible any more
        assert (await got(server.client, f"/api/approvals/{quoted(asked['id'])}"))["preview"]["diff"] is None
    async with open_server(asks("shell", {"command": "echo a && sudo rm -rf b | tee c"}), mode="ask") as server:
        asked, _ = await waiting(server)
        assert asked["destructive"] == ["sudo rm -rf b", "rm -rf b"]


async def test_a_denial_has_a_reason_and_an_approval_may_replace_the_arguments(open_server: Callable[..., Any], directory: Path) -> None:
    async with open_server(asks("shell", {"command": "touch no"}), mode="ask") as server:
        asked, submitted = await waiting(server)
        path = f"/api/approvals/{quoted(asked['id'])}"
        await sent(server.client, "POST", path, {"approved": False, "reason": "not now"})
        await ended(server, submitted)
        assert "not now" in str(server.model.requests[-1].json)
        asked, submitted = await waiting(server)
        path = f"/api/approvals/{quoted(asked['id'])}"
        assert (await sent(server.client, "POST", path, {"approved": True, "arguments": {"nonsense": 1}}, 400))["code"] == "usage"
        await sent(server.client, "POST", path, {"approved": True, "arguments": {"command": "touch yes"}})
        await ended(server, submitted)
        assert (directory / "yes").exists() and not (directory / "no").exists()


async def test_answering_requires_a_scope_that_depends_on_the_option(open_server: Callable[..., Any]) -> None:
    async with open_server(asks("shell", {"command": "touch it"}), mode="ask") as server:
        asked, submitted = await waiting(server)
        path = f"/api/approvals/{quoted(asked['id'])}"
        async with server.caller(scopes=["chat"], owner="local") as chat:
            await sent(chat, "POST", path, {"approved": True}, 403)
        async with server.caller(scopes=["tools"], owner="local") as tools:
            refused = await sent(tools, "POST", path, {"approved": True, "option": "always"}, 403)
            assert "machine" in refused["detail"]
            await sent(tools, "POST", path, {"approved": True, "option": "conversation"})
        await ended(server, submitted)
        found = await got(server.client, f"/api/conversations/{asked['conversation']}")
        assert found["grants"][0]["tool"] == "shell" and "grants" not in found["settings"]
        kept = await sent(server.client, "PATCH", f"/api/conversations/{asked['conversation']}", {"settings": {}})
        assert kept["grants"] == found["grants"]


async def test_allowing_a_change_of_the_configuration_requires_the_scope_machine(open_server: Callable[..., Any]) -> None:
    agents = {"default": Agent(tools=("change_setting",))}
    async with open_server(asks("change_setting", {"key": "ui.theme", "value": "dark"}), mode="auto", agents=agents) as server:
        asked, submitted = await waiting(server)
        path = f"/api/approvals/{quoted(asked['id'])}"
        async with server.caller(scopes=["tools", "admin"], owner="local") as caller:
            assert "machine" in (await sent(caller, "POST", path, {"approved": True}, 403))["detail"]
        await sent(server.client, "POST", path, {"approved": True})
        await ended(server, submitted)
        assert "theme: dark" in (server.engine.settings.home / "config.yaml").read_text()


async def test_a_call_of_a_custom_tool_is_shown_with_its_command_line(open_server: Callable[..., Any]) -> None:
    command = ("touch", "{{name}}")
    custom = {"make": CommandTool("make", "Make a file.", command, schema_of({}, command))}
    async with open_server(asks("make", {"name": "a b"}), mode="ask", custom_tools=custom) as server:
        asked, _ = await waiting(server)
        assert asked["command"] == "touch 'a b'"
        shown = await got(server.client, "/api/tools/make")
        assert shown["origin"] == "configuration" and shown["command"] == ["touch", "{{name}}"]


async def test_a_model_explains_a_call_and_the_inbox_is_paginated(open_server: Callable[..., Any]) -> None:
    def script(recorded: Any) -> Reply:
        if "Tool: shell" in recorded.user_text:
            return Reply(text="It makes a file.")
        return Reply(tool_calls=[ToolCall("shell", {"command": "touch a"})])

    async with open_server(script, mode="ask") as server:
        asked = [(await waiting(server))[0] for _ in range(3)]
        said = await sent(server.client, "POST", f"/api/approvals/{quoted(asked[0]['id'])}/explain")
        assert said["text"] == "It makes a file."
        first = await got(server.client, "/api/approvals", limit=2)
        rest = await got(server.client, "/api/approvals", limit=2, cursor=first["next_cursor"])
        assert [each["id"] for each in (*first["data"], *rest["data"])] == [each["id"] for each in asked]


def quoted(id: str) -> str:
    return id.replace("/", "%2F").replace("#", "%23")


# ── search and usage ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_messages_are_searched_and_usage_is_counted(server: LiveServer) -> None:
    made = await began(server, title="fruit")
    await ended(server, await said(server, made["id"], "a quince and a medlar"))
    found = await got(server.client, "/api/search", q="medlar")
    assert [(hit["conversation"], hit["title"]) for hit in found["data"]] == [(made["id"], "fruit")]
    assert "\x02medlar\x03" in found["data"][0]["snippet"] and found["index"] == {"done": 2, "total": 2}
    assert (await got(server.client, "/api/search", q="durian"))["data"] == []
    best = await got(server.client, "/api/search", q="medlar role:user after:1d", sort="best")
    assert [(hit["column"], hit["seq"] > 0) for hit in best["data"]] == [("text", True)] and best["ranked"] is None
    for query, known in (("role:bob", "user, assistant, system"), ("agnet:x", "agent:"), ("project:nowhere", "default")):
        problem = await got(server.client, "/api/search", 400, q=query)
        assert known in problem["detail"] and "quotes" in problem["fix"]
    await got(server.client, "/api/search", 404, q="x", conversation="nowhere")
    await got(server.client, "/api/search", 400, q="  ")
    problem = await got(server.client, "/api/search", 400, q="fruit", mode="meaning")
    assert "not installed" in problem["detail"] and problem["fix"] == "moot models pull e5-small"
    stats = await got(server.client, "/api/stats")
    assert (stats["conversations"], stats["messages"], stats["total"]["runs"]) == (1, 2, 1)
    assert stats["total"]["input"] > 0 and [group["runs"] for group in (*stats["days"], *stats["models"], *stats["agents"])] == [1, 1, 1]
    assert (await got(server.client, "/api/stats", until=1))["total"]["runs"] == 0
    sizes = await got(server.client, "/api/store")
    assert (sizes["rows"]["events"] > 0, sizes["segments"]["events"], len(sizes["largest"])) == (True, 0, 1)
    assert (await got(server.client, "/api/store", largest=0))["largest"] == []


async def test_a_used_up_budget_fails_the_call_of_a_program(open_server: Callable[..., Any]) -> None:
    script = [Reply(text="Hello.", usage={"input": 600, "output": 600}, times=0)]
    async with open_server(script, budgets=(Budget("tokens", "month", tokens=1_000),)) as server:
        call = {"model": "scripted@mine", "messages": [{"role": "user", "content": "hello"}]}
        assert (await sent(server.client, "POST", "/v1/chat/completions", call))["choices"][0]["message"]["content"] == "Hello."
        refused = await sent(server.client, "POST", "/v1/chat/completions", call, 400)
        assert (
            refused["error"]["code"] == "limit" and "the budget 'tokens' is used up: 1,200 of 1,000 tokens." in refused["error"]["message"]
        )
        runs = (await got(server.client, "/api/runs"))["data"]
        assert [run["status"] for run in runs] == ["failed", "finished"]


async def test_budgets_are_listed_for_each_user(open_server: Callable[..., Any]) -> None:
    budgets = Budget("tokens", "month", tokens=1_000), Budget("hers", "day", cost=5, user="anna")
    others = Budget("shop", "day", cost=5, project="shop"), Budget("each", cost=5)
    script = [Reply(text="Hello.", usage={"input": 600, "output": 300}, times=0)]
    async with open_server(script, budgets=(*budgets, *others)) as server:
        made = await began(server)
        await ended(server, await said(server, made["id"], "hello"))
        async with server.caller(owner="anna") as anna:
            shares = [(one["name"], one["share"], one["problem"]) for one in (await got(anna, "/api/stats/budgets"))["data"]]
            assert shares == [("tokens", 0, ""), ("hers", 0, ""), ("each", None, "")]
        tokens, shop, each = (await got(server.client, "/api/stats/budgets"))["data"]
        assert (tokens["spent"]["tokens"], tokens["share"], tokens["spent"]["unpriced"]) == (900, 0.9, 1)
        assert tokens["since"] < tokens["resets_at"] and (each["spent"], each["resets_at"]) == (None, None)
        assert (shop["problem"], shop["spent"]) == ("Project 'shop' not found.", None)


# ── blobs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("data", [b"<script>alert(1)</script>", bytes(range(256)) * 4096], ids=["packed", "a file"])
async def test_blobs_are_returned_and_never_executed(server: LiveServer, data: bytes) -> None:
    async with server.client.post("/api/blobs?name=x.html", data=data, headers={"content-type": "text/html; charset=utf-8"}) as answer:
        made = await answer.json()
        assert answer.status == 201
    assert made["sha256"] == hashlib.sha256(data).hexdigest() and made["url"] == f"/api/blobs/{made['sha256']}"
    for method in ("GET", "HEAD"):
        async with server.client.request(method, made["url"]) as answer:
            assert await answer.read() == (data if method == "GET" else b"")
            head = answer.headers
            assert (answer.status, head["content-length"], head["content-disposition"]) == (200, str(len(data)), "attachment")
            assert head["x-content-type-options"] == "nosniff" and "sandbox" in head["content-security-policy"]
            assert head["etag"] == f'"{made["sha256"]}"' and head["content-type"].startswith("text/html")
    async with server.client.get(made["url"], headers={"if-none-match": head["etag"]}) as answer:
        assert answer.status == 304
    size = len(data)
    for span, part in (("bytes=0-4", data[:5]), ("bytes=5-", data[5:]), ("bytes=-3", data[-3:]), (f"bytes=2-{size + 9}", data[2:])):
        async with server.client.get(made["url"], headers={"range": span}) as answer:
            assert (answer.status, await answer.read()) == (206, part)
            assert answer.headers["content-range"].endswith(f"/{size}")
    for nothing in (f"bytes={size}-", "bytes=5-4", "bytes=-0"):
        async with server.client.get(made["url"], headers={"range": nothing}) as answer:
            assert answer.status == 416 and answer.headers["content-range"] == f"bytes */{size}"
    for nonsense in ("lines=1-2", "bytes=x", "bytes=0-1,4-5"):
        async with server.client.get(made["url"], headers={"range": nonsense}) as answer:
            assert (answer.status, await answer.read()) == (200, data)


async def test_uploads_are_limited(open_server: Callable[..., Any]) -> None:
    async with open_server(limits=Limits(uploads=1000)) as server:
        for data, kind, status in (
            (b"x" * 900, "a/b", 201),
            (b"x" * 900, "a/b", 201),
            (b"y" * 101, "a/b", 429),
            (b"", "a/b", 400),
            (b"z", "no type", 400),
        ):
            async with server.client.post("/api/blobs", data=data, headers={"content-type": kind}) as answer:
                assert answer.status == status
        async with server.client.get("/api/blobs/..%2f..%2fmoot.db") as answer:
            assert answer.status == 404


async def test_an_uploaded_file_is_attached_to_a_prompt(server: LiveServer) -> None:
    async with server.client.post("/api/blobs", data=b"the plan", headers={"content-type": "text/plain"}) as answer:
        blob = await answer.json()
    made = await began(server)
    part = {"type": "file", "mediaType": "text/plain", "filename": "plan.txt", "url": blob["url"]}
    submitted = await sent(
        server.client, "POST", f"/api/conversations/{made['id']}/messages", {"parts": [{"type": "text", "text": "read"}, part]}, 202
    )
    assert (await ended(server, submitted))["status"] == "finished"
    shown = (await got(server.client, f"/api/conversations/{made['id']}/messages"))["data"]
    assert shown[0]["parts"][1]["url"] == blob["url"]


# ── projects ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_projects_are_created_updated_and_browsed(server: LiveServer, directory: Path) -> None:
    (directory / "source").mkdir()
    (directory / "source" / "main.py").write_text("")
    (directory / "README.md").write_text("")
    (directory / "link").symlink_to("/etc")
    made = await sent(server.client, "POST", "/api/projects", {"name": "mine", "root_path": str(directory)}, 201)
    path = f"/api/projects/{made['id']}"
    assert (await got(server.client, "/api/projects/mine")) == made
    assert [item["name"] for item in (await got(server.client, "/api/projects"))["data"]] == ["default", "mine"]
    assert (await sent(server.client, "POST", "/api/projects", {"name": "other", "root_path": str(directory)}, 409))["code"] == "busy"
    changed = await sent(server.client, "PATCH", path, {"rules": "be brief", "name": "ours"})
    assert (changed["rules"], changed["name"], changed["root_path"]) == ("be brief", "ours", str(directory))
    await sent(server.client, "PATCH", path, {"name": "late"}, 412, headers={"if-match": '"old"'})
    files = await got(server.client, f"{path}/files", q="main")
    assert files["data"] == [{"path": "source/main.py", "type": "file"}]
    every = {item["path"]: item["type"] for item in (await got(server.client, f"{path}/files"))["data"]}
    assert every["source/"] == "folder" and every["README.md"] == "file" and not any(path.startswith("link/") for path in every)
    assert len((await got(server.client, f"{path}/files", limit=1))["data"]) == 1
    made = await sent(server.client, "POST", "/api/conversations", {"project": made["id"]}, 201)
    assert made["directory"] == str(directory)
    assert (await got(server.client, f"/api/conversations/{made['id']}/files", q="main"))["data"] == files["data"]


async def test_a_removed_project_leaves_its_conversations(server: LiveServer) -> None:
    made = await sent(server.client, "POST", "/api/projects", {"name": "mine"}, 201)
    talk = await sent(server.client, "POST", "/api/conversations", {"project": "mine", "title": "Kept"}, 201)
    await sent(server.client, "DELETE", "/api/projects/default", None, 409)
    removed = await sent(server.client, "DELETE", f"/api/projects/{made['id']}", None, 200)
    assert removed == {"removed": made, "conversations": 1}
    await sent(server.client, "DELETE", f"/api/projects/{made['id']}", None, 404)
    kept = await got(server.client, f"/api/conversations/{talk['id']}")
    assert (kept["project"], kept["title"]) == ("default", "Kept")


async def test_a_projects_branch_is_read_without_running_git(server: LiveServer, directory: Path) -> None:
    made = await sent(server.client, "POST", "/api/projects", {"name": "mine", "root_path": str(directory)}, 201)
    path = f"/api/projects/{made['id']}/git"
    assert await got(server.client, path) == {"branch": None, "commit": None}
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C", str(directory)]
    subprocess.run([*run, "init", "-q", "-b", "trunk/one"], check=True)
    assert await got(server.client, path) == {"branch": "trunk/one", "commit": None}
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    commit = subprocess.run([*run, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert await got(server.client, path) == {"branch": "trunk/one", "commit": commit}
    subprocess.run([*run, "pack-refs", "--all"], check=True)
    assert (await got(server.client, path))["commit"] == commit
    subprocess.run([*run, "checkout", "-q", "--detach"], check=True)
    assert await got(server.client, path) == {"branch": None, "commit": commit}


async def test_worktrees_of_a_project_are_listed_compared_and_removed(server: LiveServer, directory: Path) -> None:
    made = await sent(server.client, "POST", "/api/projects", {"name": "mine", "root_path": str(directory)}, 201)
    path = f"/api/projects/{made['id']}/worktrees"
    assert (await got(server.client, path, 400))["code"] == "usage"
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C", str(directory)]
    (directory / "old.txt").write_text("old\n")
    for words in (["init", "-q"], ["add", "old.txt"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*run, *words], check=True)
    worktree = await create(str(directory), "parser")
    Path(worktree.path, "new.txt").write_text("new")
    Path(worktree.path, "old.txt").write_bytes(b"\xff\n")
    facts = {"name": "parser", "path": worktree.path, "branch": "moot/parser", "changes": 2, "commits": 0}
    assert (await got(server.client, path))["data"] == [facts]
    found = await got(server.client, f"{path}/parser/diff")
    assert found["diff"].endswith("-old\n+\ufffd\n")
    assert (found["cut"], found["untracked"]) == (False, ["new.txt"])
    assert (await got(server.client, f"{path}/other/diff", 404))["code"] == "not_found"
    working = await sent(server.client, "POST", "/api/conversations", {"directory": worktree.path}, 201)
    assert working["project"] == made["id"]
    assert (await sent(server.client, "DELETE", f"{path}/parser", None, 409))["code"] == "busy"
    assert await sent(server.client, "DELETE", f"{path}/parser?force=true", None, 200) == {"removed": facts, "branch_kept": False}
    await sent(server.client, "DELETE", f"{path}/parser", None, 404)


async def test_no_integer_is_an_internal_error(server: LiveServer) -> None:
    made = (await (await server.client.post("/api/conversations", json={})).json())["id"]
    paths = (
        "/api/stats?since=N",
        "/api/stats?until=N",
        "/api/stats/activity?from=N",
        "/api/stats/activity?to=N",
        "/api/edits?limit=N",
        "/api/conversations?limit=N",
        "/api/conversations/ID/raw?cursor=N",
        "/api/conversations/ID/messages?limit=N",
        "/api/search?q=x&limit=N",
        "/api/runs?cursor=rN",
    )
    for number in (2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63) - 1):
        for path in paths:
            async with server.client.get(path.replace("ID", made).replace("N", str(number))) as answer:
                assert answer.status in (200, 400, 422), (path, number)
        importing = await server.client.post("/api/imports", json={"path": str(server.directory), "since": number, "dry_run": True})
        assert importing.status in (202, 400), number
        assert (await server.client.post("/api/tokens", json={"name": "x", "expires_in": number})).status in (201, 422), number


def write(server: LiveServer, sql: str) -> None:
    with closing(connect(server.engine.settings.database, writing=True)) as connection:
        connection.execute(sql)


@contextmanager
def full_disk() -> Generator[None]:
    """Make writes to the database fail as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_everything_can_be_read_while_the_disk_is_full(server: LiveServer) -> None:
    made = (await began(server))["id"]
    submitted = await said(server, made, "hello")
    await ended(server, submitted)
    write(server, "UPDATE run SET status = 'running', owner = 'dead'")  # as if its process had died
    with full_disk():
        for path in (
            "/api/conversations",
            f"/api/conversations/{made}",
            f"/api/conversations/{made}/messages",
            f"/api/conversations/{made}/tree",
            f"/api/conversations/{made}/export?format=json",
            "/api/runs",
            f"/api/runs/{submitted['run']['id']}",
            "/api/search?q=hello",
            "/api/stats",
            "/api/stats/activity",
            "/api/stats/windows",
            "/api/edits",
            "/api/projects",
            "/api/approvals",
        ):
            async with server.client.get(path) as answer:
                assert answer.status == 200, (path, await answer.text())
        async with server.client.get("/readyz") as answer:
            assert (answer.status, (await answer.json(content_type=None))["code"]) == (503, "store_full")
        assert (await server.client.post("/api/conversations", json={})).status == 507
    assert (await server.client.get("/readyz")).status == 200
    assert (await got(server.client, "/api/runs"))["data"][0]["status"] == "interrupted"
    write(server, "UPDATE run SET status = 'finished', owner = NULL")
    write(server, "UPDATE message SET status = 'finished'")
