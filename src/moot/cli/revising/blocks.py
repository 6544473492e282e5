"""Conversion of a message to editable texts and read-only blocks, and back to parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from moot.cli.revising.document import Block, Entry, Fixed, Text
from moot.errors import UsageError
from moot.guard.terminal import clean
from moot.types.message import Message
from moot.types.part import Part, is_tool, text_part, tool_name

_SHOWN_CHARACTERS = 80
_STEP = "step-start"


def entry_of(message: Message, number: int) -> Entry:
    """Return the message as an entry of the text. Step borders without other content are left out."""
    blocks: list[Block] = []
    for at, group in _groups(message.parts):
        if _is_text(group[0]):
            blocks.append(Text(str(group[0]["text"])))
        elif not _is_border(group):
            blocks.append(Fixed(f"{number}.{at} {'; '.join(words for part in group if (words := _words(part)))}"))
    return Entry(message.role, tuple(blocks), number, message.id)


def parts_of(entry: Entry, message: Message) -> tuple[Part, ...]:
    """Return the message's parts with the entry's texts. Raise UsageError if a read-only block was changed, moved or removed."""
    kept = {block.label: group for block, group in _fixed_of(message, entry.number)}
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
    """Return the parts of an added message. Raise UsageError if it has a read-only block."""
    for block in entry.blocks:
        if isinstance(block, Fixed):
            raise UsageError(f"Line {block.line}: this block belongs to another message. A new message can only have text.")
    return tuple(text_part(block.text) for block in entry.blocks if isinstance(block, Text))


def _fixed_of(message: Message, number: int) -> list[tuple[Fixed, list[Part]]]:
    blocks = [block for block in entry_of(message, number).blocks if isinstance(block, Fixed)]
    groups = [group for _, group in _groups(message.parts) if not _is_text(group[0]) and not _is_border(group)]
    return list(zip(blocks, groups, strict=True))


def _groups(parts: Sequence[Part]) -> list[tuple[int, list[Part]]]:
    """Return each text part alone and the parts between two texts together, each group with the index of its first part."""
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
