"""Users of a server other than the owner of its home: no folder of the machine by default, and no rights over the machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import Json, got, sent
from moot.agents.outside.options import double
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent

pytestmark = pytest.mark.anyio

SECRET = "the words of the owner"


def calls(name: str, arguments: Json) -> Callable[[Any], Reply]:
    def script(recorded: Any) -> Reply:
        tool = any(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(text="done") if tool else Reply(tool_calls=[ToolCall(name, arguments)])

    return script


@pytest.fixture
def owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the server was started, with a file of its owner."""
    folder = tmp_path / "owned"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    monkeypatch.chdir(folder)
    return folder


@asynccontextmanager
async def bob_of(server: LiveServer, *scopes: str) -> AsyncGenerator[aiohttp.ClientSession, None]:
    async with server.caller(scopes=list(scopes or ("tools",)), owner="bob") as bob:
        yield bob


async def outputs(server: LiveServer, bob: aiohttp.ClientSession, **conversation: Any) -> str:
    """Have the model make its call in a new conversation of bob. Return the output, as the model got it, or the error of the run."""
    made = await sent(bob, "POST", "/api/conversations", conversation, 201)
    submitted = await sent(bob, "POST", f"/api/conversations/{made['id']}/messages", {"text": "go"}, 202)
    await server.engine.runs.wait(submitted["run"]["id"])
    run = await got(bob, f"/api/runs/{submitted['run']['id']}")
    shown = await got(bob, f"/api/conversations/{made['id']}/messages")
    assert run["status"] in ("finished", "failed")
    return str([part for message in shown["data"] for part in message["parts"] if str(part["type"]).startswith("tool-")]) + str(
        run["error"]
    )


CALLS: dict[str, Json] = {
    "read_file": {"path": "secret.txt"},
    "list_files": {"path": "."},
    "search_files": {"pattern": "words"},
    "write_file": {"path": "theirs.txt", "content": "x"},
    "shell": {"command": "cat secret.txt; touch theirs.txt"},
}


@pytest.mark.parametrize("tool", CALLS)
async def test_another_user_has_no_files_and_no_shell(open_server: Callable[..., Any], owned: Path, tool: str) -> None:
    async with open_server(calls(tool, CALLS[tool])) as server, bob_of(server) as bob:
        found = await outputs(server, bob)
        assert SECRET not in found and "not found" in found and not (owned / "theirs.txt").exists()
        offered = {each["function"]["name"] for each in server.model.requests[0].json.get("tools", ())}
        assert offered and not offered & set(CALLS)
        assert str(owned) not in str(server.model.requests[0].json)


