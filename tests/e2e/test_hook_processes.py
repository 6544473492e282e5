"""Processes of hooks: bad ones, their end, their environment, and what is recorded of them."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvloop

from e2e.test_hooks import configured, errors, notes, python, runs, says
from moot.config.trust import trust_file
from moot.runtime.hooks.commands import run_command
from moot.testing.script import Reply
from moot.types.conversation import Project
from moot.types.hooks import CommandHook
from moot.types.ids import new_id
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio


FORKS = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        time.sleep(600)
"""


def left_running(mark: str) -> Iterator[str]:
    """Yield the command lines of processes with the mark in their environment or arguments."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != str(os.getpid()):
            try:
                words = (process / "cmdline").read_bytes()
                dead = (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                continue
            if mark.encode() in words and not dead:
                yield words.decode("utf-8", "replace")


async def gone(mark: str) -> None:
    """Wait until no process with the mark runs. Left alone, they would run for ten minutes."""
    with anyio.fail_after(60):
        while [*left_running(mark)]:
            await anyio.sleep(0.01)


@pytest.mark.parametrize(
    "code, failure",
    [
        (FORKS + "time.sleep(600)", "was stopped after 1 s"),
        (FORKS + "\nwhile True: sys.stdout.write('x' * 65536)", "was stopped after 1 s"),
        (FORKS + "sys.exit(3)", "failed with exit code 3"),
    ],
    ids=["hangs", "floods", "leaves children"],
)
@pytest.mark.slow
async def test_nothing_of_a_bad_hook_is_left_running(stage: Any, tmp_path: Path, code: str, failure: str) -> None:
    mark = f"mark-{tmp_path.name}"
    bad = CommandHook(python(code, mark), timeout=1 if "stopped" in failure else 60)
    async with stage(runs("true"), **configured(PreToolUse=bad)) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and failure in notes(message)[0]
        await gone(mark)


async def test_a_cancelled_run_kills_its_hooks(stage: Any, directory: Path, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    slow = CommandHook(python("import time; open('begun', 'w'); time.sleep(600)", mark))
    async with stage(runs("true"), **configured(UserPromptSubmit=slow)) as on:
        submitted = await on.submit("go")
        with anyio.fail_after(60):
            while not (directory / "begun").exists():
                await anyio.sleep(0.01)
        await on.engine.runs.cancel(submitted.run.id)
        run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "cancelled"
        await gone(mark)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_hook_may_ignore_its_input_on_any_loop(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        for command in ("exit 3", "exec <&-; exit 3") * 5:
            finished = await run_command(CommandHook(command), b"x" * 200_000, tmp_path, tmp_path)
            assert finished.code == 3

    run(check())


async def test_hooks_end_when_moot_is_killed(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    hook = python("import time; open('begun', 'w'); time.sleep(600)", mark)
    program = f"""
