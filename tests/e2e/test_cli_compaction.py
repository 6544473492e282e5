"""`moot chat compact` and `context`, with kills between the summary and its record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow

AGENT = "\nagents: {default: {tools: [], history: {keep: 2}}, other: {agent_type: claude-code}}\n"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [Reply(when="Write the summary", text="They like fish.\n\nAnd <b>cats</b>.", times=0), Reply(text="Sure.", times=0)]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config() + AGENT)
    for at, prompt in enumerate(("I like fish", "and cats", "what do I like?")):
        assert process.run("run", *(["-c"] if at else []), prompt).returncode == 0
    yield process
    process.close()


def document(moot: MootProcess, *arguments: str) -> Any:
    done = moot.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def first(moot: MootProcess, conversation: str = "1") -> str:
    """Return the first message of the next request after the system prompt."""
    return str(document(moot, "chat", "context", conversation, "--request")["request"]["messages"][1]["content"])


def test_a_summary_is_sent_shown_exported_and_undone(moot: MootProcess, tmp_path: Path) -> None:
    before = document(moot, "chat", "show", "1")["data"]
    assert first(moot) == "I like fish"
    done = moot.run("chat", "compact", "1", "--focus", "animals")
    assert done.stdout == b"They like fish.\n\nAnd <b>cats</b>.\n", done.stderr
    assert "They like fish." in first(moot)
    assert document(moot, "chat", "show", "1")["data"] == before
    shown = moot.run("chat", "show", "1").stdout.decode()
    assert shown.index("and cats") < shown.index("── Summary of the messages above\nThey like fish.") < shown.index("what do I like?")
    assert "They like fish." in moot.run("export", "1", "-f", "md").stdout.decode()
    page = moot.run("export", "1", "-f", "html").stdout.decode()
    assert "Summary of the messages above" in page and "<b>cats" not in page
    assert document(moot, "search", "They")["data"] == []
    (tmp_path / "whole.jsonl").write_bytes(moot.run("export", "1", "-f", "recording").stdout)
    (tmp_path / "talk.md").write_bytes(moot.run("export", "1", "-f", "md").stdout)
    assert moot.run("verify", "--all").returncode == 0
    assert moot.run("chat", "compact", "1", "--undo").returncode == 0
    request = document(moot, "chat", "context", "1", "--request", "--prompt", "and now?")["request"]
    assert [message["content"] for message in request["messages"][1:]][::6] == ["I like fish", "and now?"]
    assert b"has no summary" in moot.run("chat", "compact", "1", "--undo").stderr
    for name, start in (("whole.jsonl", "[Summary"), ("talk.md", "I like fish")):
        assert moot.run("purge", "1", "--yes").returncode == 0
        assert moot.run("import", str(tmp_path / name)).returncode == 0
        assert first(moot).startswith(start), name
    assert moot.run("verify", "--all").returncode == 0


@pytest.mark.parametrize("name", ["compaction.summarized", "compaction.recorded"])
def test_a_kill_after_the_summary_leaves_a_whole_record_or_none(moot: MootProcess, name: str) -> None:
    moot.more.update({"MOOT_TESTING": "1", "MOOT_CRASH_AT": name})
    assert moot.run("chat", "compact", "1").returncode != 0
    del moot.more["MOOT_CRASH_AT"]
    assert ("They like fish." in first(moot)) is (name == "compaction.recorded")
    if name == "compaction.summarized":
        assert moot.run("chat", "compact", "1").returncode == 0
        assert "They like fish." in first(moot)
    assert moot.run("verify", "--all").returncode == 0


def test_the_context_is_shown_by_its_parts_and_outside_agents_manage_their_own(moot: MootProcess) -> None:
    report = document(moot, "chat", "context", "1")
    assert [piece["name"] for piece in report["pieces"]] == ["system prompt", "tools", "summary", "messages", "tool outputs"]
    assert report["tokens"] == sum(piece["tokens"] for piece in report["pieces"]) and "request" not in report
    lines = moot.run("chat", "context", "1").stdout.decode().splitlines()
    assert lines[0].startswith("░") and "scripted@mine" in lines[0] and lines[1].startswith("system prompt")
    assert moot.run("chat", "settings", "1", "agent=other").returncode == 0
    for command in ("context", "compact"):
        failed = moot.run("chat", command, "1")
        assert failed.returncode == 2 and b"other manages its own context" in failed.stderr
