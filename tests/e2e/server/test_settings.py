"""Agents, models, providers, tools, configuration, permissions and commands over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from moot.agents.known import known_agents, presence_of
from moot.cli.app import main
from moot.config.agents.builtin import BUILT_IN
from moot.testing.script import Reply
from moot.types.agent import Agent
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

READ = [
    "/api/agents", "/api/agents/default", "/api/models", "/api/providers", "/api/tools", "/api/tools/shell", "/api/commands",
    "/api/channels", "/api/formats",
]  # fmt: skip
CLOSED = [
    ("GET", "/api/config"), ("PATCH", "/api/config"), ("GET", "/api/permissions"), ("PUT", "/api/permissions/mode"),
    ("POST", "/api/permissions/rules"), ("DELETE", "/api/permissions/rules?tool=a&match=b"), ("POST", "/api/providers/mine/test"),
]  # fmt: skip


async def told(answer: Any) -> Any:
    assert answer.status < 300, await answer.text()
    return await answer.json()


async def test_the_scope_read_shows_settings_and_agents(server: LiveServer) -> None:
    async with server.caller(scopes=["read"]) as reader:
        for path in READ:
            assert await told(await reader.get(path)), path
        tool = await told(await reader.get("/api/tools/shell"))
        assert tool["schema"]["properties"]["command"] and tool["effects"] == ["execute"]
        assert (await reader.get("/api/agents/nobody")).status == 404
        assert (await reader.get("/api/tools/nothing")).status == 404


async def test_only_an_admin_changes_settings(server: LiveServer) -> None:
    async with server.caller(scopes=["tools"]) as caller:
        for method, path in CLOSED:
            answer = await caller.request(method, path, json={})
            assert answer.status == 403, f"{method} {path}"


async def test_lists_are_paginated(server: LiveServer) -> None:
    first = await told(await server.client.get("/api/tools?limit=2"))
    second = await told(await server.client.get(f"/api/tools?limit=200&cursor={first['next_cursor']}"))
    whole = await told(await server.client.get("/api/tools?limit=200"))
    assert first["data"] + second["data"] == whole["data"] and second["next_cursor"] is None
    assert (await server.client.get("/api/tools?cursor=nothing")).status == 400


async def test_a_provider_is_tested_with_a_short_prompt(server: LiveServer) -> None:
    tried = await told(await server.client.post("/api/providers/mine/test", json={"model": "scripted"}))
    assert tried["ok"] and tried["model"] == "scripted@mine" and tried["text"] == "Hello there."


async def test_a_provider_is_tested_then_saved_and_removed(server: LiveServer) -> None:
    at, key = "/api/providers/other", "key-with-${HOME}-0123"
    body = {"api_key": key, "base_url": server.model.openai_url, "model": "scripted", "main": True}
    tried = await told(await server.client.put(at, json=body))
    assert (tried["model"], tried["text"]) == ("scripted@other", "Hello there.")
    settings, file = server.engine.runtime.settings, server.engine.settings.home / "config.yaml"
    assert settings.providers["other"].api_key == key and settings.models.main == "scripted@other"
    assert file.stat().st_mode & 0o777 == 0o600
    assert server.model.requests[-1].headers["authorization"] == f"Bearer {key}"
    (listed,) = [one for one in (await told(await server.client.get("/api/providers?limit=200")))["data"] if one["name"] == "other"]
    assert str(file) in listed["key"] and listed["is_saved"] and not listed["is_built_in"]
    assert key not in await (await server.client.get("/api/config")).text()
    used = await server.client.delete(at)
    assert used.status == 409 and "scripted@other" in await used.text()
    await told(await server.client.patch("/api/config", json={"values": {"models.main": "scripted@mine"}}))
    assert (await server.client.delete(at)).status == 204 and "other" not in server.engine.runtime.settings.providers
    assert (await server.client.delete(at)).status == 404
    async with server.caller(scopes=["admin"]) as admin:
        assert (await admin.put(at, json=body)).status == (await admin.delete(at)).status == 403


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("nowhere", {"api_key": "key-0123456789", "model": "scripted"}, "base_url is required"),
        ("mine", {"api_key": "two words"}, "api_key"),
        ("a.b", {"api_key": "key-0123456789"}, "name"),
    ],
)
async def test_an_unusable_provider_is_not_saved(server: LiveServer, name: str, body: Any, problem: str) -> None:
    answer = await server.client.put(f"/api/providers/{name}", json=body)
    text = await answer.text()
    assert 400 <= answer.status < 500 and problem in text and body["api_key"] not in text
    assert not (server.engine.settings.home / "config.yaml").exists()


async def test_a_key_that_a_provider_refuses_is_not_saved(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(status=401, error="no access with wrong-key-0123456789", times=0)]) as server:
        body = {"api_key": "wrong-key-0123456789", "base_url": server.model.openai_url, "model": "scripted"}
        answer = await server.client.put("/api/providers/other", json=body)
        text = await answer.text()
        assert answer.status >= 400 and "no access with" in text and "wrong-key" not in text
        assert "other" not in server.engine.runtime.settings.providers
        assert not (server.engine.settings.home / "config.yaml").exists()


async def test_a_key_in_an_environment_variable_is_not_sent_to_a_new_address(open_server: Callable[..., Any]) -> None:
    key = "environment-key-0123456789"
    async with open_server(environ={"OPENAI_API_KEY": key}) as server:
        await told(await server.client.patch("/api/config", json={"values": {"limits.steps": 7}}))  # loads the variable
        assert server.engine.runtime.settings.providers["openai"].api_key == key
        body = {"base_url": server.model.openai_url, "dialect": "openai-chat", "model": "scripted"}
        await told(await server.client.put("/api/providers/openai", json=body))
        assert server.model.requests and all("authorization" not in request.headers for request in server.model.requests)


async def test_other_users_do_not_see_where_a_key_is_stored(server: LiveServer) -> None:
    body = {"api_key": "key-0123456789", "base_url": server.model.openai_url, "model": "scripted"}
    await told(await server.client.put("/api/providers/other", json=body))
    async with server.caller(scopes=["read"], owner="somebody") as reader:
        shown = (await told(await reader.get("/api/providers?limit=200")))["data"]
        assert {one["key"] for one in shown} == {""}


async def test_the_command_line_prints_the_same_lists(server: LiveServer, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("MOOT_HOME", str(server.engine.settings.home))
    monkeypatch.chdir(server.directory)
    for words, path in (("tools", "/api/tools"), ("agents", "/api/agents")):
        assert await anyio.to_thread.run_sync(main, [words, "list", "--json", "--limit", "200"]) == 0
        theirs = json.loads(capfd.readouterr().out)
        ours = await told(await server.client.get(f"{path}?limit=200"))
        for one, other in zip(theirs["data"], ours["data"], strict=True):
            assert {name: other[name] for name in one} == one


async def test_a_setting_is_written_and_applied_immediately(server: LiveServer) -> None:
    before = await server.client.get("/api/config")
    shown = await told(before)
    assert shown["error"] is None and shown["origin"].get("models.small") is None
    changed = await server.client.patch(
        "/api/config", json={"values": {"models.small": "scripted@mine", "limits.steps": 7}}, headers={"if-match": before.headers["etag"]}
    )
    after = await told(changed)
    assert after["generation"] == shown["generation"] + 1 and after["config"]["limits"]["steps"] == 7
    assert after["origin"]["models.small"].startswith("user ")
    assert server.engine.runtime.settings.limits.steps == 7
    assert (await server.client.get("/api/config", headers={"if-none-match": changed.headers["etag"]})).status == 304
    stale = await server.client.patch("/api/config", json={"values": {"limits.steps": 8}}, headers={"if-match": before.headers["etag"]})
    assert stale.status == 412 and server.engine.runtime.settings.limits.steps == 7


async def test_an_invalid_value_changes_nothing_and_the_error_names_its_key(server: LiveServer) -> None:
    answer = await server.client.patch("/api/config", json={"values": {"limits.steps": "many", "models.small": "x@y"}})
    problem = await answer.json(content_type="application/problem+json")
    assert answer.status == 422 and "limits.steps" in problem["detail"]
    assert (
        not (server.engine.settings.home / "config.yaml").exists()
        or "many" not in (server.engine.settings.home / "config.yaml").read_text()
    )
    assert server.engine.runtime.settings.models.small == ""


async def test_secrets_are_masked(server: LiveServer) -> None:
    await told(await server.client.patch("/api/config", json={"values": {"providers.openai.api_key": "sk-very-secret-0123"}}))
    shown = await (await server.client.get("/api/config")).text()
    assert "sk-very-secret-0123" not in shown and "•••" in shown


@pytest.mark.parametrize("values", [{"providers.mine.base_url": "http://evil.example"}, {"mcp.files.command": "sh"}, {"limits.steps": 3}])
async def test_the_configuration_is_set_with_the_scope_machine_only(server: LiveServer, values: Any) -> None:
    async with server.caller(scopes=["admin"], owner="local") as admin:
        answer = await admin.patch("/api/config", json={"values": values})  # over loopback and without headers of a proxy
        assert answer.status == 403 and "'machine'" in await answer.text()
    assert not (server.engine.settings.home / "config.yaml").exists()


async def test_rules_are_added_listed_evaluated_and_removed(server: LiveServer, directory: Path) -> None:
    rule = {"tool": "shell", "action": "allow", "match": "git status*"}
    added = await server.client.post("/api/permissions/rules", json=rule)
    assert added.status == 201
    listed = await told(await server.client.get("/api/permissions"))
    assert [(each["tool"], each["match"], each["kind"]) for each in listed["data"]] == [("shell", "git status*", "rule")]
    judged = await told(
        await server.client.post("/api/permissions/test", json={"tool": "shell", "subject": "git status -s", "mode": "ask"})
    )
    assert judged["action"] == "allow" and "config.yaml" in judged["origin"]
    for subject in (".git/config", ".envrc", str(server.engine.settings.home / "config.yaml")):
        call = {"tool": "write_file", "subject": subject, "mode": "edits"}
        assert (await told(await server.client.post("/api/permissions/test", json=call)))["action"] == "ask", subject
    assert (await told(await server.client.put("/api/permissions/mode", json={"mode": "plan"})))["mode"] == "plan"
    removed = await server.client.delete("/api/permissions/rules", params={"tool": "shell", "match": "git status*"})
    assert (await told(removed))["data"] == []
    assert (await server.client.delete("/api/permissions/rules", params={"tool": "shell", "match": "git status*"})).status == 404
    assert (await server.client.post("/api/permissions/rules", json={**rule, "tool": "nothing"})).status == 400


@pytest.mark.slow
async def test_a_changed_file_is_reloaded_and_an_invalid_one_is_ignored(server: LiveServer) -> None:
    file = server.engine.settings.home / "config.yaml"
    file.write_text("limits: {steps: 9}\n")
    await until(lambda: server.engine.runtime.settings.limits.steps == 9)
    file.write_text("limits:\n  steps: [\n")
    await until(lambda: server.state.configuration.error is not None)
    shown = await told(await server.client.get("/api/config"))
    assert shown["config"]["limits"]["steps"] == 9 and shown["error"]["line"] >= 2
    file.write_text("limits: {steps: 10}\n")
    await until(lambda: server.engine.runtime.settings.limits.steps == 10)
    assert (await told(await server.client.get("/api/config")))["error"] is None


async def test_commands_are_listed_and_run(open_server: Callable[..., Any]) -> None:
    async with open_server(agents={"default": Agent(), "helper": Agent("helper")}) as server, server.caller(scopes=["tools"]) as caller:
        listed = await told(await caller.get("/api/commands"))
        assert {"model", "fork", "title"} <= {command["name"] for command in listed["data"]}
        outside = [name for name, known in known_agents().items() if presence_of(known.agent()).ready]
        asked = await told(await caller.post("/api/commands/agent", json={}))
        assert [choice["value"] for choice in asked["replies"][0]["choices"]] == [*BUILT_IN, "helper", *outside]
        chosen = await told(await caller.post("/api/commands/agent", json={"argument": "helper", "wishes": {"mode": "plan"}}))
        assert chosen["wishes"] == {
            "agent": "helper",
            "model": None,
            "mode": "plan",
            "effort": None,
            "detail": None,
            "tools": None,
            "web_search": None,
        }
        made = await server.engine.store.conversations.create(Conversation(new_id(), title="before", directory=str(server.directory)))
        done = await told(await caller.post("/api/commands/title", json={"argument": "after", "conversation": made.id}))
        assert done["replies"][0]["kind"] == "say"
        assert (await server.engine.store.conversations.get(made.id)).title == "after"
        async with server.caller(scopes=["tools"], owner="mara") as mara:
            stolen = await mara.post("/api/commands/title", json={"argument": "mine", "conversation": made.id})
            assert stolen.status == 404
        assert (await caller.post("/api/commands/nothing", json={})).status == 404


async def test_copy_returns_the_text_to_copy(server: LiveServer) -> None:
    submitted = await server.engine.runs.submit(Prompt((text_part("hi"),), directory=str(server.directory)))
    await server.engine.runs.wait(submitted.run.id)
    done = await told(await server.client.post("/api/commands/copy", json={"conversation": submitted.conversation.id}))
    assert [(reply["kind"], reply["text"]) for reply in done["replies"]] == [("copy", "Hello there.")]


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not holds():
            await anyio.sleep(0.05)
