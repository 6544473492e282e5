from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import make
from e2e.conftest import Stage
from format_samples import samples_of
from format_samples.apps import tai_database as sample
from moot.config.loader import load
from moot.engine import open_engine
from moot.imports.configuration import configuration_of, to_yaml
from moot.imports.sources import sources_at
from moot.plugins import FORMATS
from moot.runtime.cron import OwnerJobs
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer

CONFIG = """
providers: {openai: {apiKey: sk-abcdefghijklmnopqrstuvwx123456, defaultModel: gpt-4o}}
agents: {reader: {instructions: "\\e[31mRead\\e[0m", tools: [read, "gm\\e[2Jail"]}}
cron: {jobs: [{name: nightly, schedule: "0 3 * * *", prompt: tidy}]}
permissions: {tools: {exec: {mode: auto}}}
"""


def test_configuration_is_shown_and_written_but_never_applied(tmp_path: Path) -> None:
    moot = make(tmp_path)
    tai = moot.work / "tai"
    tai.mkdir()
    (tai / "agent.db").write_bytes(sample())
    (tai / "config.yaml").write_text(CONFIG)
    live = (moot.home / "config.yaml").read_text()
    shown = moot.run("import", str(tai), "--dry-run", "--json")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)["configuration"]
    assert told["pieces"]["agents"]["reader"]["tools"] == ["read_file"] and told["pieces"]["cron"]["nightly"]["prompt"] == "tidy"
    assert any("gm" in line and "no equivalent" in line for line in told["lost"])
    written = moot.run("import", str(tai), "--configuration", "found.yaml")
    assert written.returncode == 0, written.stderr
    assert b"\x1b[2J" not in written.stderr and b"found.yaml" in written.stderr
    file = moot.work / "found.yaml"
    assert "nightly" in file.read_text() and "sk-abcdef" not in file.read_text() and file.stat().st_mode & 0o077 == 0
    assert (moot.home / "config.yaml").read_text() == live
    assert b"reader" not in moot.run("agents", "list", "--json").stdout
    again = moot.run("import", str(tai), "--configuration", "found.yaml")
    assert again.returncode == 2 and b"already exists" in again.stderr
    onto = moot.run("import", str(tai), "--configuration", str(moot.home / "config.yaml"))
    assert onto.returncode == 2 and (moot.home / "config.yaml").read_text() == live


@asynccontextmanager
async def converted(path: Path, tmp_path: Path, server: ScriptedServer) -> AsyncGenerator[Any]:
    """Open an engine with the converted configuration, unchanged except for the provider, which is scripted, and the mode."""
    (home := tmp_path / "home").mkdir()
    text = to_yaml(configuration_of(sources_at(path, "", tmp_path / "data")))
    (home / "config.yaml").write_text(text)
    flags: Any = {"permissions": {"mode": "auto"}, "models": {"main": "scripted@mine"}}
    flags["providers"] = {"mine": {"base_url": f"{server.url}/v1", "dialect": "openai-chat", "api_key": "x", "models": {"scripted": {}}}}
    loaded = load(home=home, environ={"OPENAI_API_KEY": "x"}, flags=flags, directory=tmp_path)
    assert loaded.doubt is None, loaded.doubt
    async with open_engine(loaded.settings) as engine:
        yield engine


def calling(*calls: ToolCall) -> Callable[[Recorded], Reply]:
    def script(recorded: Recorded) -> Reply:
        done = sum(message["role"] == "tool" for message in recorded.json["messages"] if "hook" not in str(message.get("tool_call_id")))
        return Reply(tool_calls=[calls[done]]) if done < len(calls) else Reply(text="Done.")

    return script


def outputs(server: ScriptedServer) -> list[str]:
    return [str(message["content"]) for request in server.requests for message in request.json["messages"] if message["role"] == "tool"]


RUNNING = """
agents:
  keeper:
    instructions: Keep things.
    tools: [count]
    hooks: {beforeRun: [{tool: exec, args: {command: echo before > hooked}}]}
custom_tools:
  count: {description: Count words., command: "wc -w {{file}}", parameters: {file: {type: string, description: File}}}
cron: {enabled: true, jobs: [{name: nightly, schedule: "0 3 * * *", prompt: tidy, agent: keeper}]}
"""


@pytest.mark.anyio
async def test_agents_hooks_tools_and_jobs_of_tai_work_unchanged(tmp_path: Path) -> None:
    (tai := tmp_path / "tai").mkdir()
    (work := tmp_path / "work").mkdir()
    (tai / "agent.db").write_bytes(sample())
    (tai / "config.yaml").write_text(RUNNING)
    (work / "notes").write_text("one two three")
    async with ScriptedServer(calling(ToolCall("count", {"file": "notes"}))) as server, converted(tai, tmp_path, server) as engine:
        run, _ = await Stage(engine, server, work).ask("go", agent="keeper")
        assert run.status == "finished"
        assert (work / "hooked").read_text() == "before\n"
        assert any("3 notes" in output for output in outputs(server))
        assert "Keep things." in str(server.requests[0].json["messages"][0])
        (job,) = await OwnerJobs(lambda: engine.settings, engine.store).list()
        assert (job.job.name, job.job.agent, job.error) == ("nightly", "keeper", "")


@pytest.mark.anyio
async def test_types_of_mutsumi_limit_which_agents_are_started(tmp_path: Path) -> None:
    project = tmp_path / "code"
    (project / ".mutsumi").mkdir(parents=True)
    (project / ".vscode").mkdir()
    format: Any = FORMATS.make("mtm")
    notebook: Any = samples_of(format)["notebook"]
    (project / ".mutsumi" / "a.mtm").write_bytes(notebook)
    types = {"orchestrator": {"allowedChildTypes": ["reviewer"]}, "reviewer": {}, "implementer": {}}
    (project / ".vscode" / "settings.json").write_text(json.dumps({"mutsumi.agentConfig": {"agentTypes": types}}))
    calls = [ToolCall("delegate", {"agent": name, "prompt": "look"}) for name in ("implementer", "reviewer")]

    def script(recorded: Recorded) -> Reply:
        is_parent = "delegate" in str([tool["function"]["name"] for tool in recorded.json.get("tools") or ()])
        return calling(*calls)(recorded) if is_parent else Reply(text="Looks good.")

    async with ScriptedServer(script) as server, converted(project / ".mutsumi", tmp_path, server) as engine:
        run, _ = await Stage(engine, server, project).ask("go", agent="orchestrator")
        assert run.status == "finished"
        found = outputs(server)
    assert any("can't be called" in output for output in found)
    assert any("Looks good." in output for output in found)
