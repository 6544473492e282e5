"""A conversation as one Markdown text that a person edits, and back. Pure; `parse(render(entries)) == entries` for any texts.

Each message begins with a mark of its own line, `<!-- moot 3 user ID -->`; a line of a text that looks like a mark gets a backslash.
A block that can't be edited is a mark too, `<!-- moot = … -->`, and a text right behind another text is parted from it by
`<!-- moot text -->`. Every block ends with one empty line, which is not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from moot.errors import UsageError
from moot.types.message import Role

_MARK = "<!-- moot"
_LOOKS_LIKE_ONE = re.compile(r"\\*<!-- moot")
_HEADER = re.compile(r"<!-- moot (?:([0-9]{1,9}) (\S{1,40})(?: (\S{1,200}))?|(user|assistant|system)) -->")
_FIXED = re.compile(r"<!-- moot = (.*) -->")
_TEXT = "<!-- moot text -->"
_NOTE = "<!-- moot: "

PREAMBLE: Sequence[str] = (
    "<!-- moot: Change, remove or add messages: what comes of it is a new branch, and the old one stays. -->",
    "<!-- moot: Marks stay as they are. A new message begins with a line such as this one: -->",
    "<!-- moot: <!-- moot user --> -->",
    "",
)


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """Something that can be seen and not changed: a tool call, a file."""

    words: str
    """One line."""
    line: int = field(default=0, compare=False)


Block: TypeAlias = Text | Fixed


@dataclass(frozen=True, slots=True)
class Entry:
    """One message."""

    role: Role | str
    """Of a numbered one whatever stands in its mark: the number says which message it is."""
    blocks: tuple[Block, ...]
    number: int = 0
    """0 = a new one."""
    id: str = ""
    line: int = field(default=0, compare=False)
    """Where it begins, from 1; 0 = not from a text."""


def render(entries: Sequence[Entry]) -> str:
    """The text for the editor."""
    lines: list[str] = [*PREAMBLE]
    for entry in entries:
        named = [str(entry.number)] if entry.number else []
        lines.append(" ".join([_MARK, *named, entry.role, *([entry.id] if entry.id else []), "-->"]))
        lines += render_blocks(entry.blocks)
    return "\n".join([*lines, ""])


def render_blocks(blocks: Sequence[Block]) -> list[str]:
    """The lines of one message."""
    lines: list[str] = []
    before: Block | None = None
    for block in blocks:
        if isinstance(block, Fixed):
            lines.append(f"{_MARK} = {block.words} -->")
        else:
            lines += [_TEXT] if isinstance(before, Text) else []
            lines += [f"\\{line}" if _LOOKS_LIKE_ONE.match(line) else line for line in block.text.split("\n")]
        lines.append("")
        before = block
    return lines


def parse(text: str) -> tuple[Entry, ...]:
    """The messages of an edited text. Raises UsageError naming the line that is neither a text nor a mark as it was given out."""
    entries: list[Entry] = []
    starts: list[tuple[int, Entry]] = []
    lines = text.removesuffix("\n").split("\n")
    for at, line in enumerate(lines):
        if header := _HEADER.fullmatch(line):
            starts.append((at, Entry(header[2] or header[4], (), int(header[1] or 0), header[3] or "", at + 1)))
    for at, line in enumerate(lines[: starts[0][0] if starts else len(lines)]):
        if line.strip() and not line.startswith(_NOTE):
            raise UsageError(f"line {at + 1} belongs to no message: {line[:60]!r}", fix="Messages begin with a line <!-- moot user -->.")
    ends = [at for at, _ in starts[1:]] + [len(lines)]
    for (at, entry), end in zip(starts, ends, strict=False):
        blocks = parse_blocks(lines[at + 1 : end], at + 2)
        entries.append(Entry(entry.role, blocks, entry.number, entry.id, entry.line))
    return tuple(entries)


def parse_blocks(lines: Sequence[str], first: int) -> tuple[Block, ...]:
    """The blocks of one message whose first line has that number."""
    blocks: list[Block] = []
    taken: list[str] = []
    parted = False

    def close() -> None:
        kept = taken[1:] if blocks and isinstance(blocks[-1], Fixed) and taken and not taken[0] and not parted else taken
        kept = kept[:-1] if kept and not kept[-1] else kept
        if kept or parted:
            blocks.append(Text("\n".join(kept)))
        taken.clear()

    for at, line in enumerate(lines, first):
        if not line.startswith(_MARK):
            taken.append(line[1:] if line.startswith("\\") and _LOOKS_LIKE_ONE.match(line) else line)
        elif line == _TEXT:
            close()
            parted = True
        elif match := _FIXED.fullmatch(line):
            close()
            blocks.append(Fixed(match[1], at))
            parted = False
        elif not line.startswith(_NOTE):
            raise UsageError(f"line {at} looks like a mark and is none: {line[:60]!r}", fix="Put a backslash before it, or mend it.")
    close()
    return tuple(blocks)
