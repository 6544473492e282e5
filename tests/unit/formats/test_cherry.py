from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from format_samples.cherry import samples
from moot.errors import UsageError
from moot.formats.apps.cherry.format import Cherry, message_of
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, ImportedMessage, ImportedRecord, WholeConversation
from moot.types.message import text_of

CHERRY = Cherry()


def folder(tmp_path: Path, sample: str, name: str) -> Path:
    file = tmp_path / "CherryStudio" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(samples()[sample])
    return file


def put(file: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement, values)
        connection.commit()


def read(path: Path) -> list[WholeConversation]:
    return [one.whole() for one in CHERRY.read(path)]


def test_blocks_of_the_first_version_are_parts(tmp_path: Path) -> None:
    [one] = read(folder(tmp_path, "first", "agents.db"))
    assert [part["type"] for part in one.messages[1].parts] == ["reasoning", "dynamic-tool", "text"]
    assert one.messages[1].parts[1]["input"] == {"file_path": "notes.md"}
    assert (one.facts.directory, one.facts.model) == ("/home/ada/notes", "some-model@mine")


def test_a_repeated_message_is_counted_once(tmp_path: Path) -> None:
    file = folder(tmp_path, "first", "agents.db")
    put(file, "INSERT INTO session_messages SELECT NULL, session_id, role, content, '', NULL, created_at, updated_at FROM session_messages")
    [one] = read(file)
    assert len(one.messages) == 2 and one.fidelity.lost == {"records": 2}


def test_messages_of_deleted_sessions_are_kept(tmp_path: Path) -> None:
    file = folder(tmp_path, "first", "agents.db")
    put(file, "DELETE FROM sessions")
    [one] = read(file)
    assert one.conversation.source_id == "session_1_a" and len(one.messages) == 2


def test_the_agents_own_file_is_kept_with_the_conversation(tmp_path: Path) -> None:
    file = folder(tmp_path, "first", "agents.db")
    transcript = file.parent / ".claude" / "projects" / "-home-ada" / "2c5e7a70-0000-4000-8000-000000000001.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(b'{"type":"user"}\n{"type":"assist')
    [one] = read(file)
    records = [entry for entry in one.entries if isinstance(entry, ImportedRecord)]
    assert b"".join(record.raw for record in records) == transcript.read_bytes()
    assert one.fidelity.kept["records"] == 1 and one.fidelity.lost["records"] == 1


def test_chats_keep_their_branches_without_deleted_messages(tmp_path: Path) -> None:
    file = folder(tmp_path, "second", "Data/cherrystudio.sqlite")
    session, topic = read(file)
    assert session.conversation.source_id == "s1" and topic.facts.head == "c3"
    assert [(message.source_id, message.parent) for message in topic.messages] == [("c1", None), ("c2", "c1"), ("c3", "c1")]


def test_children_of_a_deleted_message_are_attached_to_its_parent(tmp_path: Path) -> None:
    file = folder(tmp_path, "second", "Data/cherrystudio.sqlite")
    put(file, "UPDATE message SET deleted_at = 1 WHERE id = 'c3'")
    put(file, "UPDATE message SET deleted_at = NULL WHERE id = 'c4'")
    topic = read(file)[1]
    assert [(message.source_id, message.parent) for message in topic.messages] == [("c1", None), ("c2", "c1"), ("c4", "c1")]


def test_circles_and_missing_parents_are_cut(tmp_path: Path) -> None:
    file = folder(tmp_path, "second", "Data/cherrystudio.sqlite")
    put(file, "UPDATE message SET parent_id = 'c3' WHERE id = 'c1'")
    put(file, "UPDATE message SET parent_id = 'nobody' WHERE id = 'c2'")
    topic = read(file)[1]
    assert len(topic.messages) == 3 and topic.fidelity.approximated["branches"] == 2


def test_tokens_and_costs_of_an_answer_are_kept(tmp_path: Path) -> None:
    session = read(folder(tmp_path, "second", "Data/cherrystudio.sqlite"))[0]
    usage = {"input": 10, "output": 5, "cache_read": 3}
    assert session.messages[1].metadata["steps"] == [{"step": 1, "usage": usage, "cost": 1_000_000, "model": "some-model@mine"}]


def test_a_session_has_the_directory_of_its_folder(tmp_path: Path) -> None:
    file = folder(tmp_path, "second", "Data/cherrystudio.sqlite")
    put(file, "CREATE TABLE agent_workspace (id TEXT, path TEXT)")
    put(file, "INSERT INTO agent_workspace VALUES ('w', '/home/ada')")
    put(file, "ALTER TABLE agent_session ADD COLUMN workspace_id TEXT DEFAULT 'w'")
    assert read(file)[0].facts.directory == "/home/ada"


def test_the_newest_database_of_a_folder_is_read_and_no_other(tmp_path: Path) -> None:
    folder(tmp_path, "first", "agents.db")
    newest = folder(tmp_path, "second", "Data/cherrystudio.sqlite")
    assert list(CHERRY.sources(newest.parent.parent)) == [newest]


def test_content_with_invalid_json_is_reported_and_does_not_affect_others(tmp_path: Path) -> None:
    file = folder(tmp_path, "first", "agents.db")
    put(file, "UPDATE session_messages SET content = '{broken' WHERE role = 'user'")
    [one] = read(file)
    assert [message.role for message in one.messages] == ["assistant"] and one.fidelity.lost == {"records": 1}


def test_the_format_is_read_only() -> None:
    with pytest.raises(UsageError, match="can't write Cherry Studio databases"):
        CHERRY.write(ExportedConversation(Conversation("c"), ()))


@pytest.mark.parametrize(
    "content",
    [
        "Good morning",
        dumps(
            {"aiSDKChunks": [{"type": "text-delta", "id": "1", "text": "Good "}, {"type": "text-delta", "id": "1", "text": "morning"}]}
        ).decode(),
        dumps(
            {"rawAgentMessages": [{"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Good morning"}]}}]}
        ).decode(),
    ],
)
def test_stored_streams_and_plain_text_are_read(content: str) -> None:
    read = message_of({"id": 1, "role": "assistant", "content": content}, b"{}", None)
    assert isinstance(read, ImportedMessage)
    assert text_of(read.parts) == "Good morning"
