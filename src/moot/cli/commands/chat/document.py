"""Conversion of messages to one editable Markdown text, and back. `parse(render(entries)) == entries` for any texts.

Each message starts with a marker line, `<!-- moot 3 user ID -->`. A line of text that looks like a marker is escaped with a backslash. A
read-only block is also a marker, `<!-- moot = … -->`. Adjacent texts are separated by `<!-- moot text -->`. Every block ends with an empty
line, which is not part of the block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from moot.errors import UsageError
from moot.guard.terminal import clean
from moot.types.message import Message, Part, Role, is_tool, text_part, tool_name

_MARKER = "<!-- moot"
_MARKER_LIKE = re.compile(r"\\*<!-- moot")
_HEADER = re.compile(r"<!-- moot (?:([0-9]{1,9}) (\S{1,40})(?: (\S{1,200}))?|(user|assistant|system)) -->")
_FIXED = re.compile(r"<!-- moot = (.*) -->")
_TEXT = "<!-- moot text -->"
_NOTE = "<!-- moot: "

PREAMBLE: Sequence[str] = (
    "<!-- moot: Change, remove or add messages. Your changes become a new branch; the old one is kept. -->",
    "<!-- moot: Leave the markers unchanged. A new message starts with a line like this one: -->",
    "<!-- moot: <!-- moot user --> -->",
    "",
)


@dataclass(frozen=True, slots=True)
class Text:
    """A text that can be edited."""

    text: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """A read-only block, such as a tool call or a file."""

    label: str
    """One line that describes the block."""
    line: int = field(default=0, compare=False)


Block: TypeAlias = Text | Fixed


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of the editable text."""

    role: Role | str
    """The role in the marker. It identifies only new messages; others are identified by their number."""
    blocks: tuple[Block, ...]
    number: int = 0
    """Number of the message; 0 for a new one."""
    id: str = ""
    line: int = field(default=0, compare=False)
    """Number of the entry's first line, from 1; 0 if the entry was not parsed from a text."""


def render(entries: Sequence[Entry]) -> str:
    """Return the text to open in the editor."""
    lines: list[str] = [*PREAMBLE]
    for entry in entries:
        number = [str(entry.number)] if entry.number else []
        lines.append(" ".join([_MARKER, *number, entry.role, *([entry.id] if entry.id else []), "-->"]))
        lines += render_blocks(entry.blocks)
    return "\n".join([*lines, ""])


def render_blocks(blocks: Sequence[Block]) -> list[str]:
    """Return the lines of one message, without its marker."""
    lines: list[str] = []
    before: Block | None = None
    for block in blocks:
        if isinstance(block, Fixed):
            lines.append(f"{_MARKER} = {block.label} -->")
        else:
            lines += [_TEXT] if isinstance(before, Text) else []
            lines += [f"\\{line}" if _MARKER_LIKE.match(line) else line for line in block.text.split("\n")]
        lines.append("")
        before = block
    return lines


def parse(text: str) -> tuple[Entry, ...]:
    """Parse the messages in an edited text.
    If a marker is invalid or there is text outside the messages, raise UsageError with the line number.
    """
    entries: list[Entry] = []
    starts: list[tuple[int, Entry]] = []
    lines = text.removesuffix("\n").split("\n")
    for at, line in enumerate(lines):
        if header := _HEADER.fullmatch(line):
            starts.append((at, Entry(header[2] or header[4], (), int(header[1] or 0), header[3] or "", at + 1)))
    for at, line in enumerate(lines[: starts[0][0] if starts else len(lines)]):
        if line.strip() and not line.startswith(_NOTE):
            raise UsageError(
                f"Line {at + 1} is outside any message: {line[:60]!r}.",
                fix="Each message must start with a line such as <!-- moot user -->.",
            )
    ends = [at for at, _ in starts[1:]] + [len(lines)]
    for (at, entry), end in zip(starts, ends, strict=False):
        blocks = parse_blocks(lines[at + 1 : end], at + 2)
        entries.append(Entry(entry.role, blocks, entry.number, entry.id, entry.line))
    return tuple(entries)


