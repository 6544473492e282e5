from __future__ import annotations

from typing import Any

from moot.convert.edits import changed_files
from moot.types.canonical import JsonObject


def call(name: str, given: JsonObject, **more: Any) -> JsonObject:
    return {"type": "dynamic-tool", "toolName": name, "state": "output-available", "input": given, **more}


def test_changed_files_are_those_that_finished_calls_have_written() -> None:
    parts: list[JsonObject] = [
        {"type": "text", "text": "x"},
        {"type": "tool-write_file", "state": "output-available", "input": {"path": "a.py", "content": ""}},
        call("edit_file", {"path": "a.py", "edits": []}),
        call("edit_file", {"path": "not.py", "edits": []}, state="output-error"),
        call("read_file", {"path": "read.py"}),
        call("memory", {"path": "MEMORY.md", "action": "read"}),
        call("Edit", {"file_path": "/w/b.py", "old_string": "x", "new_string": "y"}),
        call("Read", {"file_path": "/w/read.py", "offset": 7}),
        call("apply", {"changes": [{"path": "c.py", "kind": "add"}, None]}),
        call("other", {}, toolMetadata={"acp": {"kind": "edit", "locations": [{"path": "d.py", "line": 3}]}}),
        call("looked", {}, toolMetadata={"acp": {"kind": "read", "locations": [{"path": "e.py"}]}}),
    ]
    assert changed_files(parts) == ("a.py", "/w/b.py", "c.py", "d.py")
