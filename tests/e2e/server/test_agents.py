"""Agents over HTTP: the catalogue of a folder, and the files of the home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from moot.config.trust import trust_file
from moot.types.agent import Agent, PromptSettings

pytestmark = pytest.mark.anyio


async def told(answer: Any, status: int = 200) -> Any:
    assert answer.status == status, await answer.text()
    return await answer.json()


async def test_an_agent_is_created_changed_copied_and_deleted(server: LiveServer) -> None:
    call = server.client
    fields = {"description": "Tests", "instructions": "Write tests.", "tools": ["read_file"], "temperature": 0.5}
    made = await told(await call.post("/api/agents", json={"name": "tester", **fields}), 201)
    assert (made["source"], made["tools"], made["origin"].endswith("/agents/tester.md")) == ("home", ["read_file"], True)
    Path(made["origin"]).write_text(Path(made["origin"]).read_text().replace("description:", "# mine\ndescription:"))
    changed = await told(await call.patch("/api/agents/tester", json={"tools": None, "instructions": "Write more tests."}))
    assert (changed["tools"], changed["instructions"], changed["temperature"]) == (None, "Write more tests.", 0.5)
    assert "# mine" in Path(made["origin"]).read_text()
    copy = await told(await call.post("/api/agents", json={"name": "second", "copy_of": "explorer", "model": "small"}), 201)
    assert (copy["forked_from"], copy["role"], copy["model"]) == ("explorer", "read", "small")
    listed = {item["name"]: item["source"] for item in (await told(await call.get("/api/agents?limit=200")))["data"]}
    assert (listed["second"], listed["explorer"]) == ("home", "built-in")
    assert (changed["effective_model"], copy["effective_model"]) == ("", "")  # no model is configured
    assert (await told(await call.patch("/api/agents/second", json={"model": "gpt-5@openai"})))["effective_model"] == "gpt-5@openai"
    assert (await call.delete("/api/agents/tester")).status == 204
    assert (await call.get("/api/agents/tester")).status == 404 and not Path(made["origin"]).exists()


async def test_mistakes_are_reported_at_the_field_and_write_nothing(server: LiveServer) -> None:
    call = server.client
    wrong = await told(await call.post("/api/agents", json={"name": "bad", "tools": ["read_fil"], "temperature": 9}), 422)
    assert wrong["errors"][0]["at"] == "agents.bad.temperature" and "less than or equal to 2" in wrong["errors"][0]["message"]
    wrong = await told(await call.post("/api/agents", json={"name": "bad", "tools": ["read_fil"], "role": "read"}), 422)
    assert wrong["errors"][0]["at"] == "agents.bad.tools.0" and "Did you mean 'read_file'" in wrong["errors"][0]["message"]
    assert (await call.get("/api/agents/bad")).status == 404
    assert (await call.post("/api/agents", json={"name": "../bad"})).status == 400
    assert (await call.patch("/api/agents/default", json={"model": "small"})).status == 400
    assert (await call.delete("/api/agents/explorer")).status == 400
    assert (await call.delete("/api/agents/nobody")).status == 404


async def test_changing_agents_requires_the_scope_machine(server: LiveServer) -> None:
    async with server.caller(scopes=["tools"]) as caller:
        assert (await caller.post("/api/agents", json={"name": "x"})).status == 403
        assert (await caller.patch("/api/agents/x", json={})).status == 403
        assert (await caller.delete("/api/agents/x")).status == 403
        assert (await caller.get("/api/agents/explorer/prompt")).status == 200


async def test_agents_and_prompts_are_those_of_the_conversations_folder(server: LiveServer) -> None:
    file = server.directory / ".moot" / "agents" / "mine.md"
    file.parent.mkdir(parents=True)
    file.write_text("You are mine.")
    (server.directory / "AGENTS.md").write_text("Use tabs.")
    trust_file(server.engine.settings.home, file, "You are mine.")
    made = await told(await server.client.post("/api/conversations", json={"directory": str(server.directory), "agent": "mine"}), 201)
    place = {"conversation": made["id"]}
    listed = (await told(await server.client.get("/api/agents", params={**place, "limit": "200"})))["data"]
    assert [item["source"] for item in listed if item["name"] == "mine"] == ["project"]
    parts = (await told(await server.client.get("/api/agents/mine/prompt", params=place)))["data"]
    assert {part["name"] for part in parts} >= {"instructions", "agents_md", "environment", "tools"} and "Use tabs." in str(parts)


async def test_two_editors_do_not_overwrite_each_other(server: LiveServer) -> None:
    call = server.client
    await told(await call.post("/api/agents", json={"name": "tester", "instructions": "One.", "description": "x"}), 201)
    first = (await call.get("/api/agents/tester")).headers["etag"]
    changed = await call.patch("/api/agents/tester", json={"instructions": "Two."}, headers={"if-match": first})
    assert changed.status == 200 and changed.headers["etag"] == (await call.get("/api/agents/tester")).headers["etag"] != first
    late = await call.patch("/api/agents/tester", json={"instructions": "Three."}, headers={"if-match": first})
    problem = await told(late, 412)
    assert "has changed since you read it" in problem["detail"] and problem["fix"]
    assert (await call.delete("/api/agents/tester", headers={"if-match": first})).status == 412
    path = Path((await told(await call.get("/api/agents/tester")))["origin"])
    path.write_text(path.read_text() + "\nBy another program.\n")  # that the server has not loaded yet
    assert (await call.patch("/api/agents/tester", json={}, headers={"if-match": changed.headers["etag"]})).status == 412
    assert "By another program." in path.read_text() and "Three." not in path.read_text()


async def test_the_preview_is_the_prompt_that_is_sent(open_server: Callable[..., Any], directory: Path) -> None:
    (directory / "sub").mkdir()
    (directory / "AGENTS.md").write_text("Use tabs.")
    agents = {
        "default": Agent(),
        "mine": Agent("mine", instructions="You are {{team}}.", prompt=PromptSettings(variables={"team": "core"})),
    }
    async with open_server(agents=agents) as server:
        call, folder = server.client, str(directory / "sub")
        root = {"name": "shop", "root_path": str(directory), "context": "It sells lamps.", "rules": "Never touch prices."}
        await told(await call.post("/api/projects", json=root), 201)
        first = await told(await call.post("/api/conversations", json={"directory": folder, "agent": "mine"}), 201)
        for settings in ({}, {"mode": "plan"}, {"mode": None, "tools": ["read_file"]}):
            id = first["id"]
            if settings:
                await told(await call.patch(f"/api/conversations/{id}", json={"settings": settings}))
            places = [{"conversation": id}, *([] if settings else [{"directory": folder}])]
            shown = [(await told(await call.get("/api/agents/mine/prompt", params=place)))["data"] for place in places]
            context = await told(await call.get(f"/api/conversations/{id}/context?request=true&prompt=hi"))
            submitted = await told(await call.post(f"/api/conversations/{id}/messages", json={"text": "hi"}), 202)
            await server.engine.runs.wait(submitted["run"]["id"])
            sent = server.model.requests[-1].json
            system = sent["messages"][0]["content"]
            for parts in (*shown, shown[0]):
                assert "\n\n".join(part["text"] for part in parts if part["name"] != "tools") == system
                offered = [tool["function"]["name"] for tool in sent.get("tools", ())]
                assert next(part["text"] for part in parts if part["name"] == "tools") == ", ".join(offered)
            assert context["request"]["messages"][0]["content"] == system
            assert system.count("It sells lamps.") == system.count("Never touch prices.") == 1
            assert "You are core." in system and ("plan mode" in system) == (settings.get("mode") == "plan")
