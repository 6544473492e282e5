"""Rerunning: offline against the recording, and with another model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

SCRIPT = [
    Reply(
        when="look",
        text="I look.",
        reasoning="where?",
        tool_calls=[ToolCall("list_files", {"path": "."}), ToolCall("list_files", {"path": ".."})],
    ),
    Reply(when="look", text="There is a file.", times=1),
    Reply(when="write", text="", tool_calls=[ToolCall("write_file", {"path": "a.txt", "content": "x"})]),
    Reply(when="write", text="It was denied.", times=1),
    Reply(when="stumble", status=503, error="overloaded"),
    Reply(when="stumble", text="Now I can.", times=1),
    Reply(text="Another answer.", times=0),
]


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    """A home with a conversation of three runs, whose model is not available any more."""
    with ScriptedProcess(SCRIPT) as model:
        process = make(tmp_path_factory.mktemp("one"), model.config())
        (process.work / "seen.txt").write_text("x")
        assert process.run("run", "--tools", "list_files,write_file", "look around").returncode == 0
        process.run("run", "--tools", "list_files,write_file", "-c", "write it", "--mode", "ask")
        assert process.run("run", "--no-tools", "-c", "stumble").returncode == 0
    yield process
    process.close()


def rerun(moot: MootProcess, *more: str) -> tuple[int, Any]:
    ended = moot.run("replay", "1", "--rerun", "--json", *more)
    return ended.returncode, json.loads(ended.stdout)


def test_a_rerun_repeats_requests_and_answers_without_network_and_tools(moot: MootProcess) -> None:
    before = (moot.work / "seen.txt").stat().st_mtime_ns, sorted(path.name for path in moot.work.iterdir())
    code, found = rerun(moot)
    assert [one["differences"] for one in found["data"]] == [[], [], []], found
    assert (code, found["ok"], [one["requests"] for one in found["data"]]) == (0, True, [2, 2, 2])
    assert [one["calls"] for one in found["data"]] == [2, 1, 0]
    assert ((moot.work / "seen.txt").stat().st_mtime_ns, sorted(path.name for path in moot.work.iterdir())) == before
    said = moot.run("replay", "1", "--rerun")
    assert said.returncode == 0 and said.stdout.count(b": identical\n") == 3


def test_a_rerun_with_different_requests_reports_them_and_exits_with_1(moot: MootProcess) -> None:
    config = moot.home / "config.yaml"
    was = config.read_text()
    config.write_text(was + "\nagents: {default: {rules: Always be brief.}}\n")
    try:
        code, found = rerun(moot)
    finally:
        config.write_text(was)
    assert (code, found["ok"]) == (1, False)
    assert any(
        "the request of 1.0 differs at messages[0].content" in words and "Always be brief" in words
        for words in found["data"][0]["differences"]
    )


def test_a_rerun_uses_the_context_and_rules_of_the_project(tmp_path: Path) -> None:
    with ScriptedProcess(SCRIPT[-1:]) as model:
        process = make(tmp_path, model.config())
        process.run(
            "projects", "add", "shop", "--root", str(process.work), "--context", "It sells lamps.", "--rules", "Never touch prices."
        )
        assert process.run("run", "--no-tools", "hello").returncode == 0
    code, found = rerun(process)
    assert (code, [one["differences"] for one in found["data"]]) == (0, [[]]), found
    assert process.run("projects", "edit", "shop", "--rules", "Never touch taxes.").returncode == 0
    code, found = rerun(process)
    assert code == 1 and "Never touch taxes." in str(found["data"][0]["differences"]), found
    process.close()


def test_a_rerun_uses_the_settings_that_the_conversation_had(tmp_path: Path) -> None:
    with ScriptedProcess([Reply(text="First."), Reply(text="Second.")]) as model:
        process = make(tmp_path, model.config())
        assert process.run("run", "--no-tools", "hello").returncode == 0
        assert process.run("chat", "settings", "1", "tools=[read_file]", "mode=plan").returncode == 0
        assert process.run("run", "-c", "go on").returncode == 0
    assert process.run("chat", "settings", "1", "tools=", "mode=", "effort=high").returncode == 0
    code, found = rerun(process)
    assert (code, [one["differences"] for one in found["data"]]) == (0, [[], []]), found
    process.close()


def test_a_recording_can_be_rerun_without_its_provider(moot: MootProcess, tmp_path: Path) -> None:
    other = make(tmp_path)
    (other.work / "talk.jsonl").write_bytes(moot.run("export", "1").stdout)
    assert other.run("import", "talk.jsonl").returncode == 0
    code, found = rerun(other)
    assert [one["ran"] for one in found["data"]] == [True] * 3
    assert (code, [one["differences"] for one in found["data"]]) == (0, [[], [], []])


def test_a_changed_output_is_found(moot: MootProcess, tmp_path: Path) -> None:
    other = make(tmp_path)
    text = moot.run("export", "1").stdout.decode()
    lines = [line.replace("seen.txt", "gone.txt") if line.startswith('{"event"') else line for line in text.splitlines()]
    (other.work / "talk.jsonl").write_text("\n".join(lines) + "\n")
    assert other.run("import", "talk.jsonl").returncode == 0
    code, found = rerun(other)
    assert code == 1
    assert any("gone.txt" in words and "the request of 2.0 differs" in words for words in found["data"][0]["differences"])


def test_a_rerun_with_another_model_creates_a_conversation_for_comparison(moot: MootProcess) -> None:
    ended = moot.run("replay", "1", "--rerun", "--model", "demo@demo", "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (len(found["pairs"]), found["same"], found["b"]["forked_from"]) == (3, False, found["a"]["id"])
    assert found["b"]["id"] != found["a"]["id"] and found["b"]["model"] == "demo@demo"
    again = json.loads(moot.run("chat", "compare", found["a"]["id"], found["b"]["id"], "--json").stdout)
    assert again == found
    text = moot.run("chat", "compare", found["a"]["id"], found["b"]["id"])
    assert text.returncode == 0 and "[-" in text.stdout.decode() and "tool calls" in text.stdout.decode()
    assert json.loads(moot.run("chat", "compare", found["a"]["id"], found["a"]["id"], "--json").stdout)["same"] is True
