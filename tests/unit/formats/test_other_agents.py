from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_machine import opencode_database
from format_samples.opencode import database
from moot.errors import UsageError
from moot.formats.agents.gemini.format import Gemini
from moot.formats.agents.gptme import Gptme
from moot.formats.agents.opencode.format import OpenCode
from moot.formats.agents.pi import Pi
from moot.formats.agents.qwen import Qwen
from moot.formats.agents.vibe.format import Vibe
from moot.formats.apps.llm import Llm
from moot.formats.kit.fidelity import steps_of
from moot.types.format import ImportedMessage, ImportedRecord, Resumable, WholeConversation
from moot.types.message import is_tool, text_of, tool_name

RECORDED = Path(__file__).parents[2] / "recorded" / "formats"
ASKED = ["List the files here and count them.", "Make hello.py and run it", "What does notes.txt say?"]
quick = settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)


def only(folder: str, pattern: str = "*.jsonl") -> Path:
    return next((RECORDED / folder).glob(pattern))


def read(format: Any, path: Path) -> list[WholeConversation]:
    return [one.whole() for one in format.read(path)]


def prompts(conversation: WholeConversation) -> list[str]:
    return [text_of(one.parts) for one in conversation.messages if one.role == "user"]


def tools(conversation: WholeConversation) -> list[str]:
    return [tool_name(part) for one in conversation.messages for part in one.parts if is_tool(part)]


def states(conversation: WholeConversation) -> set[str]:
    return {str(part["state"]) for one in conversation.messages for part in one.parts if is_tool(part)}


@pytest.mark.parametrize(
    ("format", "folder", "asked", "called"),
    [
        (Gemini(), "gemini", [ASKED[0], ASKED[2]], ["run_shell_command", "read_file"]),
        (Qwen(), "qwen", ASKED, ["run_shell_command", "write_file", "run_shell_command", "read_file"]),
        (Pi(), "pi", ASKED[:1], ["bash"]),
    ],
)
def test_a_recorded_session_has_one_answer_for_each_prompt(format: Any, folder: str, asked: list[str], called: list[str]) -> None:
    [conversation] = read(format, only(folder))
    assert prompts(conversation) == asked
    assert tools(conversation) == called
    assert states(conversation) == {"output-available"}
    assert [one.role for one in conversation.messages if one.role != "system"] == ["user", "assistant"] * len(asked)
    assert conversation.fidelity.kept["usage"] >= len(called)
    assert not conversation.fidelity.lost
    assert all(one.created_at for one in conversation.messages)


def test_the_output_of_pi_in_the_mode_json_is_read_like_its_session(tmp_path: Path) -> None:
    file = RECORDED / "streams" / "pi-mode-json.jsonl"
    (found,) = read(Pi(), file)
    (session,) = read(Pi(), only("pi"))
    assert [(one.role, one.parts) for one in found.messages] == [(one.role, one.parts) for one in session.messages]
    lines = file.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(lines[: next(at for at, line in enumerate(lines) if b"thinking_end" in line)]))
    (unfinished,) = read(Pi(), cut)
    assert [one.role for one in unfinished.messages] == ["user", "assistant"]
    assert [part["type"] for part in unfinished.messages[1].parts] == ["step-start", "reasoning", "text", "dynamic-tool"]


