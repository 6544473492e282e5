"""Chats of VS Code with GitHub Copilot."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from format_samples import samples_of
from moot.formats.kit.fidelity import steps_of
from moot.plugins import FORMATS
from moot.types.format import WholeConversation
from moot.types.message import is_tool, text_of


def read(path: Path) -> WholeConversation:
    (found,) = FORMATS.make("vscode-copilot").read(path)
    return found.whole()


def log(folder: Path, *changes: Any) -> Path:
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in changes))
    return path


def turn(id: str, *response: Any, **more: Any) -> Any:
    return {"requestId": id, "message": {"text": f"prompt {id}"}, "response": list(response), **more}


def start(*requests: Any) -> Any:
    return {"kind": 0, "v": {"version": 3, "sessionId": "s1", "requests": list(requests)}}


def texts(found: WholeConversation) -> list[str]:
    return [text_of(one.parts) for one in found.messages]


def test_changes_are_applied_in_order(tmp_path: Path) -> None:
    changes = [
        start(turn("a", {"value": "one"})),
        {"kind": 2, "k": ["requests"], "v": [turn("b", {"value": "three"})]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": " two"}]},
        {"kind": 2, "k": ["requests", 1, "response"], "i": 0, "v": [{"value": "four"}]},
        {"kind": 1, "k": ["requests", 1, "response", 0, "value"], "v": "five"},
        {"kind": 1, "k": ["customTitle"], "v": "Numbers"},
        {"kind": 3, "k": ["customTitle"]},
    ]
    found = read(log(tmp_path, *changes))
    assert (texts(found), found.facts.title) == (["prompt a", "one two", "prompt b", "five"], "")
    assert found.fidelity.lost == {}


def test_a_push_with_an_index_removes_what_follows_it(tmp_path: Path) -> None:
    changes = [start(turn("a"), turn("b")), {"kind": 2, "k": ["requests"], "i": 1, "v": [turn("c")]}]
    assert [text for text in texts(read(log(tmp_path, *changes))) if text] == ["prompt a", "prompt c"]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": 4, "k": ["requests"], "v": []},
        {"kind": 2, "k": ["nothing", "here"], "v": []},
        {"kind": 1, "k": ["requests", 7, "response"], "v": []},
        {"kind": 1, "k": [], "v": 1},
    ],
)
def test_a_change_that_does_not_fit_is_reported(tmp_path: Path, change: Any) -> None:
    found = read(log(tmp_path, start(turn("a", {"value": "one"})), change))
    assert (texts(found), found.fidelity.lost) == (["prompt a", "one"], {"records": 1})


def test_what_the_model_received_is_preferred_to_what_was_shown(tmp_path: Path) -> None:
    shown = {"kind": "toolInvocationSerialized", "toolId": "copilot_read", "toolCallId": "c1__vscode-9", "isComplete": True}
    shown |= {"resultDetails": {"input": "{}", "output": [{"value": "a…"}]}}
    rounds = [{"response": "", "toolCalls": [{"id": "c1", "name": "read_file", "arguments": '{"path": "a.txt"}'}]}]
    metadata = {"toolCallRounds": rounds, "toolCallResults": {"c1": {"content": [{"value": "all of a"}]}}}
    _, answer = read(log(tmp_path, start(turn("a", shown, {"value": "Done."}, result={"metadata": metadata})))).messages
    (call,) = filter(is_tool, answer.parts)
    assert (call["toolName"], call["input"], call.get("output")) == ("read_file", {"path": "a.txt"}, "all of a")
    assert [part["type"] for part in answer.parts] == ["step-start", "dynamic-tool", "step-start", "text"]


def test_file_names_are_part_of_the_text_and_other_items_are_kept(tmp_path: Path) -> None:
    edits = {"kind": "textEditGroup", "uri": {"path": "/a.txt"}, "edits": [[{"text": "new"}]]}
    response = [{"value": "See "}, {"kind": "inlineReference", "inlineReference": {"fsPath": "/srv/a.txt"}}, {"value": "."}, edits]
    _, answer = read(log(tmp_path, start(turn("a", *response)))).messages
    assert (text_of(answer.parts), answer.parts[-1]["data"]) == ("See `a.txt`.", edits)


def test_tokens_of_a_turn_are_approximate(tmp_path: Path) -> None:
    found = read(log(tmp_path, start(turn("a", {"value": "one"}, result={"metadata": {"promptTokens": 9, "outputTokens": 2}}))))
    assert (found.fidelity.kept.get("usage", 0), found.fidelity.approximated["usage"]) == (0, 1)
    assert found.messages[1].metadata["steps"] == [{"step": 1, "usage": {"input": 9, "output": 2}}]


def test_a_converted_chat_is_read_once(tmp_path: Path) -> None:
    format: Any = FORMATS.make("vscode-copilot")
    sample = samples_of(format)["log"]
    assert isinstance(sample, bytes)
    folder = tmp_path / "chatSessions"
    folder.mkdir()
    (folder / "s1.json").write_bytes(b'{"sessionId": "s1", "requests": []}')
    (folder / "s1.jsonl").write_bytes(sample)
    assert [path.name for path in format.sources(tmp_path)] == ["s1.jsonl"]


def test_pictures_and_other_attachments_of_a_prompt_are_kept(tmp_path: Path) -> None:
    png = b"\x89PNG"
    entries = [
        {"kind": "image", "name": "new", "mimeType": "image/png", "value": {"$base64": base64.b64encode(png).decode()}},
        {"kind": "image", "name": "old", "value": {str(at): byte for at, byte in enumerate(png)}},
        {"kind": "image", "name": "bad", "mimeType": "image/png", "value": {"$base64": "?"}},
        {"kind": "image", "name": "huge", "value": {"0": 999}},
        {"kind": "file", "name": "a.py", "value": {"path": "/srv/a.py"}},
        None,
    ]
    found = read(log(tmp_path, start(turn("a", {"value": "one"}, variableData={"variables": entries}))))
    parts = found.messages[0].parts[1:]
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    assert [(part["filename"], part["url"]) for part in parts[:2]] == [("new", url), ("old", url)]
    assert [(part["type"], part["data"]) for part in parts[2:]] == [("data-context", entry) for entry in entries[2:]]
    assert found.fidelity.kept["pictures"] == 2


def test_a_request_that_is_stored_twice_is_counted_once(tmp_path: Path) -> None:
    counted = turn("a", {"value": "one"}, result={"metadata": {"promptTokens": 900, "outputTokens": 40}})
    changed = {**counted, "response": [{"value": "two"}]}
    found = read(log(tmp_path, start(counted), {"kind": 2, "k": ["requests"], "v": [counted, changed]}))
    assert texts(found) == ["prompt a", "one", "prompt a", "two"]
    assert sum(bool(step.get("usage")) for one in found.messages for step in steps_of(one)) == 1
