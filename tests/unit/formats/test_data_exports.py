from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from moot.errors import UsageError
from moot.formats.apps.chatgpt import ChatGPT
from moot.formats.apps.claude_ai import ClaudeAi
from moot.types.format import WholeConversation
from moot.types.message import is_tool, text_of

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def message(role: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return {"author": {"role": role, "name": name}, "content": content, "create_time": 1700000000.5, "metadata": {}, **more}


def words(*said: Any) -> dict[str, Any]:
    return {"content_type": "multimodal_text" if any(isinstance(one, dict) for one in said) else "text", "parts": list(said)}


def chatgpt(*nodes: tuple[str, str | None, dict[str, Any] | None], current: str = "") -> bytes:
    mapping = {id: {"id": id, "parent": parent, "children": [], "message": said} for id, parent, said in nodes}
    conversation = {"title": "Drawn", "create_time": 1700000000.1, "mapping": mapping, "current_node": current, "conversation_id": "c1"}
    return json.dumps([conversation]).encode()


DRAWN = chatgpt(
    ("root", None, None),
    ("hidden", "root", message("system", words(""))),
    ("u1", "hidden", message("user", words({"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-A1"}, "draw it"))),
    ("a1", "u1", message("assistant", {"content_type": "thoughts", "thoughts": [{"summary": "Hm", "content": "a dot"}]})),
    ("a2", "a1", message("assistant", {"content_type": "code", "text": "dot()"}, recipient="python")),
    ("t1", "a2", message("tool", {"content_type": "execution_output", "text": "drawn"}, name="python")),
    ("a3", "t1", message("assistant", words("done"), recipient="all")),
    ("b3", "t1", message("assistant", words("other"), recipient="all")),
    current="a3",
)


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def read(format: Any, path: Path) -> list[WholeConversation]:
    return [one.whole() for one in format.read(path)]


def test_a_zip_is_read_with_its_pictures(tmp_path: Path) -> None:
    path = packed(tmp_path / "export.zip", {"chat.html": b"<html>", "conversations.json": DRAWN, "file-A1-dot.png": PIXEL})
    assert ChatGPT().sniff(path, path.read_bytes())
    [conversation] = read(ChatGPT(), path)
    asked, answer, other = conversation.messages
    assert [part["type"] for part in asked.parts] == ["text", "file"]
    assert asked.parts[1]["url"] == "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    assert [part["type"] for part in answer.parts if part["type"] != "step-start"] == ["reasoning", "dynamic-tool", "text"]
    [call] = [part for part in answer.parts if is_tool(part)]
    assert (call["toolName"], call["input"], call["output"]) == ("python", "dot()", "drawn")
    assert (text_of(answer.parts), text_of(other.parts)) == ("done", "other")
    assert answer.parent == other.parent == "u1"
    assert conversation.facts.head == "a1"
    assert not conversation.fidelity.lost


def test_pictures_that_are_not_in_the_export_are_named_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(DRAWN)
    [conversation] = read(ChatGPT(), path)
    assert conversation.fidelity.lost == {"files": 1}
    assert conversation.messages[0].parts[1] == {"type": "data-file", "data": {"id": "file-A1", "name": ""}}


def test_an_unpacked_export_is_read_from_its_folder_and_from_the_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_bytes(DRAWN)
    (tmp_path / "file-A1-dot.png").write_bytes(PIXEL)
    assert ChatGPT().sniff(tmp_path, b"")
    for path in (tmp_path, tmp_path / "conversations.json"):
        [conversation] = read(ChatGPT(), path)
        assert conversation.fidelity.kept["pictures"] == 1


def test_names_outside_the_archive_are_skipped(tmp_path: Path) -> None:
    path = packed(tmp_path / "export.zip", {"../file-A1-out.png": PIXEL, "/file-A1-abs.png": PIXEL, "conversations.json": DRAWN})
    [conversation] = read(ChatGPT(), path)
    assert conversation.fidelity.lost == {"files": 1}


def test_a_zip_bomb_among_the_pictures_is_left_out(tmp_path: Path) -> None:
    path = packed(tmp_path / "export.zip", {"conversations.json": DRAWN, "file-A1-dot.png": b"\x89PNG" + bytes(20 << 20)})
    [conversation] = read(ChatGPT(), path)
    assert conversation.fidelity.lost == {"files": 1}
    assert len(conversation.messages) == 3


def test_a_zip_bomb_of_conversations_is_rejected_with_a_message(tmp_path: Path) -> None:
    path = packed(tmp_path / "export.zip", {"conversations.json": b"[" + b" " * (20 << 20) + b"]"})
    with pytest.raises(UsageError, match="expands to more than"):
        read(ChatGPT(), path)


def test_a_broken_conversation_of_an_export_does_not_affect_others(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(DRAWN[:-1] + b', {"mapping": nonsense}, ' + DRAWN[1:].replace(b'"c1"', b'"c2"'))
    found = read(ChatGPT(), path)
    assert [one.conversation.source_id for one in found] == ["c1", "conversation-2", "c2"]
    assert found[1].fidelity.lost == {"records": 1}


def test_a_truncated_export_keeps_its_complete_conversations(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(DRAWN[:-1] + b", " + DRAWN[1:-200])
    first, second = read(ChatGPT(), path)
    assert len(first.messages) == 3
    assert second.fidelity.lost == {"records": 1}


def test_claude_exports_keep_branches_calls_and_attachments(tmp_path: Path) -> None:
    said = [
        {"uuid": "m1", "sender": "human", "text": "look", "attachments": [{"file_name": "a.txt", "extracted_content": "one"}]},
        {"uuid": "m2", "sender": "assistant", "content": [{"type": "text", "text": "first"}]},
        {
            "uuid": "m3",
            "sender": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "tool_use", "name": "search", "input": {"q": "x"}},
                {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "found"}]},
                {"type": "text", "text": "second"},
            ],
        },
    ]
    for one, parent in zip(said, ["00000000-0000-4000-8000-000000000000", "m1", "m1"], strict=True):
        one["parent_message_uuid"] = parent
    conversation = {"uuid": "c1", "name": "Looked", "chat_messages": said, "current_leaf_message_uuid": "m3"}
    path = packed(tmp_path / "data.zip", {"conversations.json": json.dumps([conversation]).encode(), "users.json": b"[]"})
    assert ClaudeAi().sniff(path, path.read_bytes())
    assert not ChatGPT().sniff(path, path.read_bytes())
    [read_] = read(ClaudeAi(), path)
    assert [(one.parent, text_of(one.parts)) for one in read_.messages] == [(None, "looka.txt:\none"), ("m1", "first"), ("m1", "second")]
    [call] = [part for part in read_.messages[2].parts if is_tool(part)]
    assert (call["input"], call["output"]) == ({"q": "x"}, "found")
    assert (read_.facts.title, read_.facts.head) == ("Looked", "m3")
