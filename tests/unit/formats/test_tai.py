from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from format_samples.apps import tai_database as sample
from moot.errors import UsageError
from moot.formats.apps.tai.format import Tai
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, WholeConversation
from moot.types.message import Message, text_part

TAI = Tai()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "agent.db").write_bytes(sample())
    return folder


def put(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / "agent.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def read(path: Path) -> list[WholeConversation]:
    return [one.whole() for one in TAI.read(path)]


def test_a_session_is_a_conversation_with_its_key_and_model(home: Path) -> None:
    [one] = read(home)
    assert (one.facts.key, one.facts.model) == ("discord:4711", "devstral-small-2:latest@ollama")
    assert [message.role for message in one.messages] == ["user", "assistant"]
    call = one.messages[1].parts[1]
    assert (call["toolName"], call["input"], call["output"]) == ("read", {"path": "notes.md"}, "milk\neggs")
    assert one.messages[1].raw.count(b"\n") == 3


def test_a_delegated_session_has_a_parent(home: Path) -> None:
    parent = read(home)[0].conversation.source_id
    put(home, f"INSERT INTO sessions (id, key, model, provider) VALUES ('child', 'delegate:{parent}:77', 'm', 'p')")
    child = next(one for one in TAI.read(home) if one.source_id == "child")
    assert child.parent == parent


def test_messages_of_deleted_sessions_are_kept(home: Path) -> None:
    put(home, "PRAGMA foreign_keys = OFF", "INSERT INTO messages (session_id, role, content) VALUES ('gone', 'user', 'still here')")
    assert [one.conversation.source_id for one in read(home)][-1] == "gone"


def test_a_compacted_session_reports_its_lost_history(home: Path) -> None:
    put(
        home,
        "DELETE FROM messages",
        "INSERT INTO messages (session_id, role, content) SELECT id, 'user', '[Conversation Summary] x' FROM sessions",
    )
    assert read(home)[0].fidelity.lost == {"records": 1}


def test_broken_tool_calls_and_unknown_roles_are_reported(home: Path) -> None:
    put(
        home,
        "UPDATE messages SET tool_calls = '{nonsense' WHERE tool_calls IS NOT NULL",
        "INSERT INTO messages (session_id, role, content) SELECT id, 'narrator', 'x' FROM sessions",
    )
    [one] = read(home)
    problems = [entry.problem for entry in one.entries if hasattr(entry, "problem")]
    assert len(problems) == 2 and "not valid JSON" in problems[0] and "narrator" in problems[1]
    assert one.messages[1].parts[1]["toolName"] == "unknown" and one.messages[1].parts[1]["output"] == "milk\neggs"


def test_a_database_in_use_is_read_with_its_log(home: Path) -> None:
    with closing(sqlite3.connect(home / "agent.db", isolation_level=None)) as owner:
        owner.execute("PRAGMA journal_mode = WAL")
        owner.execute("INSERT INTO messages (session_id, role, content) SELECT id, 'user', 'fresh' FROM sessions")
        owner.execute("BEGIN IMMEDIATE")
        assert read(home)[0].messages[-1].parts[0]["text"] == "fresh"


def test_a_database_of_another_program_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sessions (id TEXT)")
        connection.commit()
    assert not TAI.sniff(path, path.read_bytes()[:64])
    with pytest.raises(UsageError, match="not a valid TAI database"):
        read(path)


def test_written_databases_match_tais_schema_and_queries(tmp_path: Path) -> None:
    call = {"type": "tool-shell", "toolCallId": "c", "state": "output-available", "input": {"command": "ls"}, "output": {"lines": 2}}
    messages = (Message("u", "user", (text_part("hi"),)), Message("a", "assistant", ({"type": "step-start"}, call, text_part("done"))))  # type: ignore[arg-type]
    path = tmp_path / "agent.db"
    path.write_bytes(TAI.write(ExportedConversation(Conversation("c1", model="big@mine"), messages)).data)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT role, content, tool_calls, tool_call_id FROM messages WHERE session_id = 'c1' ORDER BY id"
        ).fetchall()
    assert rows == [
        ("user", "hi", None, None),
        ("assistant", None, '[{"id":"c","name":"shell","arguments":{"command":"ls"}}]', None),
        ("tool", '{"lines":2}', None, "c"),
        ("assistant", "done", None, None),
    ]


def test_its_environment_variable_sets_its_home(tmp_path: Path) -> None:
    assert list(TAI.places(tmp_path, {"TAI_HOME": "/srv/tai"})) == [Path("/srv/tai")]
    assert list(TAI.places(tmp_path, {})) == [tmp_path / ".tailored-ai"]
