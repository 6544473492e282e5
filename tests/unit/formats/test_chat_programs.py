from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from format_samples import samples_of
from moot.errors import UsageError
from moot.formats.apps.aichat import Aichat
from moot.formats.apps.lmstudio import LmStudio
from moot.formats.apps.ollama import Ollama
from moot.formats.apps.open_webui import OpenWebUi
from moot.types.format import ImportedRecord, WholeConversation
from moot.types.message import is_tool, text_of

RECORDED = Path(__file__).parents[2] / "recorded" / "formats"
SESSION = """\
model: openai:gpt-4o
compressed_messages:
- role: user
  content: |-
    hello
    world: yes
- role: assistant
  content: hi
messages:
- role: user
  content:
  - type: text
    text: look
  - type: image_url
    image_url:
      url: data:image/png;base64,AAAA
- role: tool
  content:
    tool_results:
    - call:
        name: ls
        arguments:
          all: true
        id: c1
      output: a.txt
    text: I look
- role: assistant
  content: one
"""


def read(format: Any, path: Path) -> list[WholeConversation]:
    assert format.sniff(path, path.read_bytes()[: 1 << 16])
    return [one.whole() for one in format.read(path)]


def said(conversation: WholeConversation) -> list[tuple[str, str | None, str]]:
    return [(one.source_id, one.parent, text_of(one.parts)) for one in conversation.messages]


def test_an_aichat_session_is_read_with_its_compressed_messages(tmp_path: Path) -> None:
    path = tmp_path / "20240501T101112-some-talk.yaml"
    path.write_text(SESSION)
    [conversation] = read(Aichat(), path)
    assert [text_of(one.parts) for one in conversation.messages] == ["hello\nworld: yes", "hi", "look", "I lookone"]
    assert conversation.messages[0].raw == b"role: user\n  content: |-\n    hello\n    world: yes\n"
    [call] = [part for part in conversation.messages[3].parts if is_tool(part)]
    assert (call["input"], call["output"]) == ({"all": True}, "a.txt")
    assert (conversation.facts.title, conversation.facts.created_at, conversation.facts.model) == (
        "some-talk",
        1714558272000,
        "gpt-4o@openai",
    )


