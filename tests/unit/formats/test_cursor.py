"""Transcripts and chats of Cursor."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moot.formats.editors.cursor import project_folder
from moot.formats.kit.database import create_database
from moot.plugins import FORMATS
from moot.types.format import WholeConversation
from moot.types.message import is_tool, text_of

STORES = Path(__file__).parents[2] / "recorded" / "stores"
TABLE = "CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);"
TEXT = """user:
<attached_files>
a.txt
</attached_files>
<user_query>
What is here?
</user_query>

assistant:
[Thinking] Better look.
[Tool call] LS
  path=docs
  depth=1
[Tool call] ApplyPatch
  *** Begin Patch
  *** Update File: a.txt
[Tool call] Read
  {"path": "a.txt"}
[Tool result] LS
  a.txt
    b.txt
One file.

assistant:
Done.
"""


def read(path: Path) -> WholeConversation:
    (found,) = FORMATS.make("cursor").read(path)
    return found.whole()


def transcript(folder: Path, *lines: Any) -> Path:
    path = folder / "agent-transcripts" / "t1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def line(role: str, *blocks: Any) -> Any:
    return {"role": role, "message": {"content": list(blocks)}}


def test_the_prompt_is_read_without_the_added_context(tmp_path: Path) -> None:
    words = "<open_files>\na.txt\n</open_files>\n<user_query>\nList it\n</user_query>"
    found = read(transcript(tmp_path, line("user", {"type": "text", "text": words})))
    assert ([text_of(one.parts) for one in found.messages], found.fidelity.lost) == (["List it"], {})


def test_the_text_form_has_calls_with_outputs(tmp_path: Path) -> None:
    path = tmp_path / "t1.txt"
    path.write_text(TEXT)
    assert FORMATS.make("cursor").sniff(path, TEXT.encode())
    prompt, answer = read(path).messages
    calls = [(call["toolName"], call["input"], call.get("output")) for call in answer.parts if is_tool(call)]
    assert calls == [
        ("LS", {"path": "docs", "depth": "1"}, "a.txt\n  b.txt"),
        ("ApplyPatch", {"text": "*** Begin Patch\n*** Update File: a.txt"}, None),
        ("Read", {"path": "a.txt"}, None),
    ]
    assert (text_of(prompt.parts), text_of(answer.parts)) == ("What is here?", "One file.Done.")
    assert b"".join(one.raw for one in (prompt, answer)) == TEXT.encode()


def test_the_text_form_is_left_out_if_there_are_lines(tmp_path: Path) -> None:
    path = transcript(tmp_path, line("user", {"type": "text", "text": "Hi"}))
    path.with_suffix(".txt").write_text(TEXT)
    format: Any = FORMATS.make("cursor")
    assert list(format.sources(tmp_path)) == [path]


def test_the_folder_is_known_if_only_one_folder_has_the_name(tmp_path: Path) -> None:
    (tmp_path / "my.app" / "web").mkdir(parents=True)
    name = str(tmp_path / "my.app" / "web").replace("/", "-").replace(".", "-")[1:]
    assert project_folder(name) == str(tmp_path / "my.app" / "web")
    (tmp_path / "my" / "app" / "web").mkdir(parents=True)
    assert project_folder(name) == ""
    assert project_folder("no-such-folder-here") == ""


@pytest.mark.parametrize("known", [True, False])
def test_a_conversation_in_the_editors_database_is_read_from_there(tmp_path: Path, known: bool) -> None:
    home = tmp_path / "home"
    shutil.copytree(STORES / "cursor-ide", home)
    id = "a685df8b-fb32-4657-8b20-4bf075d043f7" if known else "00000000-0000-4000-8000-000000000000"
    path = home / ".cursor" / "projects" / "p" / "agent-transcripts" / f"{id}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(line("user", {"type": "text", "text": "Hi"})) + "\n")
    format: Any = FORMATS.make("cursor")
    assert list(format.sources(home / ".cursor" / "projects")) == ([] if known else [path])


def composer(folder: Path, *bubbles: Any, **more: Any) -> WholeConversation:
    """Read a composer with these bubbles from a database."""
    headers = [{"bubbleId": str(number)} for number in range(len(bubbles))]
    rows = [(f"bubbleId:k:{number}", json.dumps(bubble)) for number, bubble in enumerate(bubbles) if bubble is not None]
    rows.append(("composerData:k", json.dumps({"composerId": "k", "fullConversationHeadersOnly": headers, **more})))
    path = folder / "state.vscdb"
    path.write_bytes(create_database(TABLE, [("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)]))
    (found,) = [one.whole() for one in FORMATS.make("cursor-ide").read(path)]
    return found


def test_bubbles_of_one_model_call_are_one_step(tmp_path: Path) -> None:
    tool = {"toolCallId": "c", "name": "read", "status": "error", "params": "{}", "result": "no such file"}
    bubbles = [
        {"type": 1, "text": "Read it"},
        {"type": 2, "text": "", "thinking": {"text": "Hm.", "signature": "sig"}},
        {"type": 2, "text": "I read."},
        {"type": 2, "text": "", "capabilityType": 15, "toolFormerData": tool},
        {"type": 2, "text": "It fails.", "tokenCount": {"inputTokens": 7, "outputTokens": 3}},
    ]
    found = composer(tmp_path, *bubbles, modelConfig={"modelName": "gpt-5"})
    kinds = ["step-start", "reasoning", "text", "dynamic-tool", "step-start", "text"]
    assert [part["type"] for part in found.messages[1].parts] == kinds
    assert found.messages[1].parts[3]["errorText"] == "no such file"
    assert found.messages[1].metadata["steps"][1] == {"step": 2, "model": "gpt-5@cursor", "usage": {"input": 7, "output": 3}}  # type: ignore[index]


def test_a_missing_bubble_is_reported(tmp_path: Path) -> None:
    found = composer(tmp_path, {"type": 1, "text": "Hi"}, None, {"type": 2, "text": "Hello."})
    assert ([text_of(one.parts) for one in found.messages], found.fidelity.lost) == (["Hi", "Hello."], {"records": 1})


def test_bubbles_in_the_composer_are_read(tmp_path: Path) -> None:
    inside = [{"bubbleId": "1", "type": 1, "text": "Hi"}, {"bubbleId": "2", "type": 2, "text": "Hello."}]
    found = composer(tmp_path, fullConversationHeadersOnly=[], conversation=inside)
    assert [text_of(one.parts) for one in found.messages] == ["Hi", "Hello."]


def test_a_sub_composer_names_its_parent(tmp_path: Path) -> None:
    one = {"conversation": [{"bubbleId": "1", "type": 1, "text": "Hi"}]}
    rows = [("composerData:a", json.dumps(one)), ("composerData:b", json.dumps({**one, "subComposerIds": ["a"]}))]
    path = tmp_path / "state.vscdb"
    path.write_bytes(create_database(TABLE, [("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)]))
    assert [(found.source_id, found.parent) for found in FORMATS.make("cursor-ide").read(path)] == [("b", None), ("a", "b")]


def test_the_oldest_chats_are_in_the_workspace(tmp_path: Path) -> None:
    storage = tmp_path / "workspaceStorage" / "1"
    storage.mkdir(parents=True)
    bubbles = [{"type": "user", "id": "1", "text": "Hi"}, {"type": "ai", "id": "2", "rawText": "Hello."}]
    tabs = json.dumps({"tabs": [{"tabId": "t", "chatTitle": "Greeting", "bubbles": bubbles}]})
    rows = [("workbench.panel.aichat.view.aichat.chatdata", tabs)]
    (storage / "state.vscdb").write_bytes(create_database(TABLE, [("INSERT INTO ItemTable VALUES (?, ?)", rows)]))
    (storage / "workspace.json").write_text('{"folder": "file:///srv/my%20app"}')
    format: Any = FORMATS.make("cursor-ide")
    (path,) = format.sources(tmp_path)
    (whole,) = [one.whole() for one in format.read(path)]
    assert [text_of(one.parts) for one in whole.messages] == ["Hi", "Hello."]
    assert (whole.facts.title, whole.facts.directory) == ("Greeting", "/srv/my app")


def test_writes_that_are_still_in_the_log_are_seen(tmp_path: Path) -> None:
    path = tmp_path / ".config/Cursor/User/globalStorage/state.vscdb"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as owner:
        owner.executescript(f"PRAGMA journal_mode = WAL; {TABLE}")
        value = json.dumps({"conversation": [{"bubbleId": "1", "type": 1, "text": "Hi"}]})
        owner.execute("INSERT INTO cursorDiskKV VALUES ('composerData:t1', ?)", (value,))
        owner.commit()
        transcript(tmp_path / ".cursor" / "projects" / "p", line("user", {"type": "text", "text": "Hi"}))
        format: Any = FORMATS.make("cursor")
        assert list(format.sources(tmp_path / ".cursor" / "projects")) == []
        (found,) = [one.whole() for one in FORMATS.make("cursor-ide").read(path)]
        assert [text_of(one.parts) for one in found.messages] == ["Hi"]
