"""Calls of tools before and after a run, which agents and jobs configure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import make
from moot.config.hooks import run_hooks
from moot.config.schema import RunHookPart
from moot.config.settings import Permissions, Rule
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.hooks import CommandHook, hook_of
from moot.types.message import Message, Part, is_tool, tool_name

pytestmark = pytest.mark.anyio


def agent(**sides: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings for the default agent with these hooks."""
    return {"agents": {"default": Agent(hooks=run_hooks(sides))}}


def shell(command: str, **more: Any) -> dict[str, Any]:
    return {"tool": "shell", "arguments": {"command": command}, **more}


def calls(message: Message) -> list[Part]:
    return [part for part in message.parts if is_tool(part)]


async def test_outputs_precede_the_prompt_and_the_calls_are_shown_as_those_of_a_hook(stage: Any, directory: Path) -> None:
    (directory / "plan.md").write_text("1. Paint the fence\n")
    hooks = agent(before_run=[{"tool": "read_file", "arguments": {"path": "plan.md"}}, shell("echo I am {{agent}}")])
    async with stage([Reply(text="ok"), Reply(text="ok")], **hooks) as on:
        run, message = await on.ask("Go on")
        prompt = str(on.server.requests[0].json["messages"][-1])
        assert prompt.index("Paint the fence") < prompt.index("I am default") < prompt.index("Go on")
        assert [(tool_name(part), hook_of(part)) for part in calls(message)] == [("read_file", "before_run"), ("shell", "before_run")]
        assert "tool_calls" not in str(on.server.requests[0].json["messages"])
        await on.ask("Next", conversation=run.conversation)
        assert str(on.server.requests[1].json["messages"][1]) == prompt


async def test_variables_are_filled_and_the_answer_is_known_after_the_run(stage: Any, directory: Path) -> None:
    hooks = agent(
        before_run=[shell("echo {{conversation}} {{run}} {{date}} {{prompt}} '{{last_response}}' \"{{last_run}}\" > before.txt")],
        after_run=[{"tool": "write_file", "arguments": {"path": "after.txt", "content": "{{ response }} to {{prompt}}"}}],
    )
    async with stage([Reply(text="It's $(done)"), Reply(text="two")], **hooks) as on:
        run, message = await on.ask("first; touch injected")
        assert (directory / "after.txt").read_text() == "It's $(done) to first; touch injected"
        before = (directory / "before.txt").read_text()
        assert before.startswith(f"{run.conversation} {run.id} 20") and before.endswith("first; touch injected  \n")
        assert hook_of(calls(message)[-1]) == "after_run" and run.status == "finished"
        await on.ask("second", conversation=run.conversation)
        assert "second It's $(done) 20" in (directory / "before.txt").read_text()
        assert sorted(path.name for path in directory.iterdir()) == ["after.txt", "before.txt"]


@pytest.mark.parametrize(
    "command, test",
    [
        ("true", "empty"),
        ("echo none", {"equals": "none"}),
        ("echo nothing for {{agent}}", {"contains": "for {{agent}}"}),
        ("echo 0 tasks", {"matches": r"^0 \w+$"}),
    ],
)
async def test_a_passed_test_of_the_output_ends_the_run_as_skipped(stage: Any, command: str, test: Any) -> None:
    part = RunHookPart.model_validate(shell(command, skip_if=test)).model_dump()
    hooks = agent(before_run=[part], after_run=[shell("touch after")])
    async with stage([Reply(text="ok")], **hooks) as on:
        run, message = await on.ask("Do the first task")
        assert run.status == "finished" and not on.server.requests and len(calls(message)) == 1
        assert message.metadata["finish_reason"] == "skipped"
        events = await on.engine.store.log.read(run.conversation)
        assert events[-1].body == {"status": "finished", "finish_reason": "skipped"}
        assert events[-1].chunks[-1]["finishReason"] == "other"  # clients of the AI SDK accept only their own words


async def test_a_failed_test_lets_the_run_begin_and_skipped_prompts_are_not_sent_later(stage: Any, directory: Path) -> None:
    hooks = agent(before_run=[shell("cat todo.txt", skip_if={"empty": True})])
    (directory / "todo.txt").write_text("")
    async with stage([Reply(text="ok")], **hooks) as on:
        run, _ = await on.ask("Check")
        (directory / "todo.txt").write_text("paint")
        await on.ask("Check again", conversation=run.conversation)
        (request,) = on.server.requests
        assert len(request.json["messages"]) == 2 and "paint" in str(request.json["messages"][1])


async def test_hooks_of_a_job_run_after_those_of_its_agent_with_its_variables(stage: Any, directory: Path) -> None:
    hooks = agent(before_run=[shell("echo agent >> order.txt")])
    job = {"before_run": [shell("echo {{next_task}} >> order.txt")], "after_run": [shell("echo end >> order.txt")]}
    async with stage([Reply(text="ok")], **hooks) as on:
        await on.ask("go", settings={"hooks": job, "hook_variables": {"next_task": "paint"}})
        assert (directory / "order.txt").read_text().split() == ["agent", "paint", "end"]


