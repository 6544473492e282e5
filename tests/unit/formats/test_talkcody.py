from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from format_samples.talkcody import sample
from import_stage import only, source, stored
from moot.errors import UsageError
from moot.formats.apps.talkcody.format import TalkCody
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Source
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, ImportedRecord, WholeConversation
from moot.types.message import Message

TALKCODY = TalkCody()
AT = 1_779_726_691_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "com.talkcody"
    folder.mkdir()
    (folder / "talkcody.db").write_bytes(sample())
    return folder


def put(home: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(home / "talkcody.db")) as connection:
        connection.execute(statement, values)
        connection.commit()


def read(path: Path) -> list[WholeConversation]:
    return [one.whole() for one in TALKCODY.read(path)]


def test_rows_of_an_answer_are_one_message_with_a_step_for_each_model_call(home: Path) -> None:
    [one] = read(home)
    assert [(message.role, message.source_id) for message in one.messages] == [("user", "m1"), ("assistant", "m2"), ("user", "m6")]
    kinds = [part["type"] for part in one.messages[1].parts]
    assert kinds == ["step-start", "reasoning", "dynamic-tool", "step-start", "reasoning", "text"]


def placed(home: Path) -> Source:
    return replace(source(home, TALKCODY), placed=True)


@pytest.mark.anyio
async def test_projects_keep_their_name_context_and_rules(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    put(home, "UPDATE projects SET context = 'A list.', rules = 'Be brief.', description = 'Shopping', root_path = ?", str(root))
    async with stored(tmp_path / "moot") as store:
        await import_sources(store, [placed(home)], ImportOptions(), Report())
        conversation = await only(store)
        project = await store.projects.get(conversation.project)
        assert (project.name, project.description, project.context, project.rules) == ("Notes", "Shopping", "A list.", "Be brief.")
        assert (project.root_path, conversation.directory) == (str(root), str(root))
        await store.projects.update(project.id, rules="Be long.")
        put(home, "INSERT INTO messages VALUES ('m8', 't1', 'user', 'More?', NULL, ?, NULL, 0)", AT + 20)
        put(
            home,
            "INSERT INTO conversations (id, title, project_id, created_at, updated_at) VALUES ('t2', 'Two', 'p', ?, ?)",
            AT + 30,
            AT + 30,
        )
        put(home, "INSERT INTO messages VALUES ('m9', 't2', 'user', 'Hello', NULL, ?, NULL, 0)", AT + 30)
        await import_sources(store, [placed(home)], ImportOptions(), Report())
        both = (await store.conversations.list()).items
        assert [one.project for one in both] == [project.id, project.id]
        assert (await store.projects.get(project.id)).rules == "Be long."


@pytest.mark.anyio
async def test_a_project_from_a_file_elsewhere_has_no_root_and_the_default_project_stays_ours(home: Path, tmp_path: Path) -> None:
    put(home, "UPDATE projects SET root_path = ?", str(tmp_path))
    async with stored(tmp_path / "moot") as store:
        await import_sources(store, [source(home / "talkcody.db", TALKCODY)], ImportOptions(), Report())
        conversation = await only(store)
        assert ((await store.projects.get(conversation.project)).root_path, conversation.directory) == (None, "")
    put(home, "UPDATE projects SET id = 'default'")
    put(home, "UPDATE conversations SET project_id = 'default'")
    async with stored(tmp_path / "other") as store:
        await import_sources(store, [placed(home)], ImportOptions(), Report())
        assert [(await only(store)).project, len((await store.projects.list()).items)] == ["default", 1]


def test_an_empty_answer_is_reported_as_the_result_of_a_crash(home: Path) -> None:
    [one] = read(home)
    [broken] = [entry for entry in one.entries if isinstance(entry, ImportedRecord) and entry.problem]
    assert "crash" in broken.problem and one.fidelity.lost["records"] == 1


def test_attachments_are_read_only_from_their_folder(home: Path) -> None:
    (home / "secret.txt").write_text("stolen")
    for id, path in (
        ("a2", "/elsewhere/attachments/kept.txt"),
        ("a3", str(home / "secret.txt")),
        ("a4", str(home / "attachments/../secret.txt")),
    ):
        put(home, "INSERT INTO message_attachments VALUES (?, 'm1', 'file', 'x.txt', ?, 'text/plain', 4, 0)", id, path)
    (home / "attachments").mkdir()
    (home / "attachments" / "kept.txt").write_text("kept")
    [one] = read(home)
    files = [part["url"] for part in one.messages[0].parts if part["type"] == "file"]
    assert files == ["data:text/plain;base64,a2VwdA=="]
    assert one.fidelity.lost == {"pictures": 1, "files": 2, "records": 1}


def test_usage_belongs_to_the_answer_at_that_time(home: Path) -> None:
    put(home, "UPDATE messages SET content = 'Nothing new.' WHERE id = 'm7'")
    put(home, "INSERT INTO api_usage_events VALUES ('u2', 't1', 'big', 'mine', 7, 3, 0.001, ?)", AT + 11)
    [one] = read(home)
    steps = [[step["usage"]["input"] for step in message.metadata["steps"]] for message in one.messages if message.role == "assistant"]  # type: ignore[index, call-overload, union-attr]
    assert steps == [[100], [7]]
    assert one.fidelity.approximated == {"usage": 2, "costs": 2, "models": 2}


def test_messages_written_by_the_server_are_read(home: Path) -> None:
    calls = {"content": {"type": "tool_calls", "calls": [{"id": "c9", "name": "bash", "input": {"command": "ls"}}]}}
    result = {"content": {"type": "tool_result", "result": {"toolCallId": "c9", "toolName": "bash", "output": "boom", "status": "error"}}}
    put(home, "DELETE FROM messages WHERE id = 'm7'")
    for number, (role, content) in enumerate([("assistant", calls), ("tool", result)]):
        row = (f"n{number}", role, json.dumps(content), AT + 20 + number)
        put(home, "INSERT INTO messages (id, conversation_id, role, content, timestamp) VALUES (?, 't1', ?, ?, ?)", *row)
    call = read(home)[0].messages[-1].parts[1]
    assert (call["toolName"], call["state"], call["errorText"]) == ("bash", "output-error", "boom")


def test_the_latest_compacted_history_is_kept(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "project" / ".talkcody" / "context" / "t1" / "compacted-messages.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"messages": []}')
    put(home, "UPDATE projects SET root_path = ?", str(tmp_path / "project"))
    [one] = read(home)
    assert file.read_bytes() in [entry.raw for entry in one.entries] and one.facts.directory == str(tmp_path / "project")


def test_an_older_schema_without_the_later_tables_is_read(home: Path) -> None:
    for table in ("message_attachments", "api_usage_events", "todos", "projects"):
        put(home, f"DROP TABLE {table}")
    put(home, "ALTER TABLE messages DROP COLUMN reasoning_content")
    assert len(read(home)[0].messages) == 3


def test_nested_tool_calls_are_child_conversations(tmp_path: Path) -> None:
    inner = {
        "id": "i1",
        "role": "tool",
        "content": [{"type": "tool-call", "toolCallId": "c2", "toolName": "glob", "input": {}}],
        "timestamp": AT,
    }
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "callAgent", "input": {"task": "look"}}
    outer = {"id": "o1", "role": "tool", "content": [call], "timestamp": AT, "nestedTools": [inner]}
    value = {"version": "1.0", "task": {"id": "t1", "title": "T", "createdAt": AT, "messageCount": 1}, "messages": [outer]}
    path = tmp_path / "share.json"
    path.write_text(json.dumps(value))
    first, second = read(path)
    assert (second.conversation.source_id, second.conversation.parent, second.conversation.parent_call) == ("t1/c1", "t1", "c1")
    assert first.messages[0].parts[1]["toolName"] == "callAgent" and second.messages[0].parts[1]["toolName"] == "glob"


def test_a_newer_snapshot_is_rejected_with_its_version(tmp_path: Path) -> None:
    path = tmp_path / "share.json"
    path.write_text('{"version": "2.0", "task": {"id": "t", "messageCount": 0}, "messages": []}')
    with pytest.raises(UsageError, match=r"version '2\.0'"):
        read(path)


def test_a_failed_call_survives_a_round_trip(tmp_path: Path) -> None:
    call = {
        "type": "dynamic-tool",
        "toolName": "bash",
        "toolCallId": "c",
        "state": "output-error",
        "input": {"command": "x"},
        "errorText": "no x",
    }
    path = tmp_path / "share.json"
    path.write_bytes(TALKCODY.write(ExportedConversation(Conversation("c1", title="T"), (Message("a", "assistant", (call,)),))).data)  # type: ignore[arg-type]
    back = read(path)[0].messages[0].parts[1]
    assert {name: back[name] for name in call} == call
