"""Responses keep their fields: names, order, types, nulls and values, as recorded in `responses.json`.

After an intended change, record again with `RECORD=1 pytest tests/e2e/server/test_wire_shapes.py` and read the difference.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import Json, began, ended, got, said, sent
from moot.testing.script import Reply, ToolCall
from moot.types.limits import Budget
from search_engine import search_engine

pytestmark = pytest.mark.anyio

RECORDED = Path(__file__).parent / "responses.json"

CATALOGUES = ("agents", "models", "providers", "tools", "tools/shell", "commands", "channels", "formats", "exports", "config")
"""Resources whose values are texts and settings that change often: only their shape is recorded."""

TIMES = re.compile(
    r"(.*_)?at|now|since|(.*_)?seq|events|frames|ms|first_ms|timed_output|first|rate|seconds|pid|host|(.*_)?bytes(_.*)?|size"
)
BACKGROUND = {"search", "to_count"}
"""Tables that are filled in the background, so that the number of rows depends on the time."""
VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"[0-9a-f]{64}"), "<sha256>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "<day>"),
    (re.compile(r"^\d{4}-\d\d$"), "<month>"),
    (re.compile(r"^\d\d$"), "<hour>"),
    (re.compile(r"/share/[\w-]+"), "/share/<secret>"),
    (re.compile(r"call_\w+"), "<call>"),
)


def stable(value: Any, folder: str, name: str = "") -> Any:
    """Return the value without ids, times and places."""
    if isinstance(value, dict):
        return {stable(key, folder): stable(item, folder, key) for key, item in value.items()}
    if isinstance(value, list):
        return [stable(item, folder, name) for item in value]
    if value is not None and name in ("secret", "digest", "page", "next_cursor"):
        return type(value).__name__
    if value is not None and TIMES.fullmatch(name):
        return type(value).__name__
    if isinstance(value, str):
        value = value.replace(folder, "<folder>")
        for pattern, mark in VARYING:
            value = pattern.sub(mark, value)
    return value


def shape(value: Any) -> Any:
    """Return the value with the types of its leaves, and of each list only the different items."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json.loads(text) for text in dict.fromkeys(json.dumps(shape(item)) for item in value)]
    return type(value).__name__


def quoted(id: str) -> str:
    return id.replace("/", "%2F").replace("#", "%23")


def script(recorded: Any) -> Reply:
    if "hang" in recorded.user_text:
        return Reply(text="never ends", hang_at=3)
    if any(message["role"] == "tool" for message in recorded.json["messages"]) or "write" not in recorded.user_text:
        return Reply(text="A quince.", reasoning="It is a fruit.")
    return Reply(tool_calls=[ToolCall("shell", {"command": "touch a && cat b"}, id="call_1")])


async def waiting_run(server: LiveServer, conversation: str) -> tuple[Json, str]:
    """Return a submitted prompt and the path of its open approval."""
    submitted = await said(server, conversation, "write it")
    assert (await ended(server, submitted))["status"] == "waiting"
    (approval,) = (await got(server.client, "/api/approvals", conversation=conversation))["data"]
    return submitted, f"/api/approvals/{quoted(approval['id'])}"


async def conversations(server: LiveServer) -> dict[str, Any]:
    """Return the responses of routes below `/api/conversations` and of runs and approvals."""
    client, found = server.client, dict[str, Any]()
    made = found["conversation created"] = await began(server, title="fruit", client_id="mine-1")
    path = f"/api/conversations/{made['id']}"
    first = found["prompt"] = await said(server, made["id"], "a quince?", client_id="prompt-1")
    found["run"] = await ended(server, first)
    submitted, at = await waiting_run(server, made["id"])
    found["approval open"] = await got(client, at)
    found["approval answered"] = await sent(client, "POST", at, {"approved": True, "option": "conversation", "reason": "why not"})
    await ended(server, submitted)
    found["approvals used"] = await got(client, "/api/approvals", open="false", run=submitted["run"]["id"])
    found["conversation"] = await got(client, path)
    found["conversations"] = await got(client, "/api/conversations")
    found["messages"] = await got(client, f"{path}/messages")
    found["tree"] = await got(client, f"{path}/tree")
    raw = await got(client, f"{path}/raw", limit=200)
    found["raw"] = {"fields": sorted({" ".join(event) for event in raw["data"]}), "next_cursor": raw["next_cursor"]}
    forked = found["fork"] = await sent(client, "POST", f"{path}/fork", {"message": first["run"]["message"]}, 201)
    found["continue"] = await sent(client, "POST", f"{path}/continue", {})
    found["head"] = await sent(client, "POST", f"{path}/head", {"message": first["run"]["message"]})
    found["compare"] = await got(client, f"/api/conversations/{forked['id']}/compare")
    found["permissions"] = await got(client, "/api/permissions", conversation=made["id"])
    found["search"] = await got(client, "/api/search", q="quince", limit=2)
    found["stats"] = await got(client, "/api/stats", conversation=made["id"])
    found["stats by month"] = await got(client, "/api/stats", by="month", tz="Asia/Kolkata")
    found["activity"] = await got(client, "/api/stats/activity")
    found["windows"] = await got(client, "/api/stats/windows")
    found["edits"] = await got(client, "/api/edits")
    runtime = server.engine.runtime
    runtime.settings = replace(runtime.settings, budgets=(Budget("daily", "day", tokens=10_000_000),))
    found["budgets"] = await got(client, "/api/stats/budgets")
    runtime.settings = replace(runtime.settings, budgets=())
    found["store"] = await got(client, "/api/store")
    hanging = await said(server, forked["id"], "hang")
    await said(server, forked["id"], "later", on_busy="queue")
    found["queue"] = await got(client, f"/api/conversations/{forked['id']}/queue")
    found["runs"] = await got(client, "/api/runs", conversation=forked["id"])
    found["queue removed"] = await sent(client, "DELETE", f"/api/conversations/{forked['id']}/queue/{found['queue']['data'][0]['id']}")
    await sent(client, "POST", f"/api/runs/{hanging['run']['id']}/cancel", status=202)
    found["run cancelled"] = await ended(server, hanging)
    found["conversation deleted"] = await sent(client, "DELETE", f"/api/conversations/{forked['id']}")
    purged = found["conversation purged"] = await sent(client, "DELETE", f"/api/conversations/{forked['id']}?purge=true")
    purged["rows"] = {table: rows for table, rows in purged["rows"].items() if table not in BACKGROUND}
    return found


