"""Custom tools: commands of the configuration, decided, shown and confined like calls of the tool `shell`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lanes import missing
from moot.cli.approvals.preview import call_rows
from moot.config.loader import load
from moot.config.settings import Permissions, Rule, SandboxSettings, Settings
from moot.config.trust import trust_file
from moot.errors import UsageError
from moot.features.approvals import command_of, preview_call
from moot.runtime.approvals.sandbox import find_mechanism
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.tools.catalogue import tools_for
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.canonical import JsonObject, dumps
from moot.types.command_tool import Command, CommandTool, schema_of

pytestmark = pytest.mark.anyio

SANDBOX = SandboxSettings()


def tool(command: Command, name: str = "count", **more: Any) -> dict[str, CommandTool]:
    parameters = more.pop("parameters", {})
    return {name: CommandTool(name, "Count the words of a file.", command, schema_of(parameters, command), **more)}


def calling(name: str, *inputs: JsonObject) -> Callable[[Recorded], Reply]:
    """Return a model that makes these calls, one per step, and then ends."""

    def script(recorded: Recorded) -> Reply:
        done = sum(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(tool_calls=[ToolCall(name, inputs[done])]) if done < len(inputs) else Reply(text="Done.")

    return script


def outputs(on: Any) -> list[str]:
    """Return what the model got for its calls."""
    return [str(message["content"]) for message in on.server.requests[-1].json["messages"] if message["role"] == "tool"]


async def confined(on: Any) -> None:
    if not (found := await find_mechanism(on.engine.runtime)).is_complete:
        missing("bubblewrap", "; ".join(found.missing))


async def test_a_tool_is_offered_with_its_schema_and_its_command_runs(stage: Any, directory: Path) -> None:
    (directory / "a b").write_text("one two three")
    async with stage(calling("count", {"file": "a b"}), custom_tools=tool(("wc", "-w", "{{file}}"))) as on:
        run, _ = await on.ask("go")
        (offered,) = [one["function"] for one in on.server.requests[0].json["tools"] if one["function"]["name"] == "count"]
    assert run.status == "finished"
    assert offered["parameters"]["required"] == ["file"]
    assert outputs(on) == ["3 a b\n"]


async def test_the_whole_command_line_is_shown_and_nothing_runs_before_the_answer(stage: Any, directory: Path) -> None:
    custom = tool("cat {{file}} | tee {{to}}", parameters={"properties": {"file": {}, "to": {}}, "required": ["file", "to"]})
    (directory / "in").write_text("text")
    input: JsonObject = {"file": "in", "to": "out; id"}
    async with stage(calling("count", input), mode="ask", custom_tools=custom) as on:
        run, _ = await on.ask("go")
        assert run.status == "waiting"
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        line = command_of(on.engine.settings, asked)
        assert line == "cat in | tee 'out; id'"
        preview = await preview_call(asked.arguments, asked.parts, (directory,), directory, line)
        assert next(row.text for row in call_rows(preview)) == line
        assert [part.text for part in asked.parts] == ["cat in", "tee 'out; id'"]
        assert not (directory / "out; id").exists()
        await on.engine.runs.answer(asked.id, Answer(True))
        await on.engine.runs.wait(run.id)
        assert (directory / "out; id").read_text() == "text"


async def test_an_approval_does_not_cover_another_command_of_the_same_tool(stage: Any, directory: Path) -> None:
    async with stage(calling("count", {"file": "x"}), mode="ask", custom_tools=tool(("touch", "{{file}}"))) as on:
        run, _ = await on.ask("go")
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        on.engine.runtime.settings = replace(on.engine.settings, custom_tools=tool(("touch", "{{file}}", "other")))
        await on.engine.runs.answer(asked.id, Answer(True))
        await on.engine.runs.wait(run.id)
        assert "given for other arguments" in outputs(on)[0]
        assert not (directory / "x").exists()


async def test_rules_for_the_shell_and_for_the_tool_decide_about_the_command_line(stage: Any, directory: Path) -> None:
    rules = (Rule("shell", "deny", "touch secret*"), Rule("make", "allow", "touch a1"), Rule("make", "ask", "touch ab"))
    permissions = Permissions(mode="ask", rules=rules)
    script = calling("make", {"file": "secret1"}, {"file": "a1"}, {"file": "ab"})
    async with stage(script, permissions=permissions, custom_tools=tool(("touch", "{{file}}"), "make")) as on:
        run, _ = await on.ask("go")
        assert run.status == "waiting"
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        assert asked.arguments == dumps({"file": "ab"})
        assert "touch secret" in outputs(on)[0]
        assert sorted(path.name for path in directory.iterdir()) == ["a1"]


async def test_an_obedient_model_gains_no_syntax_option_or_argument(stage: Any, directory: Path) -> None:
    (directory / "file").write_text("kept")
    inputs: tuple[JsonObject, ...] = (
        {"file": "file; touch gained"},
        {"file": "$(touch gained)"},
        {"file": "file\ntouch gained"},
        {"file": "--files0-from=file"},
        {"file": "file", "command": "touch gained"},
        {"file": ["file"]},
        {},
    )
    async with stage(calling("count", *inputs), custom_tools=tool("wc -w {{file}}")) as on:
        await on.ask("go")
        found = outputs(on)
    assert sorted(path.name for path in directory.iterdir()) == ["file"]
    assert "can't start with '-'" in found[3]
    assert all("do not match the schema" in text for text in found[4:])


async def test_edited_arguments_are_checked_and_bound(stage: Any, directory: Path) -> None:
    async with stage(calling("count", {"file": "x"}), mode="ask", custom_tools=tool(("touch", "{{file}}"))) as on:
        run, _ = await on.ask("go")
        (asked,) = await on.engine.store.records.approvals(run=run.id)
        with pytest.raises(UsageError, match="can't start with '-'"):
            await on.engine.runs.answer(asked.id, Answer(True, arguments=dumps({"file": "-r"})))
        await on.engine.runs.answer(asked.id, Answer(True, arguments=dumps({"file": "y"})))
        await on.engine.runs.wait(run.id)
    assert [path.name for path in directory.iterdir()] == ["y"]


async def test_the_command_runs_in_the_sandbox(stage: Any, directory: Path) -> None:
    outside = Path("/usr/moot-outside")
    async with stage(calling("count", {"file": str(outside)}), sandbox=SANDBOX, custom_tools=tool("touch in; touch {{file}}")) as on:
        await confined(on)
        await on.ask("go")
        assert (directory / "in").exists()
        assert not outside.exists()
        assert "tell the user" in outputs(on)[0]


async def test_a_tool_that_only_reads_needs_no_approval_and_can_change_nothing(stage: Any, directory: Path) -> None:
    (directory / "file").write_text("one two")
    custom = tool("wc -w {{file}}; touch gained; echo x >> {{file}}; ls /tmp", read_only=True)
    agents = {"default": Agent(role="read")}
    async with stage(calling("count", {"file": "file"}), mode="ask", sandbox=SANDBOX, custom_tools=custom, agents=agents) as on:
        await confined(on)
        run, _ = await on.ask("go")
        assert run.status == "finished"
        assert "2 file" in outputs(on)[0]
        assert "Read-only file system" in outputs(on)[0]
    assert (directory / "file").read_text() == "one two"
    assert [path.name for path in directory.iterdir()] == ["file"]


async def test_a_tool_that_only_reads_does_not_run_without_a_sandbox(stage: Any) -> None:
    script, custom = calling("count", {"file": "x"}), tool(("touch", "{{file}}"), read_only=True)
    async with stage(script, mode="ask", sandbox=SandboxSettings(enabled=False), custom_tools=custom) as on:
        await on.ask("go")
        assert "needs the sandbox" in outputs(on)[0]


async def test_a_rule_can_ask_about_a_tool_that_only_reads(stage: Any) -> None:
    permissions = Permissions(mode="auto", rules=(Rule("count", "ask"),))
    async with stage(calling("count", {"file": "x"}), permissions=permissions, custom_tools=tool(("wc", "{{file}}"), read_only=True)) as on:
        run, _ = await on.ask("go")
        assert run.status == "waiting"


async def test_folder_environment_time_and_output_are_limited(stage: Any, directory: Path, tmp_path: Path) -> None:
    (directory / "sub").mkdir()
    (directory / "link").symlink_to(tmp_path)
    custom = {
        **tool("pwd; echo $COLOR", "where", cwd="sub", env={"COLOR": "blue"}),
        **tool("pwd", "away", cwd="link"),
        **tool("sleep 60", "slow", timeout=0.2),
        **tool("seq 1 5000", "long", max_output=1_000),
    }

    def script(recorded: Recorded) -> Reply:
        done = sum(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(tool_calls=[ToolCall([*custom][done], {})]) if done < len(custom) else Reply(text="Done.")

    async with stage(script, custom_tools=custom) as on:
        await on.ask("go")
        where, away, slow, long = outputs(on)
    assert where == f"{directory}/sub\nblue\n"
    assert "outside" in away
    assert "killed after 0.2 seconds" in slow
    assert len(long) <= 1_000
    assert "characters omitted" in long
    assert long.endswith("5000\n")


async def test_other_users_without_a_folder_get_no_custom_tools(stage: Any) -> None:
    async with stage(calling("count", {"file": "x"}), custom_tools=tool(("touch", "{{file}}"))) as on:
        submitted = await on.submit("go", user="other")
        run = await on.follow(submitted)
        assert run.status == "finished"
        assert "'count' not found" in outputs(on)[0]


def test_agents_get_custom_tools_unless_they_are_hidden_or_not_named():
    settings = Settings(Path("/nowhere"), custom_tools={**tool("true", "seen"), **tool("true", "unseen", hidden=True)})

    def names(agent: Agent) -> list[str]:
        return [one.name for one in tools_for(settings, agent) if one.name in ("seen", "unseen")]

    assert names(Agent()) == ["seen"]
    assert names(Agent(tools=("unseen",))) == ["unseen"]
    assert names(Agent(tools=("shell",))) == []
    assert names(Agent(role="read")) == []
    with pytest.raises(UsageError, match="Did you mean 'unseen'"):
        tools_for(settings, Agent(tools=("unsen",)))


def test_tools_of_a_project_count_only_after_trust(tmp_path: Path):
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".moot").mkdir(parents=True)
    home.mkdir()
    (file := project / ".moot" / "config.yaml").write_text('tools: {build: {command: [make, "{{target}}"], description: Build.}}\n')
    assert load(home=home, environ={}, directory=project).settings.custom_tools == {}
    trust_file(home, file, file.read_text())
    assert [*load(home=home, environ={}, directory=project).settings.custom_tools] == ["build"]