def test_the_messages_and_events_of_a_serving_opencode_become_messages(tmp_path: Path) -> None:
    answer, events = RECORDED / "streams" / "opencode-message.json", RECORDED / "streams" / "opencode-event.sse"
    assert all(OpenCode().sniff(path, path.read_bytes()[:65536]) for path in (answer, events))
    (one,) = read(OpenCode(), answer)
    assert [text_of(message.parts) for message in one.messages] == ["hello.py prints `hello from moot`."]
    several = tmp_path / "messages.json"
    several.write_bytes(b"[" + answer.read_bytes() + b', {"odd": true}]')
    (listed,) = read(OpenCode(), several)
    assert [message.parts for message in listed.messages] == [message.parts for message in one.messages]
    entries = next(iter(OpenCode().read(several))).entries
    assert [entry.problem for entry in entries if isinstance(entry, ImportedRecord) and entry.problem] == ["element 2 is not a message"]
    (streamed,) = read(OpenCode(), events)
    assert {next(iter(OpenCode().read(path))).source_id for path in (answer, events)} == {"ses_e002322f9ffeRnnYY55RZja9Gi"}
    assert prompts(streamed) == ["Make hello.py and run it"]
    assert tools(streamed) == ["write", "bash"] and states(streamed) == {"output-available"}
    raws = b"".join(getattr(entry, "raw", b"") for entry in next(iter(OpenCode().read(events))).entries)
    assert sorted(raws.splitlines()) == sorted(line for line in events.read_bytes().splitlines() if line), "no event is dropped"


def test_gptme_keeps_reasoning_calls_and_costs() -> None:
    [conversation] = read(Gptme(), only("gptme"))
    answer = next(one for one in conversation.messages if one.role == "assistant")
    assert [part["type"] for part in answer.parts] == ["step-start", "reasoning", "text", "dynamic-tool", "step-start", "text"]
    assert answer.parts[3]["input"] == {"command": "ls -1"}
    assert "notes.txt" in str(answer.parts[3]["output"])
    steps = answer.metadata["steps"]
    assert isinstance(steps, list)
    assert [step["cost"] for step in steps if isinstance(step, dict)] == [1_100_000, 1_200_000]


def test_opencode_is_read_from_its_database_and_its_export_alike(tmp_path: Path) -> None:
    stored = {one.conversation.source_id: one for one in read(OpenCode(), opencode_database(tmp_path / "opencode.db"))}
    [exported] = read(OpenCode(), RECORDED / "opencode" / "export.json")
    same = stored[exported.conversation.source_id]
    assert [(one.source_id, one.role, one.parts) for one in exported.messages] == [
        (one.source_id, one.role, one.parts) for one in same.messages
    ]
    assert same.facts.title == exported.facts.title == "List project files"
    assert same.facts.directory == "/home/user/project"
    other = next(one for id, one in stored.items() if id != exported.conversation.source_id)
    assert prompts(other) == ASKED
    assert tools(other) == ["bash", "write", "bash", "read"]


def test_the_raw_of_an_opencode_message_is_its_events_in_order(tmp_path: Path) -> None:
    conversation = read(OpenCode(), opencode_database(tmp_path / "opencode.db"))[0]
    for message in conversation.messages:
        told = [json.loads(line) for line in message.raw.splitlines()]
        assert told[0]["type"] == "message.updated.1"
        assert len(told) > 1


def test_a_sub_agents_session_belongs_to_its_call(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "opencode.db")
    with closing(sqlite3.connect(path)) as connection:
        parent, child = [row[0] for row in connection.execute("SELECT id FROM session ORDER BY time_created")]
        message = connection.execute("SELECT id FROM message WHERE session_id = ?", (parent,)).fetchone()[0]
        task = {"type": "tool", "tool": "task", "callID": "call-7", "state": {"status": "completed", "metadata": {"sessionId": child}}}
        connection.execute("INSERT INTO part VALUES ('prt_z', ?, ?, 1, 1, ?)", (message, parent, json.dumps(task)))
        connection.execute("UPDATE session SET parent_id = ? WHERE id = ?", (parent, child))
        connection.commit()
    first, second = read(OpenCode(), path)
    assert first.conversation.parent is None
    assert (second.conversation.parent, second.conversation.parent_call) == (parent, "call-7")


def types(message: ImportedMessage) -> list[str]:
    return [str(part["type"]) for part in message.parts]


