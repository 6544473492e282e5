"""Replaying conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="look", text="I look.", tool_calls=[ToolCall("list_files", {"path": "."})]),
        Reply(when="look", text="There is a **file**.", times=0),
        Reply(when="slowly", text="one two three", chunk_size=4, delay=0.4, times=0),
        Reply(text="More.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path_factory.mktemp("one"), model.config())
    assert process.run("run", "--tools", "list_files", "look around").returncode == 0
    assert process.run("run", "--no-tools", "-c", "slowly").returncode == 0
    yield process
    process.close()


@pytest.mark.slow
def test_in_a_pipe_a_replay_is_plain_text_without_delays(moot: MootProcess) -> None:
    ended = moot.run("replay", "1")
    assert ended.returncode == 0
    text = ended.stdout.decode()
    assert "look around\n" in text and "There is a **file**.\n" in text and "one two three\n" in text
    assert text.index("look around") < text.index("I look.") < text.index("slowly") < text.index("one two")
    assert "→ list_files" in ended.stderr.decode() and b"\x1b" not in ended.stdout + ended.stderr


def test_as_lines_a_replay_is_the_stored_events(moot: MootProcess) -> None:
    found = [json.loads(line) for line in moot.run("replay", "1", "--jsonl").stdout.splitlines()]
    seqs = [event["seq"] for event in found]
    assert seqs == sorted(seqs) and {"message", "chunks", "exchange", "raw"} <= {event["kind"] for event in found}
    later = [json.loads(line)["seq"] for line in moot.run("replay", "1", "--jsonl", "--from", str(seqs[20])).stdout.splitlines()]
    assert later == seqs[20:]


def test_a_position_past_the_end_and_two_speeds_are_rejected(moot: MootProcess) -> None:
    ended = moot.run("replay", "1", "--from", "99999")
    assert ended.returncode == 2 and b"There is no event number 99999" in ended.stderr
    assert moot.run("replay", "1", "--instant", "--speed", "2").returncode == 2


def test_on_a_terminal_a_replay_is_drawn_like_the_live_run(moot: MootProcess) -> None:
    live = PtyScreen(moot, "chat", "show", "1", columns=100)
    live.wait_for("one two three")
    screen = PtyScreen(moot, "replay", "1", "--instant", columns=100)
    screen.wait_for("one two three")
    assert "› look around" in screen.text and "✓ List ." in screen.text
    assert "There is a file." in screen.text  # Markdown is rendered


def test_a_replay_keeps_the_original_timing_and_ctrl_c_stops_it(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "replay", "1", "--speed", "0.2")
    screen.wait_for("look around")
    screen.child.sendintr()
    screen.child.expect_exact(pexpect.EOF)
    screen.child.wait()
    assert screen.child.exitstatus == 130
    assert "one two three" not in screen.text


def test_long_silences_are_shortened_and_reported(moot: MootProcess, tmp_path: Path, model: ScriptedProcess) -> None:
    recording = moot.run("export", "1").stdout.decode().splitlines()
    lines: list[str] = []
    for line in recording:
        value = json.loads(line)
        place = value if "seq" in value else value.get("event", {})
        if place.get("at") and place["seq"] > 10:
            place["at"] += 3_600_000_000 * 5
        lines.append(json.dumps(value))
    other = make(tmp_path, model.config())
    (other.work / "late.jsonl").write_text("\n".join(lines) + "\n")
    assert other.run("import", "late.jsonl").returncode == 0
    ended = other.run("replay", "1", "--speed", "50")
    assert b"skipped a pause of 5 h" in ended.stderr and b"one two three" in ended.stdout
