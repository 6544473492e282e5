"""Conversations as recordings: exported by one home, imported by another."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="look", text="I look.", reasoning="where?", tool_calls=[ToolCall("list_files", {"path": "."})]),
        Reply(when="look", text="There is \u20ac and \U0001f40b.", times=0),
        Reply(when="odd", raw=b': \xff\xfe\n\ndata: {"choices":[{"delta":{"content":"odd"},"finish_reason":"stop"}]}\n\n', times=0),
        Reply(text="More.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory, model: ScriptedProcess) -> Iterator[tuple[MootProcess, MootProcess, Path]]:
    """A home with a conversation, an empty one, and the recording of the conversation."""
    one, two = (make(tmp_path_factory.mktemp(name), model.config()) for name in ("one", "two"))
    (one.work / "seen.txt").write_text("x")
    assert one.run("run", "--tools", "list_files", "look around").returncode == 0
    assert one.run("run", "--no-tools", "-c", "odd").returncode == 0
    assert one.run("chat", "tag", "1", "draft", "release").returncode == one.run("chat", "pin", "1").returncode == 0
    file = one.work / "talk.jsonl"
    assert one.run("export", "1", "-f", "recording", "-o", str(file)).returncode == 0
    yield one, two, file
    one.close()
    two.close()


def said(moot: MootProcess, which: str = "1") -> list[tuple[str, str, Any]]:
    data = json.loads(moot.run("chat", "show", which, "--json").stdout)["data"]
    return [(message["role"], message["status"], message["parts"]) for message in data]


def frames(moot: MootProcess) -> list[tuple[Any, ...]]:
    data = json.loads(moot.run("chat", "show", "1", "--raw", "--json").stdout)["data"]
    return [(frame["seq"], frame["at"], frame["dir"], frame.get("raw"), frame.get("raw_base64")) for frame in data]


def test_a_recording_makes_the_same_conversation_again_with_every_byte(homes: tuple[MootProcess, MootProcess, Path]) -> None:
    one, two, file = homes
    ended = two.run("import", str(file), "--json")
    assert ended.returncode == 0, ended.stderr
    (added,) = json.loads(ended.stdout)["data"]
    assert (added["outcome"], added["fidelity"]["lost"], added["fidelity"]["kept"]["runs"]) == ("added", {}, 2)
    assert said(two) == said(one)
    (item,) = json.loads(two.run("chat", "list", "--json").stdout)["data"]
    assert item["tags"] == ["draft", "release"] and item["pinned_at"]
    assert frames(two) == frames(one) and any(frame[4] for frame in frames(one))
    verified = two.run("verify", "1", "--json")
    assert (verified.returncode, json.loads(verified.stdout)["damages"]) == (0, [])
    again = two.run("export", "1").stdout.decode()
    assert [IDS.sub("id", line) for line in lines(again)] == [IDS.sub("id", line) for line in lines(file.read_text())]


def lines(text: str) -> list[str]:
    """Return everything except for intended differences of an import: who started the run, and where it continues."""
    found = [re.sub(r'"(trigger|settings|directory|status)":("[^"]*"|\{[^}]*\}+|\{\})', "", line) for line in text.splitlines()]
    return [line for line in found if not line.startswith(('{"recording"', '{"run"'))]


def test_a_second_import_adds_nothing_and_says_so(homes: tuple[MootProcess, MootProcess, Path]) -> None:
    one, two, file = homes
    two.run("import", str(file))
    before = json.loads(two.run("chat", "list", "--json").stdout)["data"]
    ended = two.run("import", str(file))
    assert (ended.returncode, ended.stdout) == (0, b"") and b"is already imported" in ended.stderr
    assert json.loads(two.run("chat", "list", "--json").stdout)["data"] == before
    assert b"is already imported" in one.run("import", str(file)).stderr


def test_an_imported_run_has_ended_and_its_conversation_continues(homes: tuple[MootProcess, MootProcess, Path]) -> None:
    _one, two, file = homes
    two.run("import", str(file))
    assert json.loads(two.run("ps", "--json").stdout)["data"] == []
    found = json.loads(two.run("chat", "show", "1", "--json").stdout)["conversation"]
    assert (found["directory"], found["settings"]) == ("", {}) and found["cost"] is None
    fork = json.loads(two.run("chat", "fork", "1", "--json").stdout)["conversation"]
    elsewhere = two.work / "elsewhere"
    elsewhere.mkdir()
    continued = replace(two, work=elsewhere).run("chat", "continue", fork, "--no-tools", "and then?")
    assert continued.stdout.endswith(b"More.\n")
    assert f"moot: the conversation had no folder; it now uses {elsewhere}\n".encode() in continued.stderr
    again = two.run("chat", "continue", fork, "--no-tools", "and then?")
    assert (again.returncode, b"had no folder" in again.stderr) == (0, False)
    assert json.loads(two.run("chat", "show", fork, "--json").stdout)["conversation"]["directory"] == str(elsewhere)
    assert b"whale" not in two.run("search", "whale", "--json").stdout
    assert b"look around" in two.run("search", "around", "--json").stdout


def test_a_dry_run_stores_nothing(homes: tuple[MootProcess, MootProcess, Path], tmp_path: Path, model: ScriptedProcess) -> None:
    three = make(tmp_path, model.config())
    ended = three.run("import", str(homes[2]), "--dry-run", "--json")
    assert json.loads(ended.stdout)["data"][0]["outcome"] == "would-be-added"
    assert json.loads(three.run("chat", "list", "--json").stdout)["data"] == []


def test_a_broken_line_is_reported_and_others_are_kept(
    homes: tuple[MootProcess, MootProcess, Path], tmp_path: Path, model: ScriptedProcess
) -> None:
    three = make(tmp_path, model.config())
    broken = tmp_path / "broken.jsonl"
    whole = homes[2].read_bytes().splitlines(keepends=True)
    place = next(at for at, line in enumerate(whole) if line.startswith(b'{"exchange":"'))
    broken.write_bytes(b"".join([*whole[:place], b'{"cut off\n', *whole[place:]]))
    ended = three.run("import", str(broken))
    assert ended.returncode == 1 and b"lost: 1 line" in ended.stderr
    assert f"line {place + 1}: The line is not a JSON object.".encode() in ended.stderr
    assert said(three) == said(homes[0])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.jsonl", b"", b"No format recognizes"),
        ("words.jsonl", b"just some words\n", b"No format recognizes"),
        ("picture.jsonl", b"\x89PNG\r\n\x1a\n\x00", b"No format recognizes"),
        ("other.jsonl", b'{"a": 1}\n', b"No format recognizes"),
        ("packed.jsonl.gz", gzip.compress(bytes(64 << 20)), b"Unpack it first: gzip -dk "),
    ],
)
def test_a_file_without_a_recording_is_rejected_with_a_message(moot: MootProcess, name: str, content: bytes, words: bytes) -> None:
    (moot.work / name).write_bytes(content)
    ended = moot.run("import", name)
    assert (ended.returncode, ended.stdout) == (2, b"") and words in ended.stderr
    named = moot.run("import", name, "-f", "recording")
    assert named.returncode == 2 and b"Traceback" not in named.stderr


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config())
    yield process
    process.close()


def test_an_unfinished_run_is_recorded_and_ends_cancelled(homes: tuple[MootProcess, MootProcess, Path], moot: MootProcess) -> None:
    cut = [line for line in homes[2].read_text().splitlines() if '"seq"' not in line or json_seq(line) <= 12]
    (moot.work / "cut.jsonl").write_text("\n".join(cut) + "\n")
    assert moot.run("import", "cut.jsonl").returncode == 0
    (_, _, _), (role, status, parts), *_ = said(moot)
    assert (role, status) == ("assistant", "cancelled")
    assert all(part.get("state") not in ("streaming", "input-streaming", "input-available") for part in parts)


def json_seq(line: str) -> int:
    value = json.loads(line)
    found = value.get("seq") or value.get("event", {}).get("seq") or value.get("message", {}).get("seq") or 0
    return int(found)


RECORDED = Path(__file__).parents[1] / "recorded" / "agents"


@pytest.mark.parametrize(
    ("file", "agent_type", "messages"),
    [
        ("codex/exec-json-list.jsonl", "codex", 1),
        ("codex/app-server-accept.wire.jsonl", "codex", 2),
        ("codex/two-commands.wire.jsonl", "codex", 2),
    ],
)
def test_a_recording_of_another_agent_is_recognized_and_imported(moot: MootProcess, file: str, agent_type: str, messages: int) -> None:
    (added,) = json.loads(moot.run("import", str(RECORDED / file), "--json").stdout)["data"]
    assert (added["outcome"], added["agent_type"], added["fidelity"]["lost"]) == ("added", agent_type, {})
    found = said(moot)
    assert len(found) >= messages and found[-1][0] == "assistant"
    assert any(part["type"] == "text" and part["text"] for part in found[-1][2])
    raws = [line for line in (RECORDED / file).read_bytes().splitlines(keepends=True) if line.strip()]
    shown = json.loads(moot.run("chat", "show", "1", "--raw", "--json").stdout)["data"]
    assert [frame["raw"].encode() for frame in shown] == raws
    assert b"is already imported" in moot.run("import", str(RECORDED / file), "-f", "recording").stderr
    assert moot.run("verify").returncode == 0
    assert len(json.loads(moot.run("chat", "list", "--json").stdout)["data"]) == 1


def test_a_recording_whose_run_failed_is_stored_as_failed_and_verified(moot: MootProcess) -> None:
    file = RECORDED / "claude-code" / "overloaded.wire.jsonl"
    assert moot.run("import", str(file), "--json").returncode == 0
    assert said(moot)[-1][:2] == ("assistant", "failed")
    verified = moot.run("verify")
    assert verified.returncode == 0, verified.stdout
