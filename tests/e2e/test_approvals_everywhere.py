"""Approvals answered from the command line: for runs of other processes, of none, and of sub-agents."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
import pytest

from e2e.cli_process import MootProcess
from e2e.pty_screen import PtyScreen
from moot.config.loader import load
from moot.engine import Engine, open_engine
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.message import text_of, text_part
from moot.types.run import Prompt, Run

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

QUESTIONS = [
    {"question": "Which language?", "header": "Language", "options": [{"label": "Python"}, {"label": "Go"}]},
    {"question": "Why?"},
]

HIDDEN = "touch kept\u202e # \u200brm\u00a0-rf\x1b[2K\tx\n" + "y" * 3_000 + " \U000e0041end"
SPELLED = "touch kept<U+202E> # <U+200B>rm\\xa0-rf\\x1b[2K\\tx"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    def touch(name: str) -> ToolCall:
        return ToolCall("shell", {"command": f"touch {name}"})

    def explores(where: str) -> ToolCall:
        return ToolCall("delegate", {"agent": "scout", "prompt": f"explore {where}"})

    script = [
        *(Reply(when=f"make {name}", tool_calls=[touch(name)]) for name in ("one", "two", "three", "four", "five", "left", "right")),
        Reply(when="hidden", tool_calls=[ToolCall("shell", {"command": HIDDEN})]),
        Reply(when="init", tool_calls=[ToolCall("shell", {"command": "git init -q"})]),
        Reply(when="write", tool_calls=[ToolCall("write_file", {"path": "kept.txt", "content": "new\nsame\n"})]),
        Reply(when="plan", tool_calls=[ToolCall("exit_plan", {"plan": "1. Write x"})]),
        *(Reply(when=words, tool_calls=[ToolCall("ask_user", {"questions": QUESTIONS})]) for words in ("which", "enquire")),
        *(Reply(when=f"explore {name}", tool_calls=[touch("explored")], times=1) for name in ("here", "there")),
        *(Reply(when=f"delegate {name}", tool_calls=[explores(name)], times=1) for name in ("here", "there")),
        Reply(when="", text="All done.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture(autouse=True)
def _agents(moot: MootProcess) -> None:
    config = moot.home / "config.yaml"
    rules = "permissions:\n  rules: [{tool: delegate, action: allow}]\n"
    agents = "agents:\n  default: {agents: [scout]}\n  scout: {tools: [shell]}\n"
    config.write_text(config.read_text() + rules + agents)


@asynccontextmanager
async def engine_of(moot: MootProcess) -> AsyncGenerator[Engine]:
    """A process that keeps its waiting runs, as a server or a terminal does."""
    async with open_engine(load(home=moot.home, environ={}, directory=moot.work).settings) as engine:
        yield engine


async def parked(engine: Engine, moot: MootProcess, text: str) -> Run:
    submitted = await engine.runs.submit(Prompt((text_part(text),), directory=str(moot.work)))
    run = await engine.runs.wait(submitted.run.id)
    assert run.status == "waiting"
    return run


async def cli(moot: MootProcess, *arguments: str) -> Any:
    return await anyio.to_thread.run_sync(partial(moot.run, "approvals", *arguments, timeout=60))


async def listed(moot: MootProcess) -> list[dict[str, Any]]:
    return json.loads((await cli(moot, "list", "--json")).stdout)["data"]


async def test_an_answer_continues_the_run_in_the_process_where_it_waits(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "make one")
        (asked,) = await listed(moot)
        assert (asked["tool"], asked["input"], asked["path"], asked["directory"]) == (
            "shell",
            {"command": "touch one"},
            ["default"],
            str(moot.work),
        )
        done = await cli(moot, "allow", asked["id"][:24])
        assert done.returncode == 0, done.stderr
        for shown in ("touch one", f"folder: {moot.work}", "agent: default", "allowed once; the run continues"):
            assert shown in done.stderr.decode()
        assert (await engine.runs.wait(run.id)).status == "finished"
        assert (moot.work / "one").exists() and await listed(moot) == []
        again = await cli(moot, "deny", asked["id"], "--json")
        error = json.loads(again.stdout)["error"]
        assert (again.returncode, error["code"]) == (7, "busy") and "already been approved by user" in error["message"]


async def test_a_denial_and_its_reason_reach_the_model(moot: MootProcess, model: ScriptedProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "make two")
        done = await cli(moot, "deny", run.id, "--reason", "wrong folder", "--json")
        assert json.loads(done.stdout) | {"approval": ""} == {
            "ok": True,
            "approval": "",
            "approved": False,
            "continues": True,
            "resume": None,
        }
        await engine.runs.wait(run.id)
        assert not (moot.work / "two").exists()
        assert "wrong folder" in json.dumps(model.requests()[-1]["body"])


async def test_an_answer_survives_until_the_run_is_resumed(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "make three")
    done = await cli(moot, "allow", run.id)
    hint = f"moot chat resume {run.conversation[:13]}"
    assert f"no process continues the run; resume it with: {hint}" in done.stderr.decode()
    assert not (moot.work / "three").exists()
    resumed = await anyio.to_thread.run_sync(partial(moot.run, "chat", "resume", run.conversation))
    assert (resumed.returncode, (moot.work / "three").exists()) == (0, True)
    assert "All done." in resumed.stdout.decode()


async def test_following_continues_a_run_that_no_process_has(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "make four")
    done = await cli(moot, "allow", run.id, "--follow")
    assert (done.returncode, (moot.work / "four").exists()) == (0, True)
    assert "All done." in done.stdout.decode()


async def test_the_approval_of_a_sub_agent_shows_its_path_and_continues_the_family(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        submitted = await engine.runs.submit(Prompt((text_part("delegate here"),), directory=str(moot.work)))
        await engine.runs.wait(submitted.run.id)
    shown = (await cli(moot, "list")).stdout.decode()
    assert "default › scout" in shown and "touch explored" in shown
    assert "agent: default › scout" in (await cli(moot, "show", "1")).stdout.decode()
    done = await cli(moot, "allow", "1", "--follow")
    assert (done.returncode, (moot.work / "explored").exists()) == (0, True), done.stderr
    async with engine_of(moot) as engine:
        final = await engine.store.records.run(submitted.run.id)
        message = await engine.store.conversations.message(final.message)
        assert (final.status, text_of(message.parts)) == ("finished", "All done.")


async def test_an_answered_sub_agent_continues_when_its_parent_is_resumed(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        submitted = await engine.runs.submit(Prompt((text_part("delegate there"),), directory=str(moot.work)))
        await engine.runs.wait(submitted.run.id)
        (asked,) = await engine.store.records.approvals()
    done = await cli(moot, "deny", asked.id)
    assert f"moot chat resume {submitted.conversation.id[:13]}" in done.stderr.decode()
    async with engine_of(moot) as engine:
        await engine.runs.resume(submitted.run.id)
        assert (await engine.runs.wait(submitted.run.id)).status == "finished"


async def test_questions_are_answered_with_text_or_the_number_of_a_choice(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "which")
        shown = (await cli(moot, "show", run.id)).stdout.decode()
        assert "question 1: Language: Which language?" in shown and "2 Go" in shown and "question 2: Question: Why?" in shown
        short = await cli(moot, "allow", run.id, "--answer", "2")
        assert (short.returncode, "asks 2 questions" in short.stderr.decode()) == (2, True)
        wide = await cli(moot, "allow", run.id, "--answer", "2", "--answer", "it is fast", "--for", "always")
        assert (wide.returncode, "apply only to tool calls" in wide.stderr.decode()) == (2, True)
        await cli(moot, "allow", run.id, "--answer", "2", "--answer", "it is fast")
        final = await engine.runs.wait(run.id)
        message = await engine.store.conversations.message(final.message)
        (part,) = (part for part in message.parts if part["type"] == "tool-ask_user")
        assert "Go" in json.dumps(part["output"]) and "it is fast" in json.dumps(part["output"])


async def test_a_plan_is_accepted_with_the_changes_of_a_file(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "enquire")
        plan = moot.work / "plan.md"
        plan.write_text("1. Write z\n")
        wrong = await cli(moot, "allow", run.id, "--answer", "2", "--answer", "fast", "--edited", str(plan))
        assert (wrong.returncode, "--edited applies only to plans" in wrong.stderr.decode()) == (2, True)
        submitted = await engine.runs.submit(Prompt((text_part("plan"),), directory=str(moot.work), mode="plan"))
        assert (await engine.runs.wait(submitted.run.id)).status == "waiting"
        missing = await cli(moot, "allow", submitted.run.id, "--answer", "Accept", "--edited", str(moot.work / "none.md"))
        assert (missing.returncode, "none.md: No such file" in missing.stderr.decode()) == (2, True)
        await cli(moot, "allow", submitted.run.id, "--answer", "Accept", "--edited", str(plan))
        final = await engine.runs.wait(submitted.run.id)
        (part,) = ((await engine.store.conversations.message(final.message)).parts[:2])[1:]
        assert "It is now:\n\n1. Write z" in str(part["output"])
        await engine.runs.cancel(run.id)


async def test_a_number_means_the_list_that_was_printed(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        runs = [await parked(engine, moot, f"make {name}") for name in ("left", "right")]
        assert [one["input"]["command"] for one in await listed(moot)] == ["touch left", "touch right"]
        for number, name in (("1", "left"), ("2", "right")):
            assert f"touch {name}" in (await cli(moot, "allow", number)).stderr.decode()
        assert [(await engine.runs.wait(run.id)).status for run in runs] == ["finished", "finished"]
        for wrong, problem in (
            ("3", "There is no approval number 3: the last list had 2 approvals."),
            ("ffff", "No open approval matches 'ffff'."),
        ):
            missing = await cli(moot, "allow", wrong)
            assert (missing.returncode, problem in missing.stderr.decode()) == (2, True)


async def test_a_lasting_answer_adds_its_pattern_and_an_unsuitable_one_changes_nothing(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "init")
        shown = (await cli(moot, "show", run.id)).stdout.decode()
        assert 'allow --for always: shell "git init' in shown
        for options, problem in (
            (("--for", "ever"), "Use one of: once, conversation, edits, always."),
            (("--pattern", "git *"), "--pattern requires an answer that also applies to later calls."),
            (("--for", "always", "--pattern", "ls"), "does not cover this call"),
            (("--answer", "yes"), "--answer applies only to questions"),
        ):
            refused = await cli(moot, "allow", run.id, *options)
            assert (refused.returncode, problem in refused.stderr.decode()) == (2, True), refused.stderr
        done = await cli(moot, "allow", run.id, "--for", "always", "--pattern", "git init -q")
        assert "always allowed" in done.stderr.decode()
        assert (await engine.runs.wait(run.id)).status == "finished"
    assert "git init -q" in (moot.home / "config.yaml").read_text()


async def test_all_of_a_call_is_shown_with_invisible_characters_spelled_out(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "hidden\u202e words\u200b")
        shown = (await cli(moot, "show", run.id)).stdout.decode()
        table = (await cli(moot, "list")).stdout.decode()
        asked = json.loads((await cli(moot, "show", run.id, "--json")).stdout)
        await engine.runs.cancel(run.id)
    assert f"  {SPELLED}\n  {'y' * 3_000} <U+E0041>end\n" in shown and "expires: in " in shown
    assert "hidden<U+202E> words<U+200B>" in shown and "hidden<U+202E> words<U+200B>" in table
    assert not set("\u202e\u200b\x1b\u00a0") & set(shown + table)
    assert asked["input"] == {"command": HIDDEN} and json.loads(asked["arguments"]) == {"command": HIDDEN}


async def test_a_file_change_is_shown_as_a_diff(moot: MootProcess) -> None:
    (moot.work / "kept.txt").write_text("old\nsame\n")
    async with engine_of(moot) as engine:
        run = await parked(engine, moot, "write")
        shown = (await cli(moot, "show", run.id)).stdout.decode()
        assert "-old" in shown and "+new" in shown
        assert "-old" in json.loads((await cli(moot, "show", run.id, "--json")).stdout)["preview"]["diff"]


async def test_a_conversation_in_a_terminal_reports_approvals_of_others(moot: MootProcess) -> None:
    async with engine_of(moot) as engine:
        await parked(engine, moot, "make five")
        screen = PtyScreen(moot)
        try:
            notice = "An approval is open in another conversation · moot approvals list"
            await anyio.to_thread.run_sync(partial(screen.wait_for, notice, 60))
            await anyio.to_thread.run_sync(partial(screen.wait_for, "1 waiting elsewhere", 60))
        finally:
            screen.close()
