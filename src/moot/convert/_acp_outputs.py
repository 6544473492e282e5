"""The output of an ACP agent's tool call as text. Agents put it into one of four places."""

from __future__ import annotations

from difflib import unified_diff

from moot.convert._acp_wire import content_text
from moot.convert._vendor import as_list, as_object, as_text
from moot.types.canonical import Json, JsonObject, dumps

_COMPARED = 200_000
"""Up to this many characters on both sides, a change is shown as a diff. The time to compare grows with the square."""


def texts_of(content: Json) -> str:
    """Join the texts of a call's `content` with newlines."""
    pieces = [content_text(as_object(item).get("content")) for item in as_list(content) if as_object(item).get("type") == "content"]
    return "\n".join(piece for piece in pieces if piece)


def terminals_of(content: Json) -> list[str]:
    """Return the ids of the terminals that a call's `content` refers to."""
    items = [as_object(item) for item in as_list(content)]
    return [as_text(item.get("terminalId")) for item in items if item.get("type") == "terminal" and item.get("terminalId")]


def diffs_of(content: Json) -> str:
    """Return the file changes in a call's `content` as one unified diff."""
    items = [as_object(item) for item in as_list(content)]
    return "".join(_diff(item) for item in items if item.get("type") == "diff")


def output_text(content: Json, raw: Json, terminal: str, noted: Json) -> str:
    """Return the plainest form of a call's output: raw output if it is text, else content, terminal output or the earlier result.

    claude-agent-acp puts Markdown fences around `content`, so a plain `rawOutput` comes first; codex-acp uses only `_meta`.
    """
    if isinstance(raw, str) and raw:
        return raw
    return texts_of(content) or _of_blocks(raw) or terminal or _of_fields(raw) or _of_noted(noted)


def _of_blocks(raw: Json) -> str:
    """Return the text of a raw output that is a list of content blocks, as MCP servers send it."""
    return "\n".join(text for item in as_list(raw) if (text := content_text(item)))


def _of_fields(raw: Json) -> str:
    """Return the text of a raw output that is an object: known fields, else the whole object."""
    fields = as_object(raw)
    if not fields:
        return "" if raw is None or isinstance(raw, str | list | dict) else dumps(raw).decode()
    for name in ("output", "formatted_output", "aggregated_output", "error", "message", "content", "text"):
        if text := as_text(fields.get(name)):
            return text
    streams = [as_text(fields.get(name)) for name in ("stdout", "stderr")]
    if any(streams):
        return "\n".join(text.removesuffix("\n") for text in streams if text)
    return "" if {"stdout", "stderr", "output"} & fields.keys() else as_text(fields.get("fileDiff")) or dumps(fields).decode()


def _of_noted(noted: Json) -> str:
    fields = as_object(noted)
    if "file" in fields:
        return as_text(as_object(fields["file"]).get("content"))
    return noted if isinstance(noted, str) else _of_fields(noted)


def _diff(item: JsonObject) -> str:
    path, old, new = as_text(item.get("path")), as_text(item.get("oldText")), as_text(item.get("newText"))
    before = "/dev/null" if item.get("oldText") is None else path
    if len(old) + len(new) > _COMPARED:
        return f"--- {before}\n+++ {path}\n[{len(old)} characters became {len(new)}]\n"
    lines = unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), before, path)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
