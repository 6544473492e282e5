"""kill -9 at every commit point of the source: a real process, a real signal, and the watchers' events compared with the stored ones."""

from __future__ import annotations

import ast
import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from checker import check_run, check_shown, everything
from journey import settings_for

from moot.convert.fold import in_history
from moot.store import open_store
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.message import is_tool, text_of, tool_name

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

Script = Callable[[Recorded], Reply]

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src" / "moot"

BEFORE: dict[str, tuple[str, ...]] = {
    "attempt.abandoned": ("exchange.read",),
    "call.unknown": ("tool.worked:3",),
}
"""Points that only a resumed run passes → where the run was killed first."""

FORGET = ("forget.begun", "forget.one", "forget.reached", "forget.rows", "forget.scrubbed", "forget.swept", "forget.unnamed")
OUTSIDE = ("agent.begun", "agent.closed", "agent.cut", "agent.line", "agent.noted")
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("seal.inserted", "seal.replaced"), "tests/unit/store/test_sealing_killed.py"),
    **dict.fromkeys(("compaction.summarized", "compaction.recorded"), "tests/e2e/test_cli_compaction.py"),
    **dict.fromkeys(OUTSIDE, "tests/e2e/crash/test_kill_outside.py"),
    **dict.fromkeys(("checkpoint.kept", "undo.file", "undo.files", "undo.talk"), "tests/e2e/test_undo.py"),
    "child.started": "tests/e2e/test_subagent_commands.py",
    "run.handed": "tests/e2e/test_hand_over.py",
    **dict.fromkeys(("cron.due", "cron.settled"), "tests/e2e/test_cron_commands.py"),
    "tasks.due": "tests/e2e/test_tasks_commands.py",
    "webhook.sent": "tests/e2e/test_outgoing_webhooks.py",
    **dict.fromkeys(FORGET, "tests/e2e/purge/test_kills.py"),
    **dict.fromkeys(("backup.copied", "backup.written", "restore.exchanged", "restore.unpacked"), "tests/e2e/purge/test_backups.py"),
}
"""Points that another test covers, with its path."""


def points() -> list[str]:
    """Every crash point of the source."""
    found: set[str] = set()
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if "point(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "point":
                assert isinstance(node.args[0], ast.Constant), f"{path}: a crash point's name is a literal"
                found.add(str(node.args[0].value))
    return sorted(found)


def script(recorded: Recorded) -> Reply:
    """The model's answer depends only on the history, so that a repeated request gets the same answer."""
    outputs = sum(message.get("role") == "tool" for message in recorded.messages)
    if outputs == 0:
        reads = [ToolCall("read_file", {"path": name}, id=f"read-{name}") for name in ("a.txt", "b.txt")]
        write = ToolCall("shell", {"command": "echo done >> effects.txt"}, id="effect")
        return Reply(
            text="I look and write.", tool_calls=[*reads, write, ToolCall("nothing", {}, id="unknown-tool")], write_size=150, delay=0.005
        )
    return Reply(text="All is done.", reasoning="It was easy.", write_size=60)


def hanging(script: Script) -> Script:
    """Return the script with a first answer that stops after its text, so that the client has read a visible part of it, and no more."""
    answered: list[Recorded] = []

    def reply(recorded: Recorded) -> Reply:
        answered.append(recorded)
        found = script(recorded)
        return replace(found, write_size=2_000, hang_at=1) if len(answered) == 1 else found

    return reply


async def travel(home: Path, url: str, work: Path, acks: Path, crash_at: str = "") -> int:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "MOOT_TESTING": "1", "MOOT_CRASH_AT": crash_at}
    arguments = [sys.executable, str(HERE / "journey.py"), str(home), url, str(work), str(acks)]
    process = await asyncio.create_subprocess_exec(*arguments, env=environment, stderr=asyncio.subprocess.PIPE)
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode or 0


@contextmanager
def stage(tmp_path: Path) -> Iterator[tuple[Path, Path, Path]]:
    home, work, acks = tmp_path / "home", tmp_path / "work", tmp_path / "acks"
    home.mkdir()
    work.mkdir()
    (work / "a.txt").write_text("apples\n")
    (work / "b.txt").write_text("bananas\n")
    yield home, work, acks


async def judge(home: Path, work: Path, acks: Path) -> None:
    store = await open_store(settings_for(home, "http://127.0.0.1:1/v1"))
    try:
        (run,) = await store.records.runs()
        message = await store.conversations.message(run.message)
        events = await everything(store, run.conversation)
        check_shown(events, acks)
        check_run(run, message, events)
        assert run.status == "finished", run.error
        said = text_of(in_history(message.parts))
        assert said == "I look and write.All is done."
        effects = (work / "effects.txt").read_text().count("done") if (work / "effects.txt").exists() else 0
        (shell,) = [part for part in in_history(message.parts) if is_tool(part) and tool_name(part) == "shell"]
        if shell["state"] == "output-available":
            assert effects == 1
        else:
            assert "unknown" in str(shell["errorText"]) and effects <= 1
        steering = [part for part in message.parts if part.get("type") == "steering-message"]
        assert len(steering) <= 1
        (note,) = [part["data"]["text"] for event in events for part in event.chunks if part["type"] == "data-note"]  # type: ignore[index]
        assert "pie.png was not sent" in note
    finally:
        await store.close()


@pytest.mark.parametrize("name", points())
async def test_a_kill_at_any_commit_point_loses_and_repeats_nothing(name: str, tmp_path: Path) -> None:
    if name in ELSEWHERE:
        assert name in (HERE.parents[2] / ELSEWHERE[name]).read_text(encoding="utf-8")
        return
    async with ScriptedServer(hanging(script) if name == "attempt.abandoned" else script) as server:
        with stage(tmp_path) as (home, work, acks):
            for crash_at in (*BEFORE.get(name, ()), name):
                assert await travel(home, server.openai_url, work, acks, crash_at) == -signal.SIGKILL, f"{crash_at} was never passed"
            assert await travel(home, server.openai_url, work, acks) == 0
            await judge(home, work, acks)