def test_yaml_tags_create_no_objects(tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    path.write_text('model: a\nmessages:\n- role: user\n  content: !!python/object/apply:os.system ["touch /tmp/evil"]\n')
    with pytest.raises(UsageError, match="as YAML"):
        read(Aichat(), path)


def test_each_chat_of_a_log_is_a_conversation_even_within_one_second(tmp_path: Path) -> None:
    path = tmp_path / "messages.md"
    head = "[2024-05-01T10:11:12+08:00]"
    called = '<tool_calls>\n[{"call":{"name":"ls","arguments":{},"id":null},"output":"x"}]\n</tool_calls>\n'
    path.write_text(
        f"# CHAT: hi {head} (coder)\nhi\n--------\n{called}yes\n--------\n\n"
        f"# CHAT: two {head}\nq\n--------\na\n\nb\n--------\n\n# CHAT: cut {head}\nwh"
    )
    one, two, cut = read(Aichat(), path)
    assert [text_of(message.parts) for message in (*one.messages, *two.messages)] == ["hi", "yes", "q", "a\n\nb"]
    assert one.fidelity.kept["tool calls"] == 1
    assert len({one.conversation.source_id, two.conversation.source_id, cut.conversation.source_id}) == 3
    assert cut.fidelity.lost == {"records": 1}


def webui_chat() -> dict[str, Any]:
    thought = '<details type="reasoning" done="true">\n<summary>Thought for 2 seconds</summary>\n&gt; hm &amp; so\n</details>\n'
    call = (
        '<details type="tool_calls" done="true" id="c1" name="ls" arguments="&quot;{\\&quot;a\\&quot;: 1}&quot;"'
        ' result="&quot;x&quot;">\n<summary>Done</summary>\n</details>\n'
    )
    messages = {
        "u1": {"id": "u1", "parentId": None, "childrenIds": ["a1", "a2"], "role": "user", "content": "what?", "timestamp": 1700000001},
        "a1": {"id": "a1", "parentId": "u1", "childrenIds": [], "role": "assistant", "content": thought + call + "this", "model": "llama3"},
        "a2": {
            "id": "a2",
            "parentId": "u1",
            "childrenIds": [],
            "role": "assistant",
            "content": "that",
            "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        },
    }
    messages["u1"]["files"] = [{"type": "image", "url": "data:image/png;base64,AAAA"}, {"type": "file", "id": "f1", "name": "a.pdf"}]
    return {"title": "Asked", "history": {"currentId": "a1", "messages": messages}}


def check_webui(conversation: WholeConversation) -> None:
    assert said(conversation) == [("u1", None, "what?"), ("a1", "u1", "this"), ("a2", "u1", "that")]
    assert conversation.facts.head == "a1"
    thought, call = [part for part in conversation.messages[1].parts if part["type"] in ("reasoning", "dynamic-tool")]
    assert thought["text"] == "hm & so"
    assert (call["input"], call["output"]) == ({"a": 1}, "x")
    assert conversation.fidelity.kept["pictures"] == 1
    assert conversation.fidelity.lost == {"files": 1}


def test_open_webui_is_read_from_its_export_and_its_database_alike(tmp_path: Path) -> None:
    export, database = tmp_path / "chats.json", tmp_path / "webui.db"
    export.write_text(json.dumps([{"id": "c1", "title": "Asked", "chat": webui_chat()}]))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE chat (id TEXT, user_id TEXT, title TEXT, chat JSON, created_at INT, updated_at INT, archived INT)")
        connection.execute("INSERT INTO chat VALUES ('c1', 'u', 'Asked', ?, 1700000000, 1700000060, 1)", (json.dumps(webui_chat()),))
        connection.commit()
    [exported], [stored] = read(OpenWebUi(), export), read(OpenWebUi(), database)
    check_webui(exported)
    check_webui(stored)
    assert stored.facts.archived
    assert [one.raw for one in exported.messages] == [one.raw for one in stored.messages]


def test_message_rows_take_precedence_over_the_chat(tmp_path: Path) -> None:
    database = tmp_path / "webui.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE chat (id TEXT, user_id TEXT, title TEXT, chat JSON, created_at INT, updated_at INT)")
        connection.execute("INSERT INTO chat VALUES ('c1', 'u', 'Asked', ?, 1700000000, 1700000060)", (json.dumps(webui_chat()),))
        connection.execute(
            "CREATE TABLE chat_message (id TEXT, chat_id TEXT, role TEXT, parent_id TEXT, content JSON, model_id TEXT, created_at INT)"
        )
        rows = [("c1-u1", "user", None, '"newer?"'), ("c1-a1", "assistant", "u1", '"yes"')]
        connection.executemany("INSERT INTO chat_message VALUES (?, 'c1', ?, ?, ?, 'llama3', 1700000001)", rows)
        connection.commit()
    [conversation] = read(OpenWebUi(), database)
    assert said(conversation) == [("u1", None, "newer?"), ("a1", "u1", "yes")]


def test_an_open_webui_database_is_read_with_reasoning_and_calls(tmp_path: Path) -> None:
    database = tmp_path / "webui.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript((RECORDED / "open-webui" / "webui.sql").read_text())
    [conversation] = read(OpenWebUi(), database)
    assert said(conversation) == [
        ("u1", None, "What is here?"),
        ("a1", "u1", "One file."),
        ("a2", "u1", "A file."),
        ("u2", "a1", "And now?"),
        ("a3", "u2", "Nothing more."),
    ]
    assert conversation.facts.head == "a3"
    answer = conversation.messages[1]
    assert [part["type"] for part in answer.parts] == ["step-start", "reasoning", "dynamic-tool", "step-start", "text"]
    assert (answer.parts[1]["text"], answer.parts[2]["input"], answer.parts[2]["output"]) == ("I look.", {"path": "."}, "a.txt")
    assert answer.metadata["steps"] == [{"step": 1, "model": "llama3", "usage": {"input": 20, "output": 5, "cache_read": 4}}]
    assert conversation.messages[4].metadata["steps"] == [{"step": 1, "model": "llama3"}]


def test_items_of_an_answer_mark_failed_and_denied_calls(tmp_path: Path) -> None:
    shown = [{"type": "input_text", "text": "here"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
    gone = [{"type": "input_image", "image_url": "/api/v1/files/f1/content"}]
    items = [
        {"type": "reasoning", "content": [], "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
        *({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"} for id in ("c1", "c2", "c3")),
        {"type": "function_call", "call_id": "c4", "name": "look", "arguments": "{}", "status": "rejected"},
        {"type": "function_call_output", "call_id": "c1", "output": shown, "status": "completed"},
        {"type": "function_call_output", "call_id": "c2", "output": gone, "status": "completed"},
        {"type": "function_call_output", "call_id": "c3", "output": [{"type": "input_text", "text": "no"}], "status": "failed"},
        {"type": "open_webui:code_interpreter", "id": "ci", "code": "1 + 1", "lang": "python", "output": {"result": "2"}},
    ]
    chat = webui_chat()
    chat["history"]["messages"]["a1"] |= {"content": "", "output": items}
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{"id": "c1", "title": "Asked", "chat": chat}]))
    [conversation] = read(OpenWebUi(), path)
    thought, *calls = [part for part in conversation.messages[1].parts if part["type"] != "step-start"]
    assert (thought["text"], thought["providerMetadata"]) == ("hm", {"open-webui": {"encrypted_content": "x"}})
    states = ["output-available", "output-available", "output-error", "output-denied", "output-available"]
    assert [call["state"] for call in calls] == states
    assert calls[0]["output"]["value"][1]["url"] == "data:image/png;base64,AAAA"
    assert (calls[4]["input"], calls[4]["output"]) == ({"code": "1 + 1", "lang": "python"}, {"result": "2"})
    assert conversation.fidelity.lost == {"files": 1, "pictures": 1}


def test_a_parent_without_a_row_is_read_from_the_chat(tmp_path: Path) -> None:
    database = tmp_path / "webui.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript((RECORDED / "open-webui" / "webui.sql").read_text())
        connection.execute("DELETE FROM chat_message WHERE id IN ('c1-u1', 'c1-a1', 'c1-a2')")
        connection.commit()
    [conversation] = read(OpenWebUi(), database)
    assert {id for id, _, _ in said(conversation)} == {"u1", "a1", "u2", "a3"}
    assert len(conversation.messages[1].parts) == 5


def test_every_version_of_an_answer_in_lm_studio_is_a_branch(tmp_path: Path) -> None:
    path = tmp_path / "1700000000000.conversation.json"
    path.write_bytes(samples_of(LmStudio())["conversation"])
    [conversation] = read(LmStudio(), path)
    assert conversation.conversation.source_id == "1700000000000"
    assert said(conversation) == [("1.0", None, "What is here?"), ("2.0", "1.0", "A file."), ("2.1", "1.0", "One file.")]
    assert conversation.facts.head == "2.1"
    step = {"step": 1, "model": "qwen3", "finish_reason": "stop", "usage": {"input": 20, "output": 5}}
    assert conversation.messages[2].metadata["steps"] == [{**step, "ms": 1500}]
    path.write_bytes(path.read_bytes().replace(b'"totalTimeSec": 1.5', b'"totalTimeSec": 1e308'))  # an impossible time
    [conversation] = read(LmStudio(), path)
    assert conversation.messages[2].metadata["steps"] == [step]


def test_each_model_call_in_lm_studio_is_a_step_with_its_tool_calls_paired(tmp_path: Path) -> None:
    def block(content: list[Any], tokens: int, stop: str = "eosFound") -> dict[str, Any]:
        stats = {"stopReason": stop, "promptTokensCount": tokens, "predictedTokensCount": 5}
        return {"type": "contentBlock", "stepIdentifier": f"17000000000{tokens}-0.5", "content": content, "genInfo": {"stats": stats}}

    asked = [
        {"type": "toolCallRequest", "callId": 1, "name": "look", "parameters": {"at": "a"}},
        {"type": "toolCallRequest", "callId": 2, "toolCallRequestId": "own", "name": "look", "parameters": {"at": "b"}},
    ]
    results = [
        {"type": "toolCallResult", "callId": 2, "toolCallRequestId": "own", "content": '"second"'},
        {"type": "toolCallResult", "callId": 1, "content": '"first"'},
    ]
    steps = [block(asked, 20, "toolCalls"), {"type": "contentBlock", "content": results}, block([{"type": "text", "text": "Both."}], 40)]
    answer = {"versions": [{"type": "multiStep", "role": "assistant", "steps": steps}], "currentlySelected": 0}
    say = {"versions": [{"role": "user", "content": [{"type": "text", "text": "Look."}]}], "currentlySelected": 0}
    path = tmp_path / "1700000000000.conversation.json"
    path.write_text(json.dumps({"name": "", "messages": [say, answer, say]}))
    [conversation] = read(LmStudio(), path)
    assert said(conversation) == [("1.0", None, "Look."), ("2.0", "1.0", "Both."), ("3.0", "2.0", "Look.")]
    assert conversation.facts.head == "3.0"
    made = conversation.messages[1]
    assert [(call["input"], call["output"]) for call in made.parts if is_tool(call)] == [({"at": "a"}, "first"), ({"at": "b"}, "second")]
    assert made.created_at == 1700000000020
    assert made.metadata["steps"] == [
        {"step": 1, "finish_reason": "tool-calls", "usage": {"input": 20, "output": 5}},
        {"step": 2, "finish_reason": "stop", "usage": {"input": 40, "output": 5}},
    ]


def test_a_damaged_table_is_reported_and_loses_no_message(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(samples_of(Ollama())["database"])
        connection.execute("CREATE TABLE attachments (id INTEGER PRIMARY KEY, message_id INT, filename TEXT, data BLOB)")
        connection.executemany(
            "INSERT INTO attachments (message_id, filename, data) VALUES (1, ?, ?)", [(f"{n}.txt", b"x" * 900) for n in range(40)]
        )
        connection.commit()
        [page] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'attachments'").fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
        data = bytearray(connection.serialize())
    data[page * size : len(data)] = b"\xff" * (len(data) - page * size)
    path.write_bytes(data)
    [conversation] = read(Ollama(), path)
    assert [text_of(one.parts) for one in conversation.messages] == ["What is here?", "One file."]
    assert conversation.fidelity.lost["records"] >= 1
    assert any("can't be read" in entry.problem for entry in conversation.entries if isinstance(entry, ImportedRecord))


def test_ollama_pairs_outputs_with_the_calls_before_them(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.deserialize(samples_of(Ollama())["database"])
        connection.execute(
            "CREATE TABLE tool_calls (id INT, message_id INT, function_name TEXT, function_arguments TEXT, function_result TEXT)"
        )
        connection.execute("UPDATE messages SET thinking = 'hm' WHERE id = 2")
        connection.executemany(
            "INSERT INTO tool_calls VALUES (?, 2, ?, ?, NULL)", [(1, "search", '{"q": "a"}'), (2, "fetch", '{"q": "b"}')]
        )
        results = [("tool", '"first"'), ("tool", '"second"')]
        connection.executemany("INSERT INTO messages (chat_id, role, content, tool_result) VALUES ('c1', ?, '', ?)", results)
        connection.commit()
        path.write_bytes(connection.serialize())
    [conversation] = read(Ollama(), path)
    answer = conversation.messages[1]
    assert [(part["toolName"], part["output"]) for part in answer.parts if is_tool(part)] == [("search", "first"), ("fetch", "second")]
    assert conversation.fidelity.kept["reasoning"] == 1
