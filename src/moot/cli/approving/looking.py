"""What a call would do, as rows that hide nothing: a command with its parts, a change with its diff, anything else with its arguments."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence

from moot.cli.approving.rows import Row, spelled
from moot.cli.screen.diffs import diff_lines
from moot.cli.screen.styles import ADDED, DIM, REMOVED, REVERSE, Style
from moot.runtime.looking import Looked, object_of
from moot.types.approval import AskedPart
from moot.types.canonical import Json, JsonObject

__all__ = ["rows_of"]

_VERDICTS = {"allow": ("allowed", "good"), "ask": ("asks", "warn"), "deny": ("denied", "bad")}


def rows_of(looked: Looked) -> list[Row]:
    """Everything that is decided about."""
    value = object_of(looked.arguments)
    if not value:
        return [Row(line) for line in spelled(looked.arguments.decode("utf-8", "replace"))]
    if isinstance(command := value.get("command"), str) and command:
        return [*_command(command, looked.parts), *_rest(value, "command")]
    if isinstance(path := value.get("path"), str) and isinstance(content := value.get("content"), str):
        return [*_file(path, looked), *_diff(looked.before or "", content), *_rest(value, "path", "content")]
    if isinstance(path, str) and isinstance(edits := value.get("edits"), list):
        return [*_file(path, looked), *_edits(edits), *_rest(value, "path", "edits")]
    return [*_rest(value), *_why(looked.parts)]


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _command(command: str, parts: Sequence[AskedPart]) -> Iterator[Row]:
    lines = spelled(command)
    if len(parts) == 1 and parts[0].text.strip() == command.strip() and len(lines) == 1:
        yield _part(parts[0], lines[0], indent=2)
        return
    for line in lines:
        yield Row(line, "bold")
    for part in parts:
        for at, line in enumerate(pieces := spelled(part.text)):
            indent = 6 if part.within else 4
            yield _part(part, line, indent=indent) if at == len(pieces) - 1 else Row(line, indent=indent)


def _part(part: AskedPart, text: str, *, indent: int) -> Row:
    word, style = _VERDICTS[part.action]
    return Row(text, "", f"{word}: {' '.join(spelled(part.why))}", style, indent)


def _why(parts: Sequence[AskedPart]) -> Iterator[Row]:
    for part in parts:
        yield Row(f"asks: {' '.join(spelled(part.why))}", "warn")


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _file(path: str, looked: Looked) -> Iterator[Row]:
    yield Row(" ".join(spelled(path)), "bold", looked.fact)


def _diff(before: str, after: str) -> Iterator[Row]:
    old, new = before.splitlines(), after.splitlines()
    yield from _changed(list(difflib.unified_diff(old, new, lineterm=""))[2:] if old else [f"+{line}" for line in new])
    if after and not after.endswith("\n"):
        yield Row("(no newline at its end)", "dim")


def _edits(edits: Sequence[Json]) -> Iterator[Row]:
    for number, edit in enumerate(edits, 1):
        known = edit if isinstance(edit, dict) else {}
        every = ", every place" if known.get("replace_all") is True else ""
        yield Row(f"edit {number} of {len(edits)}{every}", "dim")
        removed = [f"-{line}" for line in str(known.get("old_text", "")).split("\n")]
        added = [f"+{line}" for line in str(known.get("new_text", "")).split("\n")]
        yield from _changed([*removed, *added])


def _changed(lines: Sequence[str]) -> Iterator[Row]:
    """Lines of a diff as every other place draws them, but spelled out, and none taken for a file's name."""
    if not lines:
        return
    for line in diff_lines("\n".join(" ".join(spelled(line)) for line in lines), headed=False):
        yield Row("".join(text for text, _ in line), spans=tuple((_named(style), text) for text, style in line))


def _named(style: Style) -> str:
    """A style of the screen by our own names."""
    name = next((name for part, name in ((ADDED, "good"), (REMOVED, "bad"), (DIM, "dim")) if style & part == part), "")
    return f"{name},marked" if style & REVERSE else name


# ── anything ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rest(value: JsonObject, *shown: str) -> Iterator[Row]:
    for key, item in value.items():
        if key in shown:
            continue
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, indent=2)
        first, *more = spelled(text)
        yield Row(f"{' '.join(spelled(key))}: {first}")
        yield from (Row(line, indent=4) for line in more)