@pytest.mark.parametrize("older", [True, False])
def test_sessions_of_opencode_2_are_read_from_its_tables(tmp_path: Path, older: bool) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(database(older=older, later=True))
    first, fork, other, helper = read(OpenCode(), path)
    assert prompts(first) == ["What is here?", "And now?"] and first.facts.title == "Lists"
    assert first.facts.directory == "/home/user/project" and first.facts.model == "mock-1@mock"
    file = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,bm90ZXM=", "filename": "notes.txt"}
    assert first.messages[2].parts[1] == file
    answer = first.messages[3]
    assert types(answer) == ["step-start", "reasoning", "dynamic-tool", "step-start", "text"]
    assert answer.parts[1]["providerMetadata"] == {"mock": {"signature": "c2ln"}}
    assert (answer.parts[2]["input"], answer.parts[2]["output"]) == ({"command": "ls"}, "a.txt")
    step = steps_of(answer)[0]
    assert step["usage"] == {"input": 250, "output": 25, "cache_read": 50, "cache_write": 0, "reasoning": 5}
    assert (step["model"], step["cost"], step["finish_reason"], step["ms"]) == ("mock-1@mock", 250_000_000, "stop", 500)
    assert (fork.conversation.copied_from, prompts(fork)) == ("ses_1", [*prompts(first), "What if not?"])
    assert [one.identities for one in fork.messages[:4]] == [one.identities for one in first.messages]
    assert [one.role for one in other.messages] == ["user", *["system"] * 3, "assistant"]
    assert types(other.messages[4]) == [
        *("step-start", "dynamic-tool"),
        *("step-start", "text", "dynamic-tool"),
        *("step-start", "data-compaction", "text"),
    ]
    assert other.messages[4].parts[1]["output"] == "/home/user"
    assert (helper.conversation.parent, helper.conversation.parent_call) == ("ses_3", "call-2")


def test_messages_of_opencode_1_are_the_same_after_the_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(database(older=True, later=False))
    [before] = read(OpenCode(), path)
    path.write_bytes(database(older=True, later=True))
    after = read(OpenCode(), path)[0]
    assert after.messages[:2] == before.messages
    with closing(sqlite3.connect(path)) as connection:  # a text that OpenCode 2 has split from a prompt when it copied it
        words = json.dumps({"text": "You are in a folder."})
        connection.execute("UPDATE session_message SET id = 'msg_ses_1_000000', seq = 50 WHERE id = 'msg_ses_1_0'")
        connection.execute("UPDATE message SET id = 'msg_ses_1_000000' WHERE id = 'msg_ses_1_0'")
        row = ("msg_ses_1_000000xYz", "ses_1", "synthetic", 60, 1_790_000_000_000, 1_790_000_000_000, words)
        connection.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    assert [one.role for one in read(OpenCode(), path)[0].messages] == ["user", "assistant"] * 2


