from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moot.convert.files.edits import changed_files, edits_of
from moot.types.canonical import Json, JsonObject


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


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n+more\n*** Delete File: b.py\n*** Add File: c.py\n+one\n*** End Patch"
BLOCKS = "<<<<<<< SEARCH\nsame\nold\n=======\nsame\nnew\nmore\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"path": "a", "edits": [{"old_text": "x\ny", "new_text": "x\nz"}, {"old_text": "p", "new_text": ""}]}, [("a", 1, 2)]),
        ({"file_path": "a", "old_string": "one\ntwo\nthree", "new_string": "one\n2\n2b\nthree"}, [("a", 2, 1)]),
        ({"filePath": "a", "oldString": "", "newString": "x\n"}, [("a", 1, 0)]),
        ({"path": "a", "content": "x\ny\n"}, [("a", 2, None)]),
        ({"path": "a", "diff": BLOCKS}, [("a", 2, 1)]),
        ({"path": "a", "diff": "--- a\n+++ a\n@@\n-x\n+y\n+z"}, [("a", 2, 1)]),
        ({"path": "a", "edit": {"old": "x", "new": "y"}}, [("a", 1, 1)]),
        ({"input": PATCH}, [("a.py", 2, 1), ("b.py", 0, None), ("c.py", 1, 0)]),
        ({"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}, [("a.py", 2, 1), ("b.py", 0, None), ("c.py", 1, 0)]),
        ({"changes": [{"path": "a", "diff": "+x"}, {"path": "b"}]}, [("a", 1, 0), ("b", None, None)]),
        ({"input": "*** Begin Patch"}, []),
        ({"path": "a", "pattern": "x"}, []),
        ({"path": "a" * 5000, "content": "x"}, []),
        ({"path": 7, "content": "x"}, []),
    ],
)
def test_lines_are_counted_in_the_arguments_of_many_agents(given: JsonObject, found: list[tuple[str, int | None, int | None]]) -> None:
    assert [(edit.path, edit.added, edit.removed) for edit in edits_of([call("tool", given)])] == found


NAMES = ("path", "acp", "kind", "locations", "changes", "diff", "edit", "edits", "old_string", "new_string", "content", "input", "patch")
WORDS = ("edit", "a.py", PATCH, BLOCKS, "*** Begin Patch", "+x\n-y", "<<<<<<< SEARCH\n=======", "")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)


@given(JSON, JSON)
@example({"path": "a"}, {"acp": {"kind": []}})
@example({"path": "a"}, {"acp": {"kind": {}}})
def test_any_arguments_and_metadata_are_accepted(arguments: Json, metadata: Json) -> None:
    part: JsonObject = {"type": "dynamic-tool", "toolName": "t", "state": "output-available", "input": arguments}
    for edit in edits_of([{**part, "toolMetadata": metadata}]):
        assert edit.path
        assert edit.tool == "t"
        assert all(count is None or count >= 0 for count in (edit.added, edit.removed))
