"""Tool calls in the form of the protocol: kind, title, places and content."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from acp.helpers import text_block, tool_content, tool_diff_content
from acp.schema import ContentToolCallContent, FileEditToolCallContent, TerminalToolCallContent, ToolCallLocation

from moot.convert.files.edits import Replacement, path_of, replacements_of
from moot.guard.terminal import clean
from moot.tools.views import doing, done, known_tool
from moot.types.canonical import Json, JsonObject
from moot.types.tool import View

Kind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
Content: TypeAlias = list[ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent]

LONGEST = 50_000
"""Maximum number of characters of a call's text to show."""

_KINDS: dict[str, Kind] = {
    "find_files": "search",
    "search_files": "search",
    "search_history": "search",
    "knowledge": "search",
    "list_files": "read",
    "exit_plan": "switch_mode",
}
_ALL_KINDS: dict[str, Kind] = {name: name for name in cast("tuple[Kind, ...]", get_args(Kind))}
_BY_EFFECT: dict[str, Kind] = {"execute": "execute", "write": "edit", "network": "fetch"}
_BY_ARGUMENT: dict[str, Kind] = {"command": "execute", "url": "fetch", "pattern": "search", "query": "search"}
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_FENCE = re.compile(r"^`{3,}", re.MULTILINE)


def kind_of(name: str, given: JsonObject, metadata: Json = None) -> Kind:
    """Return the kind of a call. The kind of other agents' calls is recognized by their arguments."""
    acp = metadata.get("acp") if isinstance(metadata, dict) else None
    if isinstance(acp, dict) and (kind := _ALL_KINDS.get(str(acp.get("kind")))) is not None:
        return kind
    if name in _KINDS:
        return _KINDS[name]
    if (tool := known_tool(name)) is not None:
        return _first(_BY_EFFECT, tool.effects, given)
    if any(replacements_of(given)):
        return "edit"
    return _first(_BY_ARGUMENT, given.keys(), given)


def _first(kinds: Mapping[str, Kind], names: Collection[str], given: JsonObject) -> Kind:
    for name in kinds:
        if name in names:
            return kinds[name]
    return "read" if path_of(given) else "other"


def title_of(view: View) -> str:
    """Return a call's title on one line."""
    return " ".join(clean(" · ".join(filter(None, (view.title, view.detail)))).split()) or "Tool"


def running(name: str, given: Json, directory: str) -> tuple[str, Content]:
    """Return the title and the content of a call that has not ended."""
    view = doing(name, given)
    changes = list(replacements_of(given if isinstance(given, dict) else {}))
    return title_of(view), _diffs(changes, directory) if changes else _text(view)


def finished(name: str, given: Json, output: Json, value: Json, directory: str, *, failed: bool) -> tuple[str, Content]:
    """Return the title and the content of a call with an output. `value` is the tool's structured result, if known."""
    view = done(name, given, output, value=value, error=failed)
    diff = value.get("diff") if isinstance(value, dict) else None
    arguments = given if isinstance(given, dict) else {}
    path = path_of(arguments)
    if not failed and path and isinstance(diff, str) and (pieces := list(_hunks(path, diff))):
        return title_of(view), _diffs(pieces, directory)
    if not failed and (changes := list(replacements_of(arguments))):
        return title_of(view), _diffs(changes, directory)
    return title_of(view), _text(view)


def places_of(given: Json, directory: str, value: Json = None) -> list[ToolCallLocation]:
    """Return the file that a call works on, with the line if it is known."""
    arguments = given if isinstance(given, dict) else {}
    path = path_of(arguments)
    if not path or "://" in path or path.startswith("blob:"):
        return []
    diff = value.get("diff") if isinstance(value, dict) else None
    line = arguments.get("start_line")
    if isinstance(diff, str) and (match := _HUNK.search(diff)) is not None:
        line = int(match[1])
    return [ToolCallLocation(path=absolute(path, directory), line=line if isinstance(line, int) and line > 0 else None)]


def absolute(path: str, directory: str) -> str:
    """Return the absolute path of a file in a call."""
    return os.path.normpath(Path(directory, path))


def _hunks(path: str, diff: str) -> Iterator[Replacement]:
    """Yield the changed pieces in a unified diff, with the lines around them."""
    old, new, inside = list[str](), list[str](), False
    for line in [*diff.split("\n"), "@@"]:
        if line.startswith("@@"):
            if inside:
                yield Replacement(path, "\n".join(old), "\n".join(new))
            old, new, inside = [], [], True
        elif inside and line[:1] in (" ", "-", "+"):
            old += [line[1:]] if line[0] != "+" else []
            new += [line[1:]] if line[0] != "-" else []


def _diffs(changes: list[Replacement], directory: str) -> Content:
    return [tool_diff_content(absolute(one.path, directory), one.new, one.old) for one in changes]


def _text(view: View) -> Content:
    text = clean(view.body).strip("\n")
    if not text:
        return []
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n… ({len(text):,} characters)"
    if view.language != "markdown":
        fence = max((*_FENCE.findall(text), "``"), key=len) + "`"
        text = f"{fence}{'' if view.language == 'text' else view.language}\n{text}\n{fence}"
    return cast("Content", [tool_content(text_block(text))])
