from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.agent_runs import NO, YES, Driven, calls, driven, texts
from agents.mcp_server import KEY
from agents.models import Call, Script, ScriptedModels, Step
from agents.programs import claude, claude_environment, codex, codex_environment
from moot.testing._frames import frames
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.agent import Agent, McpServer
from moot.types.approval import Answer, Approval

pytestmark = pytest.mark.anyio

ARGUMENTS = {"door": "The left door"}
SCRIPT: Script = {
    "open it": [Step(text="I open it.", calls=[Call("mcp__vault__open_vault", ARGUMENTS)]), Step(text="Done.")],
    "say hello": [Step(text="Hello there.")],
}
VAULT = McpServer("vault", sys.executable, (str(Path(__file__).with_name("mcp_server.py")),), {"VAULT_KEY": KEY})
MISSING = McpServer("gone", "/nowhere/at-all", ())


@pytest.fixture(scope="module")
def models(serve_models: Callable[[Script], ScriptedModels]) -> ScriptedModels:
    return serve_models(SCRIPT)


def said_to_codex(recorded: Recorded) -> Reply:
    """Models call the tools of a server in a namespace, which the scripted models of the other tests don't know."""
    if "open it" not in recorded.user_text:
        return Reply(text="Hello there.")
    if any(item.get("type") == "function_call_output" for item in recorded.json["input"]):
        return Reply(text="Done.")
    call = Reply(text="I open it.", tool_calls=[ToolCall("open_vault", ARGUMENTS)])
    body = b"".join(frames(call, "openai-responses", "scripted", map(str, itertools.count(1))))
    name = b'"name":"open_vault"'
    assert name in body
    return Reply(raw=body.replace(name, b'"namespace":"mcp__vault",' + name), content_type="text/event-stream")


@pytest.fixture(params=["claude-code", "codex"])
def stage(request: pytest.FixtureRequest, models: ScriptedModels, tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(*servers: McpServer, **agent: Any) -> AsyncGenerator[Driven, None]:
        async with ScriptedServer(said_to_codex) as codex_models:
            if request.param == "codex":
                environment = codex_environment(codex_models.url.removesuffix("/v1"), tmp_path, tmp_path / "work")
                options: dict[str, Any] = {"command": [codex()], "sandbox": "danger-full-access"}
            else:
                environment, options = claude_environment(models.url), {"command": [claude()]}
            options["env"] = {name: value for name, value in {**environment, "HOME": str(tmp_path)}.items() if name != "PATH"}
            agents = {"it": Agent("it", agent_type=request.param, model="", options=options, **agent)}
            mcp = {server.name: server for server in servers}
            async with driven(tmp_path / "moot", tmp_path / "work", agents, mcp=mcp) as stage:
                yield stage

    return opened


async def test_an_agent_uses_a_configured_server_and_its_key_is_stored_nowhere(stage: Callable[..., Any], tmp_path: Path) -> None:
    asked: list[Approval] = []

    def answer(approval: Approval) -> Answer:
        asked.append(approval)
        return YES

    async with stage(VAULT) as on:
        run, message = await on.ask("open it", answer, agent="it")
        assert run.status == "finished", run.error
        (call,) = calls(message)
        assert call["state"] == "output-available" and "The left door is open" in json.dumps(call["output"])
        assert texts(message).endswith("Done.") and len(asked) == 1
        told = b"".join(await on.raw(run, sent=True))
        assert b"VAULT_KEY" in told and KEY.encode() not in told and b"[secret]" in told
    files = [path for path in (tmp_path / "moot").rglob("*") if path.is_file()]
    assert files and not [path for path in files if KEY.encode() in path.read_bytes()]


async def test_a_denied_call_never_reaches_the_server(stage: Callable[..., Any]) -> None:
    async with stage(VAULT) as on:
        _, message = await on.ask("open it", NO, agent="it")
        (call,) = calls(message)
        assert call["state"] != "output-available" and "The left door is open" not in json.dumps(call)


async def test_an_agent_without_servers_gets_none(stage: Callable[..., Any]) -> None:
    async with stage(VAULT, mcp=()) as on:
        _, message = await on.ask("open it", NO, agent="it")
        assert "is open" not in json.dumps(message.parts) and not [part for part in message.parts if part["type"] == "data-note"]


async def test_a_missing_server_is_reported_and_the_run_continues(stage: Callable[..., Any]) -> None:
    async with stage(MISSING) as on:
        run, message = await on.ask("say hello", agent="it")
        assert run.status == "finished" and texts(message) == "Hello there."
        (note,) = [part for part in message.parts if part["type"] == "data-note"]
        assert "'gone'" in str(note["data"])