def parse_blocks(lines: Sequence[str], first: int) -> tuple[Block, ...]:
    """Parse the blocks of one message. `first` is the number of its first line."""
    blocks: list[Block] = []
    pending: list[str] = []
    separated = False

    def close() -> None:
        skip = bool(blocks and isinstance(blocks[-1], Fixed) and pending and not pending[0] and not separated)
        text = pending[1:] if skip else pending[:]
        if text and not text[-1]:
            text.pop()
        if text or separated:
            blocks.append(Text("\n".join(text)))
        pending.clear()

    for at, line in enumerate(lines, first):
        if not line.startswith(_MARKER):
            pending.append(line[1:] if line.startswith("\\") and _MARKER_LIKE.match(line) else line)
        elif line == _TEXT:
            close()
            separated = True
        elif match := _FIXED.fullmatch(line):
            close()
            blocks.append(Fixed(match[1], at))
            separated = False
        elif not line.startswith(_NOTE):
            raise UsageError(f"Line {at} is not a valid marker: {line[:60]!r}.", fix="Correct it, or escape it with a backslash.")
    close()
    return tuple(blocks)


_SHOWN_CHARACTERS = 80
_STEP = "step-start"


def entry_of(message: Message, number: int) -> Entry:
    """Return the message as an entry of the text. Step boundaries without any other content are omitted."""
    blocks: list[Block] = []
    for at, group in _groups(message.parts):
        if _is_text(group[0]):
            blocks.append(Text(str(group[0]["text"])))
        elif not _is_border(group):
            blocks.append(Fixed(f"{number}.{at} {'; '.join(words for part in group if (words := _words(part)))}"))
    return Entry(message.role, tuple(blocks), number, message.id)


def parts_of(entry: Entry, message: Message) -> tuple[Part, ...]:
    """Return the message's parts with their texts replaced by the entry's.
    Raise UsageError if a read-only block was changed, moved or removed.
    """
    labels = [block.label for block in entry_of(message, entry.number).blocks if isinstance(block, Fixed)]
    groups = [group for _, group in _groups(message.parts) if not _is_text(group[0]) and not _is_border(group)]
    kept = dict(zip(labels, groups, strict=True))
    order = list(kept)
    found = [block for block in entry.blocks if isinstance(block, Fixed)]
    for at, block in enumerate(found):
        if at >= len(order) or block.label != order[at]:
            what = "was moved" if block.label in kept else "was changed"
            raise UsageError(f"Line {block.line}: this block of message {entry.number} {what}. Tool calls and files cannot be edited.")
    if len(found) < len(order):
        message_text = f"a block of message {entry.number} is missing ({order[len(found)]}). Tool calls and files cannot be edited."
        raise UsageError(f"Line {entry.line}: {message_text}", fix="Restore it, or remove the whole message.")
    originals = {str(part["text"]): part for part in message.parts if _is_text(part)}
    parts: list[Part] = [message.parts[0]] if message.parts and _is_border([*dict(_groups(message.parts))[0]]) else []
    for block in entry.blocks:
        parts += kept[block.label] if isinstance(block, Fixed) else [originals.get(block.text) or text_part(block.text)]
    return tuple(parts)


def new_parts(entry: Entry) -> tuple[Part, ...]:
    """Return the parts of an added message. Raise UsageError if the message contains a read-only block."""
    for block in entry.blocks:
        if isinstance(block, Fixed):
            raise UsageError(f"Line {block.line}: this block belongs to another message. A new message can only contain text.")
    return tuple(text_part(block.text) for block in entry.blocks if isinstance(block, Text))


def _groups(parts: Sequence[Part]) -> list[tuple[int, list[Part]]]:
    """Group the parts: each text is a group, and so are all parts between two texts. Return each group with the index of its first part."""
    groups: list[tuple[int, list[Part]]] = []
    at = 0
    for is_text, run in groupby(parts, _is_text):
        found = list(run)
        groups += [(at + place, [part]) for place, part in enumerate(found)] if is_text else [(at, found)]
        at += len(found)
    return groups


def _is_text(part: Part) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def _is_border(group: Sequence[Part]) -> bool:
    return all(part.get("type") == _STEP for part in group)


def _words(part: Part) -> str:
    kind = str(part.get("type", ""))
    if is_tool(part):
        words = f"tool {tool_name(part)} {json.dumps(part.get('input'), ensure_ascii=False)} {part.get('state', '')}"
    elif kind == "file":
        words = f"file {part.get('filename') or ''} {part.get('mediaType') or ''}"
    elif kind == _STEP:
        return ""
    else:
        words = f"{kind} {part.get('text') or ''}"
    line = " ".join(clean(words).replace("-->", "-- >").split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 1] + "…"
