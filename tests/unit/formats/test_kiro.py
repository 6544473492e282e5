"""Sessions of Kiro's command line and editor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from format_samples import samples_of
from moot.formats.kit.database import create_database
from moot.plugins import FORMATS
from moot.types.format import WholeConversation
from moot.types.message import is_tool, text_of

TABLES = "CREATE TABLE conversations_v2 (key TEXT, conversation_id TEXT, value TEXT, created_at INTEGER, updated_at INTEGER)"


def read(path: Path, name: str = "kiro-cli") -> list[WholeConversation]:
    return [one.whole() for one in FORMATS.make(name).read(path)]


def value(prompt: str, *entries: Any) -> str:
    first = {"user": {"content": {"Prompt": {"prompt": prompt}}}, "assistant": {"Response": {"message_id": "m1", "content": "Yes."}}}
    return json.dumps({"conversation_id": "k1", "history": [first, *entries]})


def database(path: Path, *rows: tuple[str, str, str, int, int]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(create_database(TABLES, [("INSERT INTO conversations_v2 VALUES (?, ?, ?, ?, ?)", rows)]))
    return path


def test_the_newest_row_of_a_conversation_is_read(tmp_path: Path) -> None:
    rows = [("/srv/new", "k1", value("new"), 1, 3), ("/srv/old", "k1", value("old"), 1, 2)]
    (found,) = read(database(tmp_path / "data.sqlite3", *rows))
    assert ([text_of(one.parts) for one in found.messages], found.facts.directory) == (["new", "Yes."], "/srv/new")


def test_outputs_of_the_database_are_those_of_its_calls(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "fs_read", "args": {"path": "a.txt"}}
    result = {"tool_use_id": "c1", "content": [{"Json": {"exit": 1}}], "status": "Error"}
    entries = [
        {
            "user": {"content": {"Prompt": {"prompt": "Go"}}},
            "assistant": {"ToolUse": {"message_id": "m2", "content": "", "tool_uses": [call]}},
        },
        {
            "user": {"content": {"ToolUseResults": {"tool_use_results": [result]}}},
            "assistant": {"Response": {"message_id": "m3", "content": "It failed."}},
            "request_metadata": {"model_id": "claude-sonnet-4", "stream_end_timestamp_ms": 1783524940000},
        },
    ]
    (found,) = read(database(tmp_path / "data.sqlite3", ("/srv", "k1", value("Hi", *entries), 1, 2)))
    answer = found.messages[-1]
    (part,) = filter(is_tool, answer.parts)
    assert (part["toolName"], part["input"], part["errorText"]) == ("fs_read", {"path": "a.txt"}, '{"exit":1}')
    assert (answer.metadata["model"], found.fidelity.lost) == ("claude-sonnet-4", {})


def test_a_session_in_the_database_is_read_from_there(tmp_path: Path) -> None:
    sample = samples_of(FORMATS.make("kiro-cli"))["session"]
    assert isinstance(sample, bytes)
    folder = tmp_path / ".kiro" / "sessions" / "cli"
    folder.mkdir(parents=True)
    for name, id in (("one", "k1"), ("two", "k2")):
        (folder / f"{name}.jsonl").write_bytes(sample)
        (folder / f"{name}.json").write_text(json.dumps({"session_id": id, "cwd": "/srv", "title": name}))
    format: Any = FORMATS.make("kiro-cli")
    assert len(list(format.sources(folder))) == 2
    database(tmp_path / ".local/share/kiro-cli/data.sqlite3", ("/srv", "k1", value("Hi"), 1, 2))
    (path,) = format.sources(folder)
    (found,) = read(path)
    assert (found.conversation.source_id, found.facts.title, found.facts.directory) == ("k2", "two", "/srv")


def test_an_answer_without_its_execution_is_reported(tmp_path: Path) -> None:
    history = [
        {"message": {"role": "user", "content": "Hi", "id": "m1"}},
        {"message": {"role": "assistant", "content": "On it.", "id": "m2"}, "executionId": "e1", "promptLogs": [{"completion": "Hello."}]},
    ]
    path = tmp_path / "workspace-sessions" / "L3Nydg__" / "s1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"sessionId": "s1", "workspaceDirectory": "/srv", "history": history}))
    (found,) = read(path, "kiro-ide")
    assert ([text_of(one.parts) for one in found.messages], found.fidelity.lost) == (["Hi", "Hello."], {"records": 1})


def test_older_chats_begin_with_instructions(tmp_path: Path) -> None:
    sample = samples_of(FORMATS.make("kiro-ide"))["chat"]
    assert isinstance(sample, bytes)
    path = tmp_path / "x.chat"
    path.write_bytes(sample)
    (found,) = read(path, "kiro-ide")
    assert [one.role for one in found.messages] == ["system", "assistant", "user", "assistant"]
    assert found.messages[-1].metadata["model"] == "claude-sonnet-4"
