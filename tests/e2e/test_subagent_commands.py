"""Sub-agents with real processes: a killed run continues with the same sub-agent, and the tree shows it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pexpect
import pytest

from e2e.cli_process import MootProcess, Process
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.slow

AGENTS = "agents: {default: {agents: [explorer]}, explorer: {description: Looks around}}\npermissions: {mode: auto}\n"


IN_BACKGROUND = ToolCall("delegate", {"agent": "explorer", "prompt": "take your time", "background": True})

ASKING = ToolCall("delegate", {"agent": "helper", "prompt": "touch it", "background": True})


@pytest.fixture
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="wait and see", tool_calls=[ToolCall("delegate", {"agent": "explorer", "prompt": "look slowly"})]),
        Reply(when="count", tool_calls=[ToolCall("delegate", {"agent": "explorer", "prompt": "look around"})]),
        Reply(when="look slowly", text="There are", hang_at=1),
        Reply(when="look", text="There are 3.", times=0),
        Reply(when="start", tool_calls=[IN_BACKGROUND]),
        Reply(when="take your time", text="It took long.", hang_at=3, times=0),
        Reply(when="start", text="Started.", times=0),
        Reply(when="ask", tool_calls=[ASKING]),
        Reply(when="touch it", tool_calls=[ToolCall("shell", {"command": "touch made"})]),
        Reply(when="touch it", text="Touched."),
        Reply(when="ask", text="Asked for it."),
        Reply(text="Three.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.mark.parametrize(
    ("name", "prompt", "task"), [("child.started", "count", "look around"), ("run.parked", "wait and see", "look slowly")]
)
def test_a_killed_run_continues_with_the_same_sub_agent(moot: MootProcess, name: str, prompt: str, task: str) -> None:
    config = moot.home / "config.yaml"
    config.write_text(config.read_text() + AGENTS)
    moot.more.update({"MOOT_TESTING": "1", "MOOT_CRASH_AT": name})
    assert moot.run("run", prompt).returncode == -9
    del moot.more["MOOT_CRASH_AT"]
    (parent,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    ended = moot.run("chat", "resume", parent["id"])
    assert ended.returncode == 0 and b"Three." in ended.stdout, ended.stderr
    tree = json.loads(moot.run("agents", "tree", parent["id"], "--json").stdout)
    assert [(child["agent"], child["status"], child["summary"]) for child in tree["children"]] == [("explorer", "finished", "There are 3.")]
    shown = moot.run("agents", "tree", parent["id"]).stdout.decode().splitlines()
    assert shown[0].startswith("default  finished") and shown[1].startswith("└ explorer  finished") and task in shown[1]
    assert moot.run("verify", "--all").returncode == 0


def read_until(process: Process, word: bytes) -> bytes:
    """Return what the process writes to stderr up to a line with this word."""
    assert process.stderr is not None
    read = b""
    while word not in read:
        line = process.stderr.readline()
        assert line, read
        read += line
    return read


@pytest.fixture
def waiting(moot: MootProcess) -> Process:
    """A process that has printed its answer and waits for a sub-agent in the background."""
    config = moot.home / "config.yaml"
    config.write_text(config.read_text() + AGENTS)
    process = moot.start("run", "start")
    read_until(process, b"waiting for explorer in the background")
    assert process.stdout is not None and process.stdout.readline() == b"Started.\n"
    return process


def child_status(moot: MootProcess) -> str:
    (child,) = json.loads(moot.run("agents", "tree", "1", "--json").stdout)["children"]
    return child["run_status"]


def test_a_run_waits_for_its_background_agents(moot: MootProcess, model: ScriptedProcess, waiting: Process) -> None:
    assert child_status(moot) == "running"
    refused = moot.run("chat", "delete", "1")
    assert refused.returncode == 7 and b"unfinished run" in refused.stderr, refused.stderr
    model.release()
    _, errors = waiting.communicate(timeout=60)
    assert (waiting.returncode, b"explorer has ended: finished" in errors) == (0, True), errors
    assert child_status(moot) == "finished"


def test_ctrl_c_stops_the_background_agents_of_a_run(moot: MootProcess, waiting: Process) -> None:
    waiting.send_signal(signal.SIGINT)
    _, errors = waiting.communicate(timeout=60)
    assert (waiting.returncode, b"explorer has ended: cancelled" in errors) == (130, True), errors
    assert child_status(moot) == "cancelled"


def test_another_process_can_stop_the_background_agents_of_a_conversation(moot: MootProcess, waiting: Process) -> None:
    stopped = moot.run("chat", "stop", "1")
    assert (stopped.returncode, stopped.stderr) == (0, b"moot: stopped explorer\n")
    waiting.communicate(timeout=60)
    assert (waiting.returncode, child_status(moot)) == (0, "cancelled")


def test_background_agents_ask_at_the_terminal_after_the_answer(moot: MootProcess) -> None:
    config = moot.home / "config.yaml"
    rule = "permissions: {mode: auto, rules: [{tool: shell, match: '*', action: ask}]}"
    config.write_text(f"{config.read_text()}agents: {{default: {{agents: [helper]}}, helper: {{description: Helps}}}}\n{rule}\n")
    terminal = moot.terminal("run", "ask", term="dumb")
    for expected in ("Asked for it", "touch made", r"Allow\?"):
        terminal.expect(expected)
    terminal.sendline("y")
    terminal.expect("helper has ended: finished")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert (terminal.exitstatus, (moot.work / "made").exists()) == (0, True)
