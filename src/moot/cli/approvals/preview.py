"""Preview of a tool call: the parts of a command, the diff of a file change, or the arguments of any other call. Nothing is hidden."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence

from moot.cli.terminal.prompts.rows import Row
from moot.cli.terminal.text import ADDED, COMMENT, CONSTANT, DIM, KEYWORD, LINK, REMOVED, REVERSE, STRING, Line, Style
from moot.cli.transcript.diffs import diff_lines, margin_of
from moot.features.approvals import CallPreview, compared_lines, object_of
from moot.guard.terminal import visible_line, visible_lines
from moot.types.approval import ApprovalPart
from moot.types.canonical import Json, JsonObject

_VERDICTS = {"allow": ("allowed", "good"), "ask": ("needs approval", "warn"), "deny": ("denied", "bad")}


def call_rows(preview: CallPreview) -> list[Row]:
    """Return the rows that show the whole call."""
    value = object_of(preview.arguments)
    if preview.command:
        return [*_command(preview.command, preview.parts), *_arguments(value)]
    if not value:
        return [Row(line) for line in visible_lines(preview.arguments.decode("utf-8", "replace"))]
    if isinstance(command := value.get("command"), str) and command:
        return [*_command(command, preview.parts), *_arguments(value, "command")]
    if isinstance(path := value.get("path"), str):
        file = Row(visible_line(path), "bold", preview.fact)
        if isinstance(content := value.get("content"), str):
            return [file, *_diff(path, preview.before or "", content), *_ending(content), *_arguments(value, "path", "content")]
        if isinstance(edits := value.get("edits"), list):
            changes = list(_diff(path, preview.before, preview.after)) if preview.before and preview.after is not None else []
            return [file, *(changes or _edits(edits)), *_arguments(value, "path", "edits")]
    return [*_arguments(value), *(Row(f"needs approval: {visible_line(part.why)}", "warn") for part in preview.parts)]


def _command(command: str, parts: Sequence[ApprovalPart]) -> Iterator[Row]:
    lines = visible_lines(command)
    if len(parts) == 1 and parts[0].text.strip() == command.strip() and len(lines) == 1:
        yield _part(parts[0], lines[0], indent=2)
        return
    for line in lines:
        yield Row(line, "bold")
    for part in parts:
        for at, line in enumerate(pieces := visible_lines(part.text)):
            indent = 6 if part.within else 4
            yield _part(part, line, indent=indent) if at == len(pieces) - 1 else Row(line, indent=indent)


def _part(part: ApprovalPart, text: str, *, indent: int) -> Row:
    word, style = _VERDICTS[part.action]
    return Row(text, "", f"{word}: {visible_line(part.why)}", style, indent)


def _diff(path: str, before: str, after: str) -> Iterator[Row]:
    """Show the changes of a file, with line numbers."""
    lines = map(visible_line, difflib.unified_diff(*compared_lines(before, after), path, path, lineterm=""))
    if text := "\n".join(lines):
        yield from _styled(diff_lines(text, margin=margin_of(text)))


def _ending(content: str) -> Iterator[Row]:
    if content and not content.endswith("\n"):
        yield Row("(no newline at end of file)", "dim")


def _edits(edits: Sequence[Json]) -> Iterator[Row]:
    for number, edit in enumerate(edits, 1):
        known = edit if isinstance(edit, dict) else {}
        scope = ", all occurrences" if known.get("replace_all") is True else ""
        yield Row(f"edit {number} of {len(edits)}{scope}", "dim")
        removed = [f"-{line}" for line in str(known.get("old_text", "")).split("\n")]
        added = [f"+{line}" for line in str(known.get("new_text", "")).split("\n")]
        yield from _diff_rows([*removed, *added])


def _diff_rows(lines: Sequence[str]) -> Iterator[Row]:
    """Render the lines of a diff in the usual style, with control characters visible and no line treated as a file name."""
    if lines:
        yield from _styled(diff_lines("\n".join(visible_line(line) for line in lines), headed=False))


def _styled(lines: Sequence[Line]) -> Iterator[Row]:
    for line in lines:
        yield Row("".join(text for text, _ in line), spans=tuple((_style_name(style), text) for text, style in line))


_NAMES = {ADDED: "good", REMOVED: "bad", DIM: "dim", COMMENT: "dim", KEYWORD: "keyword", STRING: "good", CONSTANT: "code", LINK: "link"}


def _style_name(style: Style) -> str:
    """Return moot's name for a screen style."""
    name = next((name for part, name in _NAMES.items() if style & part == part), "")
    return f"{name},marked" if style & REVERSE else name


def _arguments(value: JsonObject, *shown: str) -> Iterator[Row]:
    for key, item in value.items():
        if key in shown:
            continue
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, indent=2)
        first, *more = visible_lines(text)
        yield Row(f"{visible_line(key)}: {first}")
        yield from (Row(line, indent=4) for line in more)
