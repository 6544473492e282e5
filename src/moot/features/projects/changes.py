"""Files that the tool calls of an answer have changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moot.types.canonical import Json, JsonObject
from moot.types.message import Part, is_tool, tool_name

_WRITING = frozenset({"edit_file", "write_file"})
_KINDS = frozenset({"delete", "edit", "move"})
"""Kinds of calls that change files, in the words of the Agent Client Protocol."""
_CONTENT = frozenset({"content", "edits", "new_string"})
"""Arguments of other programs' tools. If one of them is present, the call changes the file in the argument `file_path`."""


def changed_files(parts: Iterable[Part]) -> tuple[str, ...]:
    """Return the paths that finished calls of file tools name, in order and without duplicates. Changes by shell commands are unknown."""
    done = (part for part in parts if is_tool(part) and part.get("state") == "output-available")
    return tuple(dict.fromkeys(path for part in done for path in _paths(part) if isinstance(path, str) and path))


def _paths(part: Part) -> Iterator[Json]:
    given, acp = _object(part.get("input")), _object(_object(part.get("toolMetadata")).get("acp"))
    if tool_name(part) in _WRITING:
        yield given.get("path")
    elif acp.get("kind") in _KINDS:
        yield from _listed(acp.get("locations"))
    elif isinstance(given.get("changes"), list):
        yield from _listed(given["changes"])
    elif given.keys() & _CONTENT:
        yield given.get("file_path")


def _listed(items: Json) -> Iterator[Json]:
    if isinstance(items, list):
        yield from (_object(item).get("path") for item in items)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