async def test_policy_and_command_hooks_decide_about_the_calls_of_hooks(stage: Any, directory: Path) -> None:
    hooks = agent(before_run=[shell("touch denied"), shell("touch blocked"), shell("touch made")])
    guard = CommandHook("if grep -q blocked; then echo no >&2; exit 2; fi")
    rules = Permissions("auto", (Rule("shell", "deny", "touch denied"),))
    async with stage([Reply(text="ok")], permissions=rules, **hooks, hooks={"PreToolUse": (guard,)}) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and [path.name for path in directory.iterdir()] == ["made"]
        assert [part["state"] for part in calls(message)] == ["output-error", "output-error", "output-available"]
        assert "shell failed, run before this prompt" in str(on.server.requests[0].json)


async def test_a_hook_that_needs_approval_waits_and_continues_exactly_once(stage: Any, directory: Path) -> None:
    hooks = agent(before_run=[shell("echo one >> log.txt")], after_run=[shell("echo two >> log.txt")])
    async with stage([Reply(text="ok")], mode="ask", **hooks) as on:
        run = await on.follow(await on.submit("go"))
        for waits in (True, True, False):
            assert (run.status == "waiting") is waits
            if waits:
                (approval,) = await on.engine.store.records.approvals(run=run.id)
                await on.engine.runs.answer(approval.id, Answer(True))
                run = await on.engine.runs.wait(run.id)
        assert run.status == "finished" and len(on.server.requests) == 1
        assert (directory / "log.txt").read_text().split() == ["one", "two"]


async def test_unknown_tools_and_variables_are_errors_of_the_call(stage: Any) -> None:
    hooks = agent(before_run=[{"tool": "no_such_tool"}, shell("echo {{nonsense}}"), shell("echo `{{prompt}}`")])
    async with stage([Reply(text="ok")], **hooks) as on:
        run, message = await on.ask("go")
        assert run.status == "finished"
        told = [str(part["errorText"]) for part in calls(message)]
        assert "no_such_tool" in told[0] and told[1] == "Unknown variable 'nonsense'." and "can't contain '`'" in told[2]


async def test_a_hook_cut_off_by_the_end_of_moot_reports_an_unknown_outcome_and_is_not_repeated(stage: Any, directory: Path) -> None:
    hooks = agent(before_run=[shell("echo ran >> log.txt; sleep 600")])
    async with stage([Reply(text="ok")], **hooks) as on:
        submitted = await on.submit("go")
        with anyio.fail_after(60):
            while not (directory / "log.txt").exists() or not (directory / "log.txt").read_text():  # created, then written
                await anyio.sleep(0.01)
    async with stage([Reply(text="ok")], **hooks) as on:
        await on.engine.runs.resume(submitted.run.id)
        run = await on.engine.runs.wait(submitted.run.id)
        message = await on.engine.store.conversations.message(run.message)
        assert run.status == "finished" and (directory / "log.txt").read_text() == "ran\n"
        assert "The outcome of this call is unknown" in str(calls(message)[0]["errorText"])
        assert "The outcome of this call is unknown" in str(on.server.requests[0].json)


@pytest.mark.slow
def test_the_command_line_shows_calls_and_failures_of_hooks(tmp_path: Path) -> None:
    hooks = """
agents: {checker: {hooks: {before_run: [{tool: shell, arguments: {command: "cat todo.txt; true"}, skip_if: {contains: nothing}}]}}}
hooks: {UserPromptSubmit: [{hooks: [{command: "echo broken >&2; exit 3"}]}]}
"""
    with ScriptedProcess([Reply(text="ok", times=0)]) as model:
        moot = make(tmp_path, model.config() + hooks)
        (moot.work / "todo.txt").write_text("paint")
        ended = moot.run("run", "-a", "checker", "--mode", "auto", "go")
        assert (ended.returncode, ended.stdout) == (0, b"ok\n"), ended.stderr
        assert b"shell (before_run hook)" in ended.stderr and ended.stderr.count(b"failed with exit code 3: broken") == 1
        assert b"failed with exit code 3: broken" in moot.run("logs").stdout
        (moot.work / "todo.txt").write_text("nothing to do")
        ended = moot.run("run", "-a", "checker", "--mode", "auto", "--json", "go")
        assert ended.returncode == 0 and json.loads(ended.stdout)["finish_reason"] == "skipped"
        ended = moot.run("run", "-a", "checker", "--mode", "auto", "go")
        assert b"Skipped: the output of shell (before_run hook) passed the test 'contains'." in ended.stderr
        assert moot.run("cron", "add", "watch", "--every", "1h", "--prompt", "go", "-a", "checker", "--mode", "auto").returncode == 0
        assert moot.run("cron", "run", "watch").returncode == 0
        (record,) = json.loads(moot.run("cron", "history", "watch", "--json").stdout)["data"]
        assert record["status"] == "skipped"
        assert b"shell (before_run hook)" in moot.run("chat", "show", "1").stdout
        config = moot.home / "config.yaml"
        config.write_text(config.read_text().replace("echo broken >&2; exit 3", "echo secret >&2; exit 2"))
        ended = moot.run("run", "-a", "checker", "go")
        assert ended.returncode == 1 and b"blocked the prompt: secret" in ended.stderr
        ended = moot.run("run", "-a", "checker", "--json", "go")
        assert ended.returncode == 1 and json.loads(ended.stdout)["ok"] is False
        assert len(model.requests()) == 1
        moot.close()