async def test_a_user_can_choose_no_folder_of_the_machine(open_server: Callable[..., Any], owned: Path) -> None:
    async with open_server() as server, bob_of(server, "admin") as bob:
        await sent(bob, "POST", "/api/conversations", {"directory": str(owned)}, 403)
        await sent(bob, "POST", "/api/projects", {"name": "p", "root_path": str(owned)}, 403)
        made = await sent(bob, "POST", "/api/projects", {"name": "p"}, 201)
        await sent(bob, "PATCH", f"/api/projects/{made['id']}", {"root_path": str(owned)}, 403)
        await sent(bob, "POST", "/api/projects?user=bob", {"name": "q", "root_path": str(owned)}, 403)
        text = {"id": "c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}], "directory": str(owned)}
        await sent(bob, "POST", "/api/chat", text, 403)


async def listed(client: aiohttp.ClientSession, route: str) -> list[str]:
    return [file["path"] for file in (await got(client, f"/api/{route}/files"))["data"]]


async def test_only_files_of_folders_that_a_user_has_are_listed(open_server: Callable[..., Any], owned: Path, directory: Path) -> None:
    (directory / "notes.txt").write_text("notes of bob")
    async with open_server() as server, bob_of(server) as bob, server.caller(scopes=["chat"]) as chatter:
        made = await sent(server.client, "POST", "/api/conversations", {}, 201)
        assert await listed(server.client, "projects/default") == ["secret.txt"]
        assert await listed(server.client, f"conversations/{made['id']}") == ["secret.txt"]
        assert await listed(chatter, "projects/default") == []
        made = await sent(bob, "POST", "/api/conversations", {}, 201)
        assert await listed(bob, "projects/default") == [] == await listed(bob, f"conversations/{made['id']}")
        await sent(server.client, "POST", "/api/projects?user=bob", {"name": "shop", "root_path": str(directory)}, 201)
        made = await sent(bob, "POST", "/api/conversations", {"project": "shop"}, 201)
        assert await listed(bob, "projects/shop") == ["notes.txt"] == await listed(bob, f"conversations/{made['id']}")


@pytest.mark.parametrize(("path", "reads"), [("notes.txt", True), ("../owned/secret.txt", False), ("link/secret.txt", False)])
async def test_a_user_gets_the_folder_of_an_assigned_project_and_nothing_else(
    open_server: Callable[..., Any], owned: Path, directory: Path, path: str, reads: bool
) -> None:
    (directory / "notes.txt").write_text("notes of bob")
    (directory / "link").symlink_to(owned)
    async with open_server(calls("read_file", {"path": path})) as server, bob_of(server) as bob:
        await sent(server.client, "POST", "/api/projects?user=nobody", {"name": "p"}, 404)
        body = {"name": "shop", "root_path": str(directory)}
        project = await sent(server.client, "POST", "/api/projects?user=bob", body, 201)
        found = await outputs(server, bob, project=project["id"])
        assert ("notes of bob" in found) is reads and SECRET not in found
        await sent(bob, "POST", "/api/conversations", {"directory": str(directory / "link")}, 403)
        await sent(bob, "POST", "/api/conversations", {"directory": str(directory)}, 201)
        await sent(server.client, "PATCH", f"/api/projects/{project['id']}?user=bob", {"root_path": ""})
        assert "notes of bob" not in await outputs(server, bob, project=project["id"])


async def test_a_link_made_later_does_not_widen_the_folder(open_server: Callable[..., Any], owned: Path, directory: Path) -> None:
    (directory / "sub").mkdir()
    async with open_server(calls("read_file", {"path": "secret.txt"})) as server, bob_of(server) as bob:
        await sent(server.client, "POST", "/api/projects?user=bob", {"name": "shop", "root_path": str(directory)}, 201)
        made = await sent(bob, "POST", "/api/conversations", {"directory": str(directory / "sub")}, 201)
        (directory / "sub").rmdir()
        (directory / "sub").symlink_to(owned)
        submitted = await sent(bob, "POST", f"/api/conversations/{made['id']}/messages", {"text": "go"}, 202)
        assert (await server.engine.runs.wait(submitted["run"]["id"])).status == "finished"
        assert SECRET not in str(await got(bob, f"/api/conversations/{made['id']}/messages"))


async def test_an_outside_agent_needs_a_folder(open_server: Callable[..., Any], owned: Path) -> None:
    agents = {"default": Agent(), "helper": Agent("helper", agent_type="acp", options=double("acp_agent.py", "echo"))}
    async with open_server(agents=agents) as server, bob_of(server) as bob:
        assert "you have no folder there" in await outputs(server, bob, agent="helper")


MACHINE: list[tuple[str, str, Any]] = [
    ("GET", "/api/config", None),
    ("PATCH", "/api/config", {"values": {"providers.mine.base_url": "http://127.0.0.1:1"}}),
    ("PUT", "/api/permissions/mode", {"mode": "auto"}),
    ("POST", "/api/permissions/rules", {"tool": "shell", "action": "allow"}),
    ("DELETE", "/api/permissions/rules?tool=shell&match=*", None),
    ("POST", "/api/imports", {"path": "/etc"}),
    ("POST", "/api/imports", {"all": True}),
    ("GET", "/api/imports/found", None),
    ("GET", "/api/imports/unread", None),
    ("GET", "/api/imports/watch", None),
    ("GET", "/api/projects?user=local", None),
    ("POST", "/api/tokens", {"name": "t", "user": "local"}),
    ("POST", "/api/tokens", {"name": "t", "scopes": ["machine"]}),
]


@pytest.mark.parametrize("owner", ["bob", "local"])
async def test_an_administrator_of_own_data_does_not_change_the_machine(open_server: Callable[..., Any], owner: str) -> None:
    async with open_server() as server, server.caller(scopes=["admin"], owner=owner) as admin:
        for method, path, body in MACHINE:
            refused = await sent(admin, method, path, body, 403)
            assert "machine" in refused["detail"] or "more permissions" in refused["detail"], path
        assert not (server.engine.settings.home / "config.yaml").exists()


async def test_tokens_of_other_users_are_invisible_and_the_scope_machine_can_not_be_granted(server: LiveServer) -> None:
    await sent(server.client, "POST", "/api/tokens", {"name": "t", "user": "bob", "scopes": ["machine"]}, 403)
    async with bob_of(server, "admin") as bob, server.caller(scopes=["chat"], name="the owner's") as _:
        assert [each["name"] for each in (await got(bob, "/api/tokens"))["data"]] == ["a test's"]
        (own,) = [each for each in (await got(server.client, "/api/tokens"))["data"] if each["name"] == "the owner's"]
        hidden = await sent(bob, "DELETE", f"/api/tokens/{own['id']}", status=404)
        missing = await sent(bob, "DELETE", "/api/tokens/ffffffff", status=404)
        assert {**hidden, "request_id": "", "detail": ""} == {**missing, "request_id": "", "detail": ""}
        made = await sent(bob, "POST", "/api/tokens", {"name": "mine", "scopes": ["admin"]}, 201)
        await sent(bob, "DELETE", f"/api/tokens/{made['id']}")
        await got(server.client, "/api/config")
    # also not by a row that says so
    async with server.caller(scopes=["machine"], owner="bob") as bob:
        assert (await got(bob, "/api/session"))["scopes"] == ["read", "chat", "tools", "admin"]
        await got(bob, "/api/config", 403)


@pytest.mark.slow
async def test_always_allowing_a_tool_changes_the_machine(open_server: Callable[..., Any], directory: Path) -> None:
    async with open_server(calls("shell", {"command": "touch it"}), mode="ask") as server, bob_of(server, "admin") as bob:
        await sent(server.client, "POST", "/api/projects?user=bob", {"name": "shop", "root_path": str(directory)}, 201)
        made = await sent(bob, "POST", "/api/conversations", {"directory": str(directory)}, 201)
        submitted = await sent(bob, "POST", f"/api/conversations/{made['id']}/messages", {"text": "go"}, 202)
        await server.engine.runs.wait(submitted["run"]["id"])
        (asked,) = (await got(bob, "/api/approvals"))["data"]
        path = f"/api/approvals/{asked['id']}"
        await sent(bob, "POST", path, {"approved": True, "option": "always"}, 403)
        await sent(bob, "POST", path, {"approved": True})
        await server.engine.runs.wait(submitted["run"]["id"])
        assert (directory / "it").exists()
