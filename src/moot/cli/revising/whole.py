"""Edit a whole conversation: changed, removed and added messages become a new branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast, get_args

from moot.cli.revising.blocks import entry_of, new_parts, parts_of
from moot.cli.revising.document import Entry, Fixed, parse, render
from moot.errors import UsageError
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, Role
from moot.types.store import Store

_ROLES = get_args(Role)
_KEPT = ("agent", "model", "provider")
"""Metadata that a changed message keeps: its author. Its usage belongs to the original."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The changes in an edited text."""

    parent: str | None
    """The last unchanged message; None if all are changed."""
    messages: tuple[Message, ...]
    """The messages that follow it; empty if there are none."""


def render_conversation(messages: Sequence[Message], numbers: Mapping[str, int]) -> str:
    """Return the shown branch as the text to edit. `numbers` maps message IDs to their numbers."""
    return render([entry_of(message, numbers[message.id]) for message in messages])


def revision(messages: Sequence[Message], numbers: Mapping[str, int], text: str) -> Revision | None:
    """Return the changes in an edited text, or None if there are none. Raise UsageError, with the line, if they are invalid."""
    before = [entry_of(message, numbers[message.id]) for message in messages]
    known = {entry.number: (entry, message) for entry, message in zip(before, messages, strict=True)}
    after = [entry for entry in _identify(known, parse(text)) if _has_content(entry) or entry in before]
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    if same == len(before) == len(after):
        return None
    if not after:
        raise UsageError("The edited conversation is empty.", fix="To delete the conversation, run moot chat delete.")
    made = [_message(entry, *known[entry.number]) if entry.number else _new(entry) for entry in after[same:]]
    return Revision(messages[same - 1].id if same else None, tuple(made))


async def apply(store: Store, conversation: Conversation, revision: Revision) -> str:
    """Apply the changes as the shown branch. Return the ID of its last message."""
    if not revision.messages:
        assert revision.parent is not None  # otherwise the conversation would be empty
        await store.tree.switch(conversation.id, revision.parent, exactly=True)
        return revision.parent
    return (await store.tree.graft(conversation.id, revision.parent, revision.messages))[-1].id


def _identify(known: Mapping[int, tuple[Entry, Message]], entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries with roles and IDs taken from the numbered messages: a search and replace may have changed the markers."""
    seen: dict[int, int] = {}
    found: list[Entry] = []
    for entry in entries:
        if not entry.number:
            found.append(entry)
            continue
        if entry.number not in known:
            raise UsageError(f"Line {entry.line}: message {entry.number} does not exist.", fix="Write a new message without a number.")
        if entry.number in seen:
            raise UsageError(f"Line {entry.line}: message {entry.number} already occurs in line {seen[entry.number]}.")
        before = known[entry.number][0]
        if entry.role in _ROLES and entry.role != before.role:
            raise UsageError(
                f"Line {entry.line}: the role of message {entry.number} is {before.role} and cannot be changed.",
                fix="Write a new message without a number.",
            )
        seen[entry.number] = entry.line
        found.append(replace(entry, role=before.role, id=before.id))
    return found


def _has_content(entry: Entry) -> bool:
    return any(isinstance(block, Fixed) or block.text.strip() for block in entry.blocks)


def _new(entry: Entry) -> Message:
    return Message(new_id(), cast("Role", entry.role), new_parts(entry))  # a marker without a number has a valid role


def _message(entry: Entry, before: Entry, message: Message) -> Message:
    parts = parts_of(entry, message)
    if entry == before:
        return replace(message, id=new_id(), client_id=None)
    metadata = {key: message.metadata[key] for key in _KEPT if key in message.metadata}
    return replace(message, id=new_id(), client_id=None, parts=parts, metadata=metadata)
