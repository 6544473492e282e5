"""Conversations as files: one, all of them, for sharing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from format_samples import samples_of
from moot.formats.apps.chatgpt import ChatGPT
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

KEY = "sk-ant-api03-Vb2Qk9Xw3mZt7Lp0Rs5Yd8"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="look", text="I look.", reasoning="where?", tool_calls=[ToolCall("list_files", {"path": "."})]),
        Reply(when="look", text="There is **one** file.", times=0),
        Reply(text=f"Write to quentin@example.org, key {KEY}, in /home/quentin/x.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory, model: ScriptedProcess) -> Iterator[MootProcess]:
    """A home with two conversations: 1 is full of private data, 2 has a tool call."""
    one = make(tmp_path_factory.mktemp("home"), model.config())
    (one.work / "seen.txt").write_text("x")
    assert one.run("run", "--tools", "list_files", "look around").returncode == 0
    assert one.run("run", "--no-tools", f"tell me about {KEY}").returncode == 0
    yield one
    one.close()


def document(ended: Any) -> Any:
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize(
    ("format", "words"), [("html", b"There is <strong>one</strong> file."), ("ipynb", b"There is **one** file."), ("jsonl", b"list_files")]
)
def test_an_exported_conversation_reports_its_attachments(moot: MootProcess, format: str, words: bytes) -> None:
    file = moot.work / f"talk.{format}"
    told = document(moot.run("export", "2", "-f", format, "-o", str(file), "--json"))
    assert words in file.read_bytes() and told["bytes"] == file.stat().st_size and file.stat().st_mode & 0o777 == 0o600
    assert told["fidelity"]["kept"]["messages"] == 2
    assert sum(told["fidelity"][word].get("tool calls", 0) for word in ("kept", "approximated")) == 1


def test_branches_a_format_cannot_represent_are_reported_as_lost(tmp_path: Path, model: ScriptedProcess) -> None:
    (tmp_path / "home").mkdir()
    one = make(tmp_path / "home", model.config())
    source = one.work / "conversations.json"
    source.write_bytes(samples_of(ChatGPT())["conversations"])
    assert one.run("import", str(source)).returncode == 0
    told = [document(one.run("export", "1", "-f", name, "-o", str(one.work / name), "--json")) for name in ("codex", "claude")]
    assert told[0]["fidelity"]["lost"]["branches"] == 1 and told[0]["fidelity"]["lost"]["messages"] == 1
    assert told[1]["fidelity"]["kept"]["branches"] == 1 and not told[1]["fidelity"]["lost"]
    shown = document(one.run("export", "1", "-f", "codex", "--branch", "shown", "-o", str(one.work / "shown"), "--json"))
    assert "branches" not in shown["fidelity"]["lost"]
    one.close()


def test_an_exported_json_file_can_be_imported(moot: MootProcess, tmp_path: Path) -> None:
    file = moot.work / "back.json"
    assert moot.run("export", "2", "-f", "json", "-o", str(file)).returncode == 0
    other = make(tmp_path, "")
    assert document(other.run("import", str(file), "--json"))
    again = document(other.run("chat", "show", "1", "--json"))["data"]
    assert [one["parts"] for one in again] == [one["parts"] for one in document(moot.run("chat", "show", "2", "--json"))["data"]]
    other.close()


def test_all_are_written_once_under_names_that_stay(moot: MootProcess) -> None:
    folder = moot.work / "all"
    first = document(moot.run("export", "--all", "-f", "jsonl", "-o", str(folder), "--json"))
    assert (first["written"], first["unchanged"], first["failed"]) == (2, 0, [])
    names = sorted(one["file"] for one in first["data"])
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, "index.jsonl"])
    assert all(name.endswith(".jsonl") and name[:2] == "20" for name in names)
    (folder / names[0]).unlink()
    with (folder / "index.jsonl").open("a") as index:
        index.write('{"cut')
    again = document(moot.run("export", "--all", "-f", "jsonl", "-o", str(folder), "--json"))
    assert (again["written"], again["unchanged"]) == (1, 1)
    assert sorted(one["file"] for one in again["data"]) == names
    (folder / "index.jsonl").unlink()
    third = document(moot.run("export", "--all", "-f", "jsonl", "-o", str(folder), "--json"))
    assert sorted(one["file"] for one in third["data"]) == names
    assert len((folder / "index.jsonl").read_text().splitlines()) == 2


def test_all_can_be_fewer(moot: MootProcess) -> None:
    future = ("--since", "2999-01-01")
    assert document(moot.run("export", "--all", "-f", "html", "-o", str(moot.work / "few"), *future, "--json"))["data"] == []
    some = document(
        moot.run("export", "--all", "-f", "html", "-o", str(moot.work / "few"), "--since", "1h", "--project", "default", "--json")
    )
    assert len(some["data"]) == 2
    assert moot.run("export", "1", "-f", "html", "--since", "1h").returncode == 2


def test_a_shareable_export_has_no_secrets_and_lists_the_redactions(moot: MootProcess) -> None:
    file = moot.work / "shared.html"
    ended = moot.run("export", "1", "-f", "html", "--share", "-o", str(file), "--json")
    told = document(ended)
    written = file.read_text()
    for canary in (KEY, "quentin", "example.org"):
        assert canary not in written and canary not in ended.stdout.decode() + ended.stderr.decode()
    kinds = {one["kind"] for one in told["left_out"]}
    assert {"secrets", "paths", "emails"} <= kinds
    kept = moot.run("export", "1", "-f", "html", "--share", "--keep", "emails").stdout.decode()
    assert "quentin@example.org" in kept and KEY not in kept
    folder = moot.work / "shared"
    assert moot.run("export", "--all", "-f", "html", "--share", "-o", str(folder)).returncode == 0
    assert not [path for path in folder.iterdir() if KEY in path.name or KEY.lower() in path.name or KEY in path.read_text()]


def test_the_lossless_format_cannot_be_shared(moot: MootProcess) -> None:
    for flags in (("1",), ("--all", "-o", str(moot.work / "never"))):
        ended = moot.run("export", *flags, "-f", "recording", "--share")
        assert ended.returncode == 2 and b"html" in ended.stderr and not ended.stdout
    assert moot.run("export", "1", "-f", "html", "--keep", "emails").returncode == 2
    assert moot.run("export", "1", "-f", "html", "--share", "--keep", "secrets").returncode == 2


def test_binary_output_is_not_written_to_a_terminal(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "export", "1", "-f", "html")
    screen.wait_for("is not readable text")
    assert screen.wait_exit() == 2


def test_a_share_needs_a_confirmation_and_its_link_is_not_stored(moot: MootProcess) -> None:
    refused = moot.run("share", "1")
    assert refused.returncode == 3 and not refused.stdout and b"--preview" in refused.stderr
    looked = document(moot.run("share", "1", "--preview", str(moot.work / "page.html"), "--json"))
    assert {"secrets", "emails"} <= {one["kind"] for one in looked["left_out"]} and KEY not in (moot.work / "page.html").read_text()
    assert document(moot.run("share", "--list", "--json"))["data"] == []
    shared = moot.run("share", "1", "--yes", "--expires", "12h")
    link = shared.stdout.decode().strip()
    assert shared.returncode == 0 and "/share/" in link and b"only reachable from this machine" in shared.stderr
    (one,) = document(moot.run("share", "--list", "--json"))["data"]
    secret = link.rpartition("/")[2].encode()
    assert not [path for path in moot.home.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert document(moot.run("share", "--revoke", one["id"][:20], "--json"))["revoked_at"]
    assert document(moot.run("share", "--list", "--json"))["data"] == []
    for wrong in (("1", "--yes", "--expires", "never"), ("1", "--yes", "--expires", "9999d"), ("1", "--list"), ()):
        assert moot.run("share", *wrong).returncode == 2


def test_a_purge_lists_exported_files_and_keeps_them(moot: MootProcess) -> None:
    assert moot.run("run", "--no-tools", "something of which nothing is to stay").returncode == 0
    file, folder = moot.work / "kept.md", moot.work / "all"
    (one,) = [each for each in document(moot.run("chat", "list", "--json"))["data"] if "nothing is to stay" in each["title"]]
    document(moot.run("export", one["id"], "-f", "md", "-o", "kept.md", "--json"))
    told = document(moot.run("export", "--all", "-f", "md", "-o", str(folder), "--json"))
    (name,) = [each["file"] for each in told["data"] if each["id"] == one["id"]]
    receipt = document(moot.run("purge", one["id"], "--yes", "--json"))
    left = {each["path"]: each["what"] for each in receipt["files"] if each["what"] == "left"}
    assert left == {str(file): "left", str(folder / name): "left"}
    assert file.is_file() and (folder / name).is_file()


def test_an_existing_file_is_replaced_only_after_a_confirmation(moot: MootProcess) -> None:
    (kept := moot.work / "kept.html").write_text("mine")
    refused = moot.run("export", "1", "-f", "html", "-o", str(kept))
    assert refused.returncode == 2 and b"--force" in refused.stderr and kept.read_text() == "mine"
    for answer, words, code in (("n\r", "the file was not written", 1), ("y\r", "wrote", 0)):
        screen = PtyScreen(moot, "export", "1", "-f", "html", "-o", str(kept), columns=200)
        screen.wait_for("Replace it?")
        screen.send(answer)
        screen.wait_for(words)
        assert screen.wait_exit() == code and (kept.read_text() == "mine") is bool(code)
    kept.write_text("mine")
    assert moot.run("export", "1", "-f", "html", "-o", str(kept), "--force").returncode == 0 and kept.read_text() != "mine"


def test_exporting_to_a_device_keeps_the_device(moot: MootProcess) -> None:
    os.mkfifo(pipe := moot.work / "pipe")
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    assert moot.run("export", "1", "-f", "html", "-o", str(pipe)).returncode == 0
    assert b"<!doctype html>" in reader.communicate(timeout=60)[0] and pipe.is_fifo()
    assert moot.run("export", "1", "-f", "html", "-o", str(moot.work)).returncode == 1 and moot.work.is_dir()


def test_a_truncated_file_is_rewritten_and_an_interrupted_export_explains_how_to_continue(moot: MootProcess) -> None:
    folder = moot.work / "cut"
    first = document(moot.run("export", "--all", "-f", "html", "-o", str(folder), "--json"))
    cut = folder / first["data"][0]["file"]
    whole = cut.read_bytes()
    cut.write_bytes(whole[:100])
    again = document(moot.run("export", "--all", "-f", "html", "-o", str(folder), "--json"))
    assert (again["written"], again["unchanged"], cut.read_bytes()) == (1, len(first["data"]) - 1, whole)
    (folder / first["data"][-1]["file"]).unlink()
    (folder / first["data"][-1]["file"]).mkdir()
    ended = moot.run("export", "--all", "-f", "html", "-o", str(folder))
    assert ended.returncode == 1 and b"run the same command again to continue" in ended.stderr
    (folder / first["data"][-1]["file"]).rmdir()