async def resources(server: LiveServer, conversation: str) -> dict[str, Any]:
    """Return the responses of all other routes with models of their own."""
    client, found = server.client, dict[str, Any]()
    token = found["token created"] = await sent(client, "POST", "/api/tokens", {"name": "one", "scopes": ["tools"], "expires_in": 60}, 201)
    found["token revoked"] = await sent(client, "DELETE", f"/api/tokens/{token['id']}")
    found["tokens"] = await got(client, "/api/tokens", revoked="true")
    found["session"] = await got(client, "/api/session")
    project = {"name": "orchard", "description": "d", "root_path": str(server.directory), "context": "c", "rules": "r"}
    made = found["project created"] = await sent(client, "POST", "/api/projects", project, 201)
    found["projects"] = await got(client, "/api/projects")
    found["project files"] = await got(client, f"/api/projects/{made['id']}/files")
    found["project git"] = await got(client, f"/api/projects/{made['id']}/git")
    share = {"conversation": conversation, "expires_in": 3600}
    found["share preview"] = await sent(client, "POST", "/api/shares/preview", share)
    shared = found["share created"] = await sent(client, "POST", "/api/shares", share, 201)
    found["shares"] = await got(client, "/api/shares")
    found["share revoked"] = await sent(client, "DELETE", f"/api/shares/{shared['id']}")
    async with client.post("/api/blobs", data=b"bytes", headers={"content-type": "text/plain"}) as answer:
        found["blob"] = await answer.json()
    async with client.post("/api/imports", params={"name": "talk.json"}, data=b'[{"role": "user", "content": "words"}]') as answer:
        asked = await answer.json()
    with anyio.fail_after(60):
        while (found_import := await got(client, f"/api/imports/{asked['id']}"))["state"] not in ("finished", "failed"):
            await anyio.sleep(0.02)
    found["import"] = found_import
    found["imports"] = await got(client, "/api/imports")
    found["import watch"] = await got(client, "/api/imports/watch")
    found["command"] = await sent(client, "POST", "/api/commands/model", {"conversation": conversation, "wishes": {"mode": "plan"}})
    found["provider tested"] = await sent(client, "POST", "/api/providers/mine/test", {"model": "scripted"})
    for name in CATALOGUES:
        found[name] = shape(await got(client, f"/api/{name}"))
    rule = {"tool": "shell", "action": "allow", "match": "git status*"}
    found["rule added"] = await sent(client, "POST", "/api/permissions/rules", rule, 201)
    call = {"tool": "shell", "subject": "git status && rm x", "mode": "ask"}
    found["permission tested"] = await sent(client, "POST", "/api/permissions/test", call)
    with search_engine() as engine:
        engine.answer = {"results": [{"title": "The weather", "url": "https://weather.example/", "content": "Rain"}]}
        body = {"provider": "searxng", "base_url": engine.url, "api_key": "key-0123456789"}
        found["search engine tested"] = await sent(client, "PUT", "/api/web-search", body)
        found["search engine"] = await got(client, "/api/web-search")
        async with client.delete("/api/web-search") as answer:
            assert answer.status == 204
    return found


async def test_responses_are_unchanged(open_server: Callable[..., Any], tmp_path: Path, directory: Path) -> None:
    (directory / "b").write_text("text\n")
    async with open_server(script, mode="ask") as server:
        found = await conversations(server)
        found |= await resources(server, found["conversation"]["id"])
    text = json.dumps({name: stable(value, str(tmp_path)) for name, value in found.items()}, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("RECORD"):
        RECORDED.write_text(text, encoding="utf-8")
    assert text == RECORDED.read_text(encoding="utf-8")
