"""File changes in the tool calls of an answer, recognized by the argument names of many agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moot.types.canonical import Json, JsonObject
from moot.types.message import Part, is_tool, tool_name

_KINDS = frozenset({"delete", "edit", "move"})
"""Kinds of calls that change files, in the terms of the Agent Client Protocol."""
_PATHS = ("file_path", "path", "filePath", "target_file", "notebook_path", "absolute_path", "filepath", "filename")
_OLD = ("old_string", "old_text", "oldString", "oldText", "old_str", "old")
_NEW = ("new_string", "new_text", "newString", "newText", "new_str", "new", "new_source")
_WHOLE = ("content", "contents", "file_text", "file_content", "code_edit")
"""Names of arguments that contain the whole file, or a piece whose old text is unknown."""
_DIFFS = ("diff", "patch", "unified_diff")
_PATCHES = ("input", "patch", "patchText", "patch_text", "command")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_BEGIN = "*** Begin Patch"
_LONGEST = 4096


class Edit(NamedTuple):
    """A change to one file by a tool call."""

    path: str
    """The path as given in the call. A relative path is relative to the agent's folder."""
    tool: str
    added: int | None = None
    """Number of added lines; None if it is unknown."""
    removed: int | None = None


def edits_of(parts: Iterable[Part]) -> Iterator[Edit]:
    """Yield the changes made by finished calls to file tools, in order. Changes made by shell commands are unknown, except for patches."""
    for part in parts:
        if is_tool(part) and part.get("state") == "output-available":
            tool = tool_name(part)
            yield from (edit for edit in _of_call(part, tool) if edit.path and len(edit.path) <= _LONGEST)


def changed_files(parts: Iterable[Part]) -> tuple[str, ...]:
    """Return the paths of the changed files, in order and without duplicates."""
    return tuple(dict.fromkeys(edit.path for edit in edits_of(parts)))


def _of_call(part: Part, tool: str) -> Iterator[Edit]:
    given, acp = _object(part.get("input")), _object(_object(part.get("toolMetadata")).get("acp"))
    if _text(acp.get("kind")) in _KINDS:
        yield from (Edit(_text(one.get("path")), tool) for one in _objects(acp.get("locations")))
    elif isinstance(given.get("changes"), list):
        for change in _objects(given["changes"]):
            yield Edit(_text(change.get("path")), tool, *_of_diff(_text(change.get("diff"))))
    elif patch := next((text for name in _PATCHES if _BEGIN in (text := _text(given.get(name)))), ""):
        yield from _of_patch(patch, tool)
    elif (path := _first(given, _PATHS)) and (counts := _counts(given)) is not None:
        yield Edit(path, tool, *counts)


def _counts(given: JsonObject) -> tuple[int | None, int | None] | None:
    """Return the numbers of added and removed lines, or None if the call doesn't change the file."""
    edits = given.get("edits")
    pieces = _objects(edits) if isinstance(edits, list) else [given, _object(given.get("edit"))]
    pairs = [pair for piece in pieces if (pair := _replaced(piece)) is not None]
    if pairs:
        return sum(added for added, _ in pairs), sum(removed for _, removed in pairs)
    if diff := _first(given, _DIFFS):
        return _of_diff(diff)
    whole = next((given[name] for name in _WHOLE if isinstance(given.get(name), str)), None)
    return None if whole is None else (_lines(str(whole)), None)


def _replaced(piece: JsonObject) -> tuple[int, int] | None:
    new = next((piece[name] for name in _NEW if isinstance(piece.get(name), str)), None)
    if new is None:
        return None
    return changed_lines(next((_text(piece[name]) for name in _OLD if name in piece), ""), str(new))


def changed_lines(old: str, new: str) -> tuple[int, int]:
    """Return the numbers of added and removed lines between two texts,
    not counting the lines that both have in common at the start and the end.
    """
    before, after = old.splitlines(), new.splitlines()
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return len(after) - start - end, len(before) - start - end


def _of_diff(diff: str) -> tuple[int | None, int | None]:
    """Return the numbers of added and removed lines in a unified diff or in search and replace blocks."""
    if not diff:
        return None, None
    lines = diff.splitlines()
    if any("SEARCH" in line and line.startswith(("<<<<<<<", "-------")) for line in lines):
        return _of_blocks(lines)
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    return added, sum(line.startswith("-") and not line.startswith("---") for line in lines)


def _of_blocks(lines: list[str]) -> tuple[int, int]:
    added = removed = 0
    old, new, side = list[str](), list[str](), 0
    for line in lines:
        if side == 0 and "SEARCH" in line:
            old, new, side = [], [], 1
        elif side == 1 and line.startswith("======="):
            side = 2
        elif side == 2 and "REPLACE" in line:
            pair = changed_lines("\n".join(old), "\n".join(new))
            added, removed, side = added + pair[0], removed + pair[1], 0
        elif side:
            (old if side == 1 else new).append(line)
    return added, removed


def _of_patch(patch: str, tool: str) -> Iterator[Edit]:
    """Yield the files of a patch in Codex's format."""
    found = list(_PATCHED.finditer(patch))
    ends = [*(match.start() for match in found[1:]), len(patch)]
    for match, end in zip(found, ends, strict=False):  # a patch without files has one end too many
        body = patch[match.end() : end]
        yield Edit(match[1].strip(), tool, *(_of_diff(body) if "Delete File" not in match[0] else (0, None)))


def _lines(text: str) -> int:
    return len(text.splitlines())


def _first(given: JsonObject, names: Iterable[str]) -> str:
    return next((text for name in names if (text := _text(given.get(name)))), "")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Json) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class Replacement(NamedTuple):
    """A piece of a file and its new content."""

    path: str
    old: str | None
    """None if the old content is unknown."""
    new: str


def replacements_of(given: JsonObject) -> Iterator[Replacement]:
    """Yield the changes that a call with these arguments would make, if they contain the new content."""
    if not (path := _first(given, _PATHS)):
        return
    edits = given.get("edits")
    for piece in _objects(edits) if isinstance(edits, list) else [given]:
        old, new, whole = (_written(piece, names) for names in (_OLD, _NEW, _WHOLE))
        if new is not None:
            yield Replacement(path, old, new)
        elif whole is not None:
            yield Replacement(path, None, whole)


def _written(given: JsonObject, names: Iterable[str]) -> str | None:
    return next((str(given[name]) for name in names if isinstance(given.get(name), str)), None)


def path_of(given: JsonObject) -> str:
    """Return the path in a call's arguments, or an empty string."""
    return _first(given, _PATHS)
