"""Settings of a conversation: checked, merged, guarded by scope, and in force for every prompt that doesn't set its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import Json, began, called, ended, got, said, sent
from moot.commands import CommandContext
from moot.commands.settings import ModeCommand
from moot.config.settings import Models
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.anyio


REFUSED: list[Json] = [
    {"mode": "nonsense"},
    {"mode": ["auto"]},
    {"model": "nothing@nowhere"},
    {"effort": "extreme"},
    {"detail": "fine"},
    {"agent": "nobody"},
    {"tools": "shell"},
    {"tools": ["no_such_tool"]},
    {"tools": [1]},
    {"allowed_uris": ["relative"]},
    {"allowed_uris": ["/no/such/folder"]},
    {"network": "yes"},
    {"web_search": "on"},
    {"grants": []},
    {"grants": [{"tool": "shell", "match": "*"}]},
    {"colour": "red"},
]


async def test_an_unknown_setting_or_value_is_refused_and_changes_nothing(server: LiveServer) -> None:
    path = f"/api/conversations/{(await began(server, title='Plans'))['id']}"
    for settings in REFUSED:
        async with server.client.patch(path, json={"title": "Changed", "settings": {"effort": "low", **settings}}) as answer:
            assert answer.status in (400, 404, 422), (settings, await answer.text())
    after = await got(server.client, path)
    assert (after["title"], after["settings"], after["grants"]) == ("Plans", {}, [])


async def test_slash_commands_store_settings_in_the_conversation(server: LiveServer) -> None:
    id = (await began(server))["id"]
    for name, argument in (("mode", "plan"), ("effort", "low"), ("detail", "high"), ("tools", "none"), ("web", "off")):
        await sent(server.client, "POST", f"/api/commands/{name}", {"conversation": id, "argument": argument})
    assert (await got(server.client, f"/api/conversations/{id}"))["settings"] == {
        "mode": "plan",
        "effort": "low",
        "detail": "high",
        "tools": [],
        "web_search": False,
    }
    problem = await sent(server.client, "POST", "/api/commands/web", {"conversation": id, "argument": "on"}, 400)
    assert problem["detail"] == "No search engine is set up."
    await sent(server.client, "POST", "/api/commands/web", {"conversation": id, "argument": "default"})
    assert "web_search" not in (await got(server.client, f"/api/conversations/{id}"))["settings"]
    context = CommandContext(server.engine, str(server.directory))
    await ModeCommand().run(context, "edits")  # before the conversation exists
    context.conversation = id
    await context.store_settings({})
    assert (await got(server.client, f"/api/conversations/{id}"))["settings"]["mode"] == "edits"
    assert context.unstored == {}


async def test_changes_are_merged_and_null_removes(server: LiveServer, tmp_path: Path) -> None:
    made = await began(server)
    path = f"/api/conversations/{made['id']}"
    # as stored by another version
    await server.engine.store.conversations.update(made["id"], settings={"newer": 1, "effort": "extreme"})
    assert (await got(server.client, path))["settings"] == {}

    async def changed(settings: Json) -> Json:
        return (await sent(server.client, "PATCH", path, {"settings": settings}))["settings"]

    assert await changed({"mode": "plan", "network": True, "tools": []}) == {"mode": "plan", "network": True, "tools": []}
    assert await changed({"mode": "edits", "network": None}) == {"mode": "edits", "tools": []}
    assert await changed({"allowed_uris": [str(tmp_path)], "model": "scripted@mine", "tools": None}) == {
        "mode": "edits",
        "allowed_uris": [str(tmp_path)],
        "model": "scripted@mine",
    }
    stored = await server.engine.store.conversations.get(made["id"])
    assert (stored.allowed_uris, stored.model, stored.settings["newer"]) == ((str(tmp_path),), "scripted@mine", 1)
    assert await changed({"mode": None, "allowed_uris": None, "model": None}) == {}


async def test_only_a_caller_with_the_scope_tools_may_allow_more(server: LiveServer, tmp_path: Path) -> None:
    made = await began(server)
    path = f"/api/conversations/{made['id']}"
    (tmp_path / "within").mkdir()
    async with server.caller(scopes=["chat"]) as chatter:
        for wider in ({"network": True}, {"allowed_uris": ["/"]}, {"allowed_uris": [f"{made['directory']}/../.."]}):
            await sent(chatter, "PATCH", path, {"settings": wider}, 403)
        narrow = {"mode": "plan", "tools": ["read_file", "shell"], "effort": "low"}
        await sent(chatter, "PATCH", path, {"settings": narrow})
        await sent(chatter, "PATCH", path, {"settings": {"tools": ["read_file"]}})
        for wider in ({"mode": "ask"}, {"mode": None}, {"tools": ["shell"]}, {"tools": None}):
            await sent(chatter, "PATCH", path, {"settings": wider}, 403)
    await sent(server.client, "PATCH", path, {"settings": {"mode": "auto", "tools": None, "allowed_uris": [str(tmp_path)]}})
    async with server.caller(scopes=["chat"]) as chatter:
        await sent(chatter, "PATCH", path, {"settings": {"mode": "edits", "allowed_uris": [str(tmp_path / "within")]}})


async def test_the_detail_of_an_image_comes_from_its_part_or_the_settings(server: LiveServer) -> None:
    made = await began(server)
    path = f"/api/conversations/{made['id']}"
    await sent(server.client, "PATCH", path, {"settings": {"detail": "low"}})
    image = {"type": "file", "mediaType": "image/png", "url": "https://example.com/a.png"}
    body = {"parts": [image, {**image, "detail": "high"}, {"type": "text", "text": "hi"}], "client_id": "one"}
    run = (await sent(server.client, "POST", f"{path}/messages", body, status=202))["run"]
    again = (await sent(server.client, "POST", f"{path}/messages", body, status=202))["run"]
    assert again["id"] == run["id"]
    [prompt, *_] = (await got(server.client, f"{path}/messages"))["data"]
    assert [part.get("detail") for part in prompt["parts"]] == ["low", "high", None]
    async with server.client.post(f"{path}/messages", json={"parts": [{**image, "detail": "fine"}]}) as answer:
        assert answer.status == 422 and "auto, low, high" in await answer.text()


async def test_settings_apply_to_every_prompt_that_does_not_set_its_own(open_server: Callable[..., Any]) -> None:
    script = [
        Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})]),
        Reply(text="Done."),
        Reply(text="Again."),
        Reply(text="Planned."),
    ]
    async with open_server(script, mode="ask", models=Models(main="gpt-5@mine")) as server:
        made = await began(server)
        path = f"/api/conversations/{made['id']}"
        await sent(server.client, "PATCH", path, {"settings": {"mode": "auto", "tools": ["shell"], "effort": "high"}})

        efforts: list[Any] = []

        async def ask(**more: Any) -> Json:
            run = await ended(server, await said(server, made["id"], "go", **more))
            assert run["status"] == "finished"
            body = server.model.requests[-1].json
            efforts.append(body["reasoning_effort"])
            return body

        body = await ask()
        assert (server.directory / "made").exists()
        assert [tool["function"]["name"] for tool in body["tools"]] == ["shell"]
        await sent(server.client, "PATCH", path, {"settings": {"tools": []}})
        assert "tools" not in await ask()
        planned = await ask(mode="plan", effort="low")
        assert "plan mode" in str(planned["messages"][0])
        assert efforts == ["high", "high", "low"]


async def test_changed_settings_apply_from_the_next_step_of_a_running_answer_and_to_queued_prompts(open_server: Callable[..., Any]) -> None:
    script = [
        Reply(tool_calls=[ToolCall("shell", {"command": "true"})], hang_at=0),
        Reply(text="Done."),
        Reply(text="Queued."),
        Reply(text="Own."),
    ]
    async with open_server(script, models=Models(main="gpt-5@mine")) as server:
        made = await began(server)
        path = f"/api/conversations/{made['id']}"
        await sent(server.client, "PATCH", path, {"settings": {"effort": "high", "tools": ["shell", "read_file"]}})
        prompts = [await said(server, made["id"], "go")]
        await called(server)
        prompts += [await said(server, made["id"], "next", on_busy="queue", **more) for more in ({}, {"effort": "high"})]
        await sent(server.client, "PATCH", path, {"settings": {"effort": "low", "tools": ["read_file"]}})
        server.model.release()
        assert [(await ended(server, prompt))["status"] for prompt in prompts] == ["finished"] * 3
        used = [
            (request.json["reasoning_effort"], [tool["function"]["name"] for tool in request.json["tools"]])
            for request in server.model.requests
        ]
        assert used == [("high", ["read_file", "shell"]), ("low", ["read_file"]), ("low", ["read_file"]), ("high", ["read_file"])]


async def test_the_model_of_the_last_run_is_shown_next_to_the_one_that_is_set(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="First."), Reply(text="Second.")]) as server:
        made = await began(server)
        path = f"/api/conversations/{made['id']}"
        assert made["last_model"] == ""

        async def models() -> tuple[Json, Json, Json]:
            shown = await got(server.client, path)
            return shown["settings"].get("model"), shown["model"], shown["last_model"]

        await ended(server, await said(server, made["id"], "go"))
        assert await models() == (None, "scripted@mine", "scripted@mine")
        await sent(server.client, "PATCH", path, {"settings": {"model": "newer@mine"}})
        assert await models() == ("newer@mine", "newer@mine", "scripted@mine")
        await ended(server, await said(server, made["id"], "go on"))
        assert await models() == ("newer@mine", "newer@mine", "newer@mine")
