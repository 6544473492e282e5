"""A whole conversation in the editor: whatever was changed, removed or added becomes a new branch."""

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
"""Of a changed message's metadata: who said it. What it took belongs to the one that was made."""


@dataclass(frozen=True, slots=True)
class Revision:
    """What is to become of the edited text."""

    parent: str | None
    """The last message that stays as it is; None = all are others."""
    messages: tuple[Message, ...]
    """What stands behind it from now on; empty = nothing."""


def whole(messages: Sequence[Message], numbers: Mapping[str, int]) -> str:
    """The shown branch as the text to edit; `numbers` are the messages' own, by id."""
    return render([entry_of(message, numbers[message.id]) for message in messages])


def revision(messages: Sequence[Message], numbers: Mapping[str, int], text: str) -> Revision | None:
    """What the edited text asks for; None when it says what was there. Raises UsageError naming the line that can't be."""
    before = [entry_of(message, numbers[message.id]) for message in messages]
    known = {entry.number: (entry, message) for entry, message in zip(before, messages, strict=True)}
    after = [entry for entry in _recognized(known, parse(text)) if _says_something(entry) or entry in before]
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    if same == len(before) == len(after):
        return None
    if not after:
        raise UsageError("nothing is left of the conversation", fix="moot chat delete takes a conversation away.")
    made = [_message(entry, *known[entry.number]) if entry.number else _new(entry) for entry in after[same:]]
    return Revision(messages[same - 1].id if same else None, tuple(made))


async def apply(store: Store, conversation: Conversation, revision: Revision) -> str:
    """Makes it the shown branch; the id of the message that the branch ends with."""
    if not revision.messages:
        assert revision.parent is not None  # else nothing would be left
        await store.tree.switch(conversation.id, revision.parent, exactly=True)
        return revision.parent
    return (await store.tree.graft(conversation.id, revision.parent, revision.messages))[-1].id


def _recognized(known: Mapping[int, tuple[Entry, Message]], entries: Sequence[Entry]) -> list[Entry]:
    """The entries with the names of the messages that their numbers stand for: an editor's replacement may have met them too."""
    seen: dict[int, int] = {}
    found: list[Entry] = []
    for entry in entries:
        if not entry.number:
            found.append(entry)
            continue
        if entry.number not in known:
            raise UsageError(f"line {entry.line}: there is no message {entry.number} here", fix="A new message has no number.")
        if entry.number in seen:
            raise UsageError(f"line {entry.line}: message {entry.number} stands already in line {seen[entry.number]}")
        before = known[entry.number][0]
        if entry.role in _ROLES and entry.role != before.role:
            raise UsageError(f"line {entry.line}: message {entry.number} is the {before.role}'s", fix="A new message has no number.")
        seen[entry.number] = entry.line
        found.append(replace(entry, role=before.role, id=before.id))
    return found


def _says_something(entry: Entry) -> bool:
    return any(isinstance(block, Fixed) or block.text.strip() for block in entry.blocks)


def _new(entry: Entry) -> Message:
    return Message(new_id(), cast("Role", entry.role), new_parts(entry))  # without a number only a role fits the mark


def _message(entry: Entry, before: Entry, message: Message) -> Message:
    parts = parts_of(entry, message)
    if entry == before:
        return replace(message, id=new_id(), client_id=None)
    metadata = {key: message.metadata[key] for key in _KEPT if key in message.metadata}
    return replace(message, id=new_id(), client_id=None, parts=parts, metadata=metadata)