import asyncio, pathlib
from moot.runtime.hooks.commands import run_command
from moot.types.hooks import CommandHook
here = pathlib.Path({str(tmp_path)!r})
asyncio.run(run_command(CommandHook({hook!r}, timeout=500), b"x", here, here))
"""
    async with await anyio.open_process([sys.executable, "-c", program]) as process:
        with anyio.fail_after(60):
            while not (tmp_path / "begun").exists():
                await anyio.sleep(0.01)
        process.kill()
        await gone(mark)


@pytest.mark.parametrize(
    "text",
    [
        '{"hookSpecificOutput": {"updatedInput": {"command": NaN}}}',
        '{"a": ' * 1_000 + "1" + "}" * 1_000,
        '{"hookSpecificOutput": {"updatedInput": {"command": "x", "command": "y"}}}',
    ],
)
async def test_json_without_one_clear_meaning_is_a_failure(stage: Any, text: str) -> None:
    async with stage(runs("true"), **configured(PreToolUse=CommandHook(f"printf %s {shlex.quote(text)}", required=True))) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and errors(message) == ["A hook blocked this call: printed invalid JSON"]


async def test_an_unknown_decision_is_a_failure(stage: Any) -> None:
    async with stage(runs("true"), **configured(PreToolUse=says({"hookSpecificOutput": {"permissionDecision": "denied"}}))) as on:
        _, message = await on.ask("go")
        assert "printed the unknown decision 'denied'" in notes(message)[0]


async def test_the_reason_of_a_block_has_no_secrets(stage: Any) -> None:
    async with stage(runs("true"), **configured(PreToolUse="echo no, key=sk-0123456789abcdef0123 >&2; exit 2")) as on:
        run, message = await on.ask("go")
        events = await on.engine.store.log.read(run.conversation)
        assert "[secret]" in errors(message)[0] and "sk-0123456789abcdef" not in str([event.body for event in events])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a sandbox")
async def test_a_projects_hook_runs_in_the_sandbox_for_other_users(stage: Any, tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "shop"
    root.mkdir()
    hook = CommandHook(f"touch inside; touch {outside}; cat > got.json", folder=str(root))
    async with stage([Reply(text="ok")], **configured(UserPromptSubmit=hook)) as on:
        (root / ".moot").mkdir()
        file = root / ".moot" / "config.yaml"
        file.write_text("{}")
        trust_file(tmp_path / "home", file, "{}")
        project = await on.engine.store.of("mara").projects.create(Project(new_id(), "shop", root_path=str(root)))
        prompt = Prompt((text_part("hi"),), user="mara", project=project.id, directory=str(root))
        run = await on.engine.runs.wait((await on.engine.runs.submit(prompt)).run.id)
        assert run.status == "finished" and (root / "inside").exists() and not outside.exists()


async def test_a_flood_is_read_to_its_end_and_64_kib_of_it_are_kept(stage: Any) -> None:
    flood = python("import sys; sys.stdout.write('y' * 5_000_000)")
    async with stage([Reply(text="ok")], **configured(UserPromptSubmit=flood)) as on:
        await on.ask("hi")
        assert str(on.server.requests[0].json).count("y" * 1000) == 65  # 65,536 characters


async def test_a_hook_gets_no_keys_and_does_not_run_hooks_itself(stage: Any, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef0123")
    monkeypatch.setenv("MOOT_TOKEN", "moot-secret")
    async with stage([Reply(text="ok"), Reply(text="ok")], **configured(UserPromptSubmit="env > env.txt; echo added")) as on:
        await on.ask("hi")
        variables = (directory / "env.txt").read_text()
        assert "sk-0123456789" not in variables and "moot-secret" not in variables
        assert f"MOOT_PROJECT_DIR={directory}" in variables and "CHILD_OF_MOOT_HOOK=1" in variables
        monkeypatch.setenv("CHILD_OF_MOOT_HOOK", "1")
        await on.ask("again")
        assert "added" not in str(on.server.requests[1].json)


async def test_the_journal_has_each_hook_with_masked_output(stage: Any) -> None:
    told = "echo key=sk-0123456789abcdef0123 >&2; exit 7"
    async with stage([Reply(text="ok")], **configured(UserPromptSubmit=told)) as on:
        run, message = await on.ask("hi")
        events = [event for event in await on.engine.store.log.read(run.conversation) if (event.key or "").startswith("hook:")]
        assert [event.phase for event in events] == ["start", "end"]
        value = events[1].body["value"]
        assert value["code"] == 7 and value["ms"] >= 0 and "[secret]" in value["output"]
        assert "sk-0123" not in str([*events, *message.parts])


async def test_invalid_json_of_a_hook_is_reported(stage: Any) -> None:
    async with stage(runs("true"), **configured(PreToolUse="echo '{\"decision\": '")) as on:
        run, message = await on.ask("go")
        assert run.status == "finished" and "printed invalid JSON" in notes(message)[0]