def test_a_database_of_opencode_without_the_project_of_sessions_is_read(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(database(older=True, later=False))
    [before] = read(OpenCode(), path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE plain AS SELECT * FROM session")
        connection.executescript("DROP TABLE session; ALTER TABLE plain DROP COLUMN project_id; ALTER TABLE plain RENAME TO session;")
    [after] = read(OpenCode(), path)
    assert [one.parts for one in after.messages] == [one.parts for one in before.messages] != []


def test_messages_of_versions_between_opencode_1_and_2_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(database(older=True, later=True))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE session_v2")
        session = ("ses_3", "p1", "ses_3", "/home/user/project", "Counts", "1.18.25", 1, 1)
        names = "id, project_id, slug, directory, title, version, time_created, time_updated"
        connection.execute(f"INSERT INTO session ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", session)
        connection.commit()
    assert {one.conversation.source_id: len(one.messages) for one in read(OpenCode(), path)} == {"ses_1": 2, "ses_3": 5}
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("DROP TABLE part; DROP TABLE message;")
    assert OpenCode().sniff(path, path.read_bytes()[:65536])
    assert {one.conversation.source_id: len(one.messages) for one in read(OpenCode(), path)} == {"ses_1": 4, "ses_3": 5}


def test_a_database_can_be_read_while_its_program_writes_to_it(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "opencode.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as owner:
        owner.execute("PRAGMA journal_mode = WAL")
        owner.execute("UPDATE session SET title = 'Renamed'")
        owner.execute("BEGIN EXCLUSIVE")
        owner.execute("UPDATE session SET title = 'Not yet'")
        assert {one.facts.title for one in read(OpenCode(), path)} == {"Renamed"}
        owner.execute("ROLLBACK")


def test_a_database_with_other_tables_is_rejected_with_a_message(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "opencode.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE part RENAME TO part_2")
    assert not OpenCode().sniff(path, path.read_bytes()[: 1 << 16])
    with pytest.raises(UsageError, match="not a valid OpenCode database"):
        read(OpenCode(), path)


def test_a_row_with_invalid_json_does_not_affect_others(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "opencode.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE message SET data = 'nonsense' WHERE id = (SELECT min(id) FROM message)")
        connection.commit()
    conversation = read(OpenCode(), path)[0]
    assert conversation.fidelity.lost == {"records": 1}
    assert prompts(conversation) == ['"What does notes.txt say?"']


def test_vibe_reads_its_newest_generation(tmp_path: Path) -> None:
    folder = only("vibe", "*/CURRENT").parent
    [conversation] = read(Vibe(), folder)
    assert prompts(conversation) == ASKED
    assert tools(conversation) == ["file_system.bash", "file_system.write_file", "file_system.bash", "file_system.read_file"]
    assert conversation.facts.title == "List project files"
    assert conversation.fidelity.kept["usage"] == 2  # a journal stores no more


def test_vibe_continues_an_older_generation_with_its_journal(tmp_path: Path) -> None:
    source = only("vibe", "*/CURRENT").parent
    folder = tmp_path / source.name
    shutil.copytree(source, folder)
    current = json.loads((folder / "CURRENT").read_text())
    (folder / "CURRENT").write_text(json.dumps({**current, "generation": "0000000000000058"}))
    [older], [newer] = read(Vibe(), folder), read(Vibe(), source)
    assert [(one.source_id, one.parts) for one in older.messages] == [(one.source_id, one.parts) for one in newer.messages]


def test_missing_chunks_of_a_vibe_session_are_reported(tmp_path: Path) -> None:
    source = only("vibe", "*/CURRENT").parent
    shutil.copytree(source, tmp_path / "session")
    shutil.rmtree(tmp_path / "session" / "chunks")
    [conversation] = read(Vibe(), tmp_path / "session")
    assert conversation.facts.title == "List project files"
    assert conversation.fidelity.lost == {"records": 1}


def test_llm_keeps_threads_with_calls_and_attachments(tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((RECORDED / "llm" / "logs.sql").read_text())
    assert Llm().sniff(path, path.read_bytes()[: 1 << 16])
    first, second = read(Llm(), path)
    assert [(one.role, text_of(one.parts)) for one in first.messages] == [
        ("system", "be brief"),
        ("user", "first"),
        ("assistant", "answer 1"),
        ("user", "second"),
        ("assistant", "answer 2"),
    ]
    assert first.messages[3].parts[1]["url"] == "data:image/png;base64,iVBORw0KGgo="
    [call] = [part for one in second.messages for part in one.parts if is_tool(part)]
    assert (call["input"], call["output"]) == ({"text": "hi"}, "HI")


@pytest.mark.parametrize(("format", "folder"), [(Gemini(), "gemini"), (Qwen(), "qwen"), (Pi(), "pi"), (Gptme(), "gptme")])
@quick
@given(data=st.data())
def test_messages_stay_the_same_as_a_session_grows(format: Any, folder: str, tmp_path: Path, data: st.DataObject) -> None:
    lines = only(folder).read_bytes().splitlines(keepends=True)
    one, other = sorted(data.draw(st.lists(st.integers(2, len(lines)), min_size=2, max_size=2)))
    path = tmp_path / "conversation.jsonl"
    earlier, later = (grown(format, path, lines[:count]) for count in (one, other))
    assert set(earlier) <= set(later)
    for id, raw in earlier.items():
        assert later[id].startswith(raw)


def grown(format: Any, path: Path, lines: list[bytes]) -> dict[str, bytes]:
    path.write_bytes(b"".join(lines))
    try:
        [conversation] = read(format, path)
    except UsageError:
        return {}  # there were no messages yet
    return {message.source_id: message.raw for message in conversation.messages}


def pi_lines(*records: tuple[str, str | None, str, str]) -> Iterator[bytes]:
    yield b'{"type":"session","version":3,"id":"s1","cwd":"/work"}\n'
    for id, parent, role, words in records:
        message = {"role": role, "content": [{"type": "text", "text": words}]}
        yield json.dumps({"type": "message", "id": id, "parentId": parent, "message": message}).encode() + b"\n"


def test_a_fork_in_the_middle_of_an_answer_repeats_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "1_s1.jsonl"
    tree = pi_lines(
        ("u1", None, "user", "ask"),
        ("a1", "u1", "assistant", "one "),
        ("a2", "a1", "assistant", "two"),
        ("b2", "a1", "assistant", "three"),
        ("u2", "a1", "user", "stop"),
    )
    path.write_bytes(b"".join(tree))
    [conversation] = read(Pi(), path)
    told = {one.source_id: (one.parent, text_of(one.parts)) for one in conversation.messages}
    assert told == {"u1": (None, "ask"), "a1": ("u1", "one two"), "b2": ("u1", "one three"), "a1~": ("u1", "one "), "u2": ("a1~", "stop")}


def test_cyclic_records_are_detached(tmp_path: Path) -> None:
    path = tmp_path / "1_s1.jsonl"
    path.write_bytes(b"".join(pi_lines(("u1", "a1", "user", "ask"), ("a1", "u1", "assistant", "say"), ("a1", "a1", "assistant", "again"))))
    [conversation] = read(Pi(), path)
    assert [text_of(one.parts) for one in conversation.messages] == ["ask", "sayagain"]


def test_rewound_messages_of_gemini_are_a_branch(tmp_path: Path) -> None:
    path = tmp_path / "session-1.jsonl"
    header = {"sessionId": "s1", "projectHash": "p1", "startTime": "2026-11-21T20:31:32Z"}
    records: list[dict[str, Any]] = [
        header,
        {"id": "u1", "type": "user", "content": "ask"},
        {"id": "a1", "type": "gemini", "content": "no"},
        {"$rewindTo": "u1"},
        {"id": "u2", "type": "user", "content": "ask better"},
        {"id": "a2", "type": "gemini", "content": "yes"},
        {"id": "a2", "type": "gemini", "content": "yes!"},
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    [conversation] = read(Gemini(), path)
    assert [(one.parent, text_of(one.parts)) for one in conversation.messages] == [
        (None, "ask"),
        ("u1", "no"),
        (None, "ask better"),
        ("u2", "yes!"),
    ]
    assert conversation.facts.head == "a2"


@pytest.mark.parametrize(
    ("format", "path", "wire"),
    [
        (OpenCode(), "", "opencode-acp-1.18.33-A"),
        (Qwen(), "qwen/853140cd-2ba5-42ac-90a1-f03f48805578.jsonl", "qwen-acp-A"),
        (Vibe(), "vibe/9e4d0fcd-1552-fdff-1ad5-3df42a27aa03", "vibe-acp-3.0.2-A"),
    ],
)
def test_an_agents_reported_session_is_the_one_in_its_files(tmp_path: Path, format: Any, path: str, wire: str) -> None:
    """Recorded in one run: its ACP output and its stored session."""
    lines = (RECORDED.parent / "agents" / "acp" / f"{wire}.wire.jsonl").read_text().splitlines()
    results = [json.loads(line)["msg"].get("result") or {} for line in lines]
    (named,) = {result["sessionId"] for result in results if "sessionId" in result}
    assert isinstance(format, Resumable)
    kept = RECORDED / path if path else opencode_database(tmp_path / "opencode.db")
    assert named in [one.source_id for one in format.read(kept)]
