from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.agent_runs import calls, driven, texts
from agents.models import Call, Script, ScriptedModels, Step
from agents.programs import claude, claude_environment, codex, codex_environment
from e2e.cli_process import MootProcess
from moot.config.settings import Models
from moot.testing._server import Recorded
from moot.testing.script import Reply
from moot.testing.scripted import ScriptedServer
from moot.types.agent import Agent

pytestmark = pytest.mark.anyio

SCRIPT: Script = {
    "look what is here": [
        Step(reasoning="Let me look.", text="I look.", calls=[Call("Bash", {"command": "ls", "description": "look"})]),
        Step(text="There is a violet.txt."),
    ],
    "read it": [Step(text="I read it.", calls=[Call("exec_command", {"cmd": "cat violet.txt"})]), Step(text="It says indigo.")],
}


@pytest.fixture(scope="module")
def models(serve_models: Callable[[Script], ScriptedModels]) -> ScriptedModels:
    claude(), codex()
    return serve_models(SCRIPT)


async def test_one_conversation_uses_claude_code_then_codex_then_a_plain_model(models: ScriptedModels, tmp_path: Path) -> None:
    asked: list[Recorded] = []

    def plain(request: Recorded) -> Reply:
        asked.append(request)
        return Reply(text="Violet and indigo are neighbours.")

    work = tmp_path / "work"
    work.mkdir()
    (work / "violet.txt").write_text("indigo\n")
    home = {"HOME": str(tmp_path)}
    environments = {"claude-code": claude_environment(models.url), "codex": codex_environment(models.url, tmp_path, work)}
    agents = {
        name: Agent(
            name, agent_type=name, model="", options={"env": {**environment, **home}, **({"command": [codex()]} if name == "codex" else {})}
        )
        for name, environment in environments.items()
    }
    async with ScriptedServer(plain) as server:
        providers = {"mine": server.provider("mine", "anthropic")}
        async with driven(tmp_path / "moot", work, agents, mode="auto", providers=providers, models=Models(main="plain@mine")) as on:
            first, message = await on.ask("look what is here", agent="claude-code")
            assert (first.status, texts(message).endswith("There is a violet.txt.")) == ("finished", True), first.error
            second, message = await on.ask("read it", conversation=first.conversation, agent="codex")
            assert (second.status, texts(message).endswith("It says indigo.")) == ("finished", True), second.error
            assert second.agent_session_id not in (None, first.agent_session_id)
            third, message = await on.ask("and now?", conversation=first.conversation, agent="default")
            assert (third.status, texts(message)) == ("finished", "Violet and indigo are neighbours."), third.error
            back, message = await on.ask("look what is here", conversation=first.conversation, agent="claude-code")
            assert back.status == "finished" and back.agent_session_id == first.agent_session_id
            told = json.loads(next(line for line in await on.raw(back, sent=True) if b'"user"' in line))["message"]["content"]
            branch = await on.engine.store.conversations.branch(first.conversation)
    verified = MootProcess(tmp_path / "moot", work).run("verify", "--all")
    assert verified.returncode == 0, (verified.stdout, verified.stderr)
    # Codex got Claude Code's messages and actions
    request = json.dumps(models.asked()[2]["messages"])
    assert "look what is here" in request and "violet.txt" in request and "There is a violet.txt." in request
    # the plain model got both, with their calls and outputs
    sent = json.dumps(asked[0].json["messages"])
    for words in ("look what is here", "There is a violet.txt.", "read it", "It says indigo.", "and now?", "violet.txt"):
        assert words in sent, sent
    # and Claude Code got the messages its session had not seen
    assert "It says indigo." in told and "neighbours" in told and "There is a violet.txt." not in told
    assert [message.metadata.get("agent") for message in branch if message.role == "assistant"] == [
        "claude-code",
        "codex",
        "default",
        "claude-code",
    ]
    assert calls(branch[1])[0]["output"] == "violet.txt"
