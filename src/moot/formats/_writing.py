"""What a conversation holds, counted thing by thing, and what a format makes of it: the report of every format that has a table `holds`."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.format import ExportedConversation, Fidelity, ImportedMessage, Keeping
from moot.types.message import Message
from moot.types.part import Part, is_settled, is_tool

__all__ = [
    "families",
    "fidelity_of",
    "file_word",
    "files_of_agents",
    "linked",
    "pretty",
    "session_of",
    "steps_of",
    "things_in",
    "unanswered",
]

Holds: TypeAlias = Mapping[str, Keeping]
Weak: TypeAlias = Callable[[Part], bool]

_BORDERS = ("text", "step-start")


def fidelity_of(
    exported: ExportedConversation, holds: Holds, *lost: Part, weak: Weak = lambda _: False, inside: Holds | None = None
) -> Fidelity:
    """Everything in the conversation and in those of its sub-agents, as kept, approximated or lost by the table.

    `lost` are parts of the shown branch that did not go along all the same, `weak` says which are only near to what they were, and `inside`
    is the table for sub-agents' conversations. What stands in one of those or in a branch is lost with it where the table names none.
    """
    there, left, gone, near = Counter[str](), Counter[str](), _things(lost), Counter[str]()
    left["sub-agents"] = len(exported.children)
    left["branches"] = _ends(exported)
    if exported.conversation.title:
        there["titles"] = 1
    for held, messages in ((there, exported.messages), (there if "branches" in holds else left, exported.others)):
        for message in messages:
            held.update(things_in(message))
            near.update(_things(part for part in message.parts if weak(part)) if held is there else ())
    for thing in ("branches", "sub-agents"):
        if thing in holds:
            there[thing] = left.pop(thing)
    kept, approximated = Counter[str](), Counter[str]()
    for thing, count in (there - gone).items():
        keeping = holds.get(thing)
        few = count if keeping == "approximated" else min(near[thing], count)
        (kept if keeping else left)[thing] += count - few if keeping else count
        approximated[thing] += few if keeping else 0
    inner: Holds = (holds if inside is None else inside) if "sub-agents" in holds else {}
    below = [fidelity_of(child, inner, weak=weak) for child in exported.children]
    return sum(below, Fidelity(+kept, +approximated, left + (gone & there)))


def unanswered(part: Part) -> bool:
    """Whether it is a call without an output, where a program can't go on with such a one."""
    return is_tool(part) and not is_settled(part)


def _things(parts: Iterable[Part]) -> Counter[str]:
    return Counter(thing for part in parts for thing in _part_things(part))


def file_word(part: Part) -> str:
    """`pictures` or `files`."""
    return "pictures" if str(part.get("mediaType", "")).startswith("image/") else "files"


def steps_of(message: Message | ImportedMessage) -> list[JsonObject]:
    """The model calls that its metadata tells of."""
    steps = message.metadata.get("steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _ends(exported: ExportedConversation) -> int:
    """Branches that are not shown."""
    parents = {message.parent for message in exported.others}
    return sum(message.id not in parents for message in exported.others)


def things_in(message: Message | ImportedMessage) -> Iterator[str]:
    """What a message holds, thing by thing."""
    yield "messages"
    if message.created_at:
        yield "times"
    if message.metadata.get("model"):
        yield "models"
    for step in steps_of(message):
        if step.get("usage"):
            yield "usage"
        if step.get("cost") is not None:
            yield "costs"
    for part in message.parts:
        yield from _part_things(part)


def _part_things(part: Part) -> Iterable[str]:
    kind = str(part.get("type", ""))
    if kind in _BORDERS:
        return ()
    if kind == "reasoning":
        return ("reasoning", "signatures") if _sealed(part.get("providerMetadata")) else ("reasoning",)
    if is_tool(part):
        return ("tool calls",)
    return (file_word(part),) if kind == "file" else ("other parts",)


def _sealed(metadata: Json) -> bool:
    """Whether a vendor's own words hang on it: a signature, an id, something encrypted."""
    return isinstance(metadata, dict) and bool(metadata)


def files_of_agents(exported: ExportedConversation) -> list[Part]:
    """The files in answers, for formats where only what people say holds any."""
    return [part for message in exported.messages if message.role == "assistant" for part in message.parts if part.get("type") == "file"]


def linked(exported: ExportedConversation) -> Iterator[tuple[Message, str | None]]:
    """Each message with its parent among them, the shown branch first; a parent stands before its children."""
    before: str | None = None
    known = set[str]()
    for message in exported.messages:
        yield message, before
        before = message.id
        known.add(before)
    for message in exported.others:
        yield message, message.parent if message.parent in known else None
        known.add(message.id)


def families(exported: ExportedConversation) -> Iterator[tuple[ExportedConversation, str | None]]:
    """The conversation and all below it, each behind the one that it belongs to, with that one's id."""
    stack: list[tuple[ExportedConversation, str | None]] = [(exported, None)]
    while stack:
        one, parent = stack.pop()
        yield one, parent
        stack += [(child, one.conversation.id) for child in reversed(one.children)]


def pretty(value: Json) -> str:
    """A value as a person reads it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def session_of(conversation: str, space: uuid.UUID) -> str:
    """The id of the agent's session that a conversation becomes, always the same: its own if that is a UUID, else one in that space."""
    try:
        return str(uuid.UUID(conversation))
    except ValueError:
        return str(uuid.uuid5(space, conversation))
