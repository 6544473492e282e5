"""Installing a conversation as another agent's session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest

from conformance.formats import read_whole
from e2e.cli_process import MootProcess, make
from format_samples.claude import SAMPLES
from moot.formats.agents.claude.format import ClaudeFormat
from moot.formats.agents.codex.format import CodexFormat
from moot.formats.agents.gemini.format import Gemini
from moot.formats.agents.opencode.format import OpenCode
from moot.formats.agents.pi import Pi
from moot.formats.agents.qwen import Qwen
from moot.types.format import Format, HasLocations, MultiSource
from moot.types.message import text_of, text_part


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    """A home with one conversation; agents' files are in folders of the test."""
    home = tmp_path_factory.mktemp("home")
    one = make(home, "")
    one.more |= {"CLAUDE_CONFIG_DIR": str(home / "of-claude"), "CODEX_HOME": str(home / "of-codex")}
    one.more |= {"GEMINI_CLI_HOME": str(home / "of-gemini"), "QWEN_RUNTIME_DIR": str(home / "of-qwen")}
    one.more |= {"PI_CODING_AGENT_DIR": str(home / "of-pi"), "XDG_DATA_HOME": str(home / "of-opencode")}
    source = home / "5f0c1a52-7d0e-4c53-9d2c-1f6a3f0b7c11.jsonl"
    source.write_bytes(SAMPLES["session"])
    assert one.run("import", str(source)).returncode == 0
    yield one
    one.close()


class Installable(Format, HasLocations, MultiSource, Protocol):
    """A format of sessions that a program resumes."""


def files(moot: MootProcess, format: Installable) -> list[Path]:
    places = [place for place in format.places(Path("/nowhere"), moot.more) if place.is_dir()]
    return [path for place in places for path in format.sources(place)]


def bring(moot: MootProcess, *said: str) -> None:
    """A conversation with a fixed id and those messages."""
    messages = [
        {"id": f"m{at}", "role": "assistant" if at % 2 else "user", "parent": f"m{at - 1}" if at else None, "parts": [text_part(text)]}
        for at, text in enumerate(said)
    ]
    about = {"id": "grows", "title": "It grows", "head": f"m{len(said) - 1}"}
    source = moot.work / "grows.json"
    source.write_text(json.dumps({"moot": "conversation", "version": 1, "conversation": about, "messages": messages, "children": []}))
    assert moot.run("import", str(source)).returncode == 0


def installed(moot: MootProcess, title: str) -> Any:
    (one,) = [each for each in json.loads(moot.run("chat", "list", "--json").stdout)["data"] if each["title"] == title]
    told = moot.run("export", one["id"], "-f", "claude", "--install", "--json")
    assert told.returncode == 0, told.stderr
    return {**json.loads(told.stdout), "id": one["id"]}


@pytest.mark.parametrize(
    ("format", "program", "again"),
    [
        (ClaudeFormat(), "claude --resume", b"unchanged:"),
        (CodexFormat(), "codex resume", b"unchanged:"),
        (Gemini(), "gemini --resume", b"updated"),
        (Qwen(), "qwen --resume", b"unchanged:"),
        (Pi(), "pi --session", b"unchanged:"),
    ],
)
def test_installing_a_conversation_prints_the_command_that_resumes_it(
    moot: MootProcess, format: Installable, program: str, again: bytes
) -> None:
    told = [moot.run("export", "What is here", "-f", format.name, "--install") for _ in range(2)]
    assert [one.returncode for one in told] == [0, 0], told[0].stderr
    assert told[0].stdout == told[1].stdout and b"wrote" in told[0].stderr and again in told[1].stderr
    (file,) = files(moot, format)
    assert file.stat().st_mode & 0o777 == 0o600
    said = told[0].stdout.decode()
    assert said.startswith(f"cd {moot.work} && {program} ") and said.endswith("\n") and said.split()[-1] in file.read_text("utf-8")
    first = read_whole(format, file)[0]
    assert text_of(first.messages[0].parts) == "What is here?" and first.facts.title == "What is here"


def test_a_session_that_a_program_has_to_import_is_printed_with_that_command(moot: MootProcess) -> None:
    bring(moot, "First?", "Second.")
    (one,) = [each for each in json.loads(moot.run("chat", "list", "--json").stdout)["data"] if each["title"] == "It grows"]
    told = [json.loads(moot.run("export", one["id"], "-f", "opencode", "--install", "--json").stdout) for _ in range(2)]
    assert [each["outcome"] for each in told] == ["written", "unchanged"]
    file, command = Path(told[0]["file"]), told[0]["command"]
    assert told[0]["setup"] == ["opencode", "import", str(file)] and command[:2] == ["opencode", "--session"]
    bring(moot, "First?", "Second.", "Third?")
    ended = moot.run("export", one["id"], "-f", "opencode", "--install")
    assert b"updated" in ended.stderr
    assert ended.stdout.decode() == f"cd {moot.work} && opencode import {file} && {' '.join(command)}\n"
    assert [text_of(message.parts) for message in read_whole(OpenCode(), file)[0].messages] == ["First?", "Second.", "Third?"]
    assert moot.run("purge", one["id"], "--yes").returncode == 0


def test_an_installed_session_is_updated_until_another_program_changes_it(moot: MootProcess) -> None:
    bring(moot, "First?", "Second.")
    one = installed(moot, "It grows")
    bring(moot, "First?", "Second.", "Third?")
    grown = installed(moot, "It grows")
    assert (one["outcome"], grown["outcome"], grown["file"]) == ("written", "replaced", one["file"])
    assert [text_of(message.parts) for message in read_whole(ClaudeFormat(), Path(one["file"]))[0].messages] == [
        "First?",
        "Second.",
        "Third?",
    ]
    with (file := Path(one["file"])).open("ab") as said:
        said.write(b'{"type":"user","message":{"role":"user","content":"said there"}}\n')
    before = file.read_bytes()
    again, once_more = installed(moot, "It grows"), installed(moot, "It grows")
    assert file.read_bytes() == before
    assert (again["outcome"], again["beside"]) == ("written", one["file"]) and again["command"] != one["command"]
    assert (once_more["outcome"], once_more["file"]) == ("unchanged", again["file"])
    listed = json.loads(moot.run("purge", grown["id"], "--yes", "--json").stdout)["files"]
    source = str(moot.work / "grows.json")
    assert {each["path"] for each in listed} == {one["file"], again["file"], source} and file.read_bytes() == before
    file.unlink()


def test_an_installed_session_is_imported_only_after_it_grew(moot: MootProcess) -> None:
    def brought_in() -> Any:
        ended = moot.run("import", "--all", "-f", "claude", "--json")
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    brought_in()
    file = Path(installed(moot, "What is here")["file"])
    told = brought_in()
    assert not [one for one in told["data"] if one["path"] == str(file)] and told["sources"]["unchanged"] == told["sources"]["total"]
    last = json.loads([line for line in file.read_bytes().splitlines() if b'"uuid"' in line][-1])
    more = {**last, "type": "user", "uuid": str(uuid4()), "parentUuid": last["uuid"], "message": {"role": "user", "content": "said there"}}
    with file.open("ab") as said:
        said.write(json.dumps(more).encode() + b"\n")
    (added,) = [one for one in brought_in()["data"] if one["source_id"] == file.stem]
    assert added["outcome"] == "added"
    assert moot.run("purge", added["conversation"]["id"], "--yes").returncode == 0
    file.unlink()


@pytest.mark.parametrize("made", [Path.mkdir, lambda path: path.symlink_to("/etc/passwd"), lambda path: path.write_text("not ours")])
def test_foreign_sessions_are_left_unchanged(moot: MootProcess, made: Callable[[Path], Any]) -> None:
    first = Path(installed(moot, "What is here")["file"])
    first.unlink()
    made(first)
    kept = first.lstat()
    about = (kept.st_mode, kept.st_size, kept.st_mtime_ns)
    other = installed(moot, "What is here")
    assert other["beside"] == str(first) and Path(other["file"]).is_file()
    now = first.lstat()
    assert (now.st_mode, now.st_size, now.st_mtime_ns) == about
    first.rmdir() if first.is_dir() else first.unlink()


def test_the_result_is_available_as_json(moot: MootProcess) -> None:
    told = moot.run("export", "What is here", "-f", "claude", "--install", "--json")
    document = json.loads(told.stdout)
    assert Path(document["file"]).is_file() and document["command"][:2] == ["claude", "--resume"]
    assert document["fidelity"]["kept"]["tool calls"] == 2


@pytest.mark.parametrize("more", [["-f", "json"], ["-f", "claude", "--share"], ["-f", "claude", "-o", "x"], ["-f", "claude", "--all"]])
def test_a_conversation_that_cannot_be_resumed_is_rejected(moot: MootProcess, more: list[str]) -> None:
    ended = moot.run("export", *([] if "--all" in more else ["What is here"]), "--install", *more)
    assert ended.returncode == 2 and not ended.stdout


def test_a_session_is_not_installed_for_an_opencode_that_stores_none(moot: MootProcess) -> None:
    moot.more["OPENCODE_DB"] = ":memory:"
    try:
        ended = moot.run("export", "What is here", "-f", "opencode", "--install")
    finally:
        del moot.more["OPENCODE_DB"]
    assert ended.returncode == 2 and not ended.stdout
    assert b"keeps its sessions only in memory, because OPENCODE_DB is ':memory:'" in ended.stderr
    assert b"Traceback" not in ended.stderr
