"""Count the items in a conversation, and how many of them a format preserves."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from moot.formats.kit.fields import obj, objects
from moot.types.canonical import Json, JsonObject
from moot.types.format import ExportedConversation, Fidelity, FidelityLevel, ImportedMessage
from moot.types.message import Message, Part, is_settled, is_tool
from moot.types.tree import COMPACTION_PART as PART

Holds: TypeAlias = Mapping[str, FidelityLevel]
Weak: TypeAlias = Callable[[Part], bool]
ALL_KEPT: dict[str, FidelityLevel] = dict.fromkeys(
    (
        *("messages", "reasoning", "signatures", "tool calls", "files", "pictures", "other parts"),
        *("times", "models", "usage", "costs", "titles"),
    ),
    "kept",
)
"""Fidelity of a format that preserves everything except branches and sub-agents."""


def fidelity_of(
    exported: ExportedConversation, holds: Holds, *lost: Part, weak: Weak = lambda _: False, inside: Holds | None = None
) -> Fidelity:
    """Count the items of the conversation and its sub-agents as kept, approximated or lost, depending on `holds`.

    `lost` contains the parts of the active branch that were not written. `weak` returns True for a part that is only approximated. For
    sub-agents, `inside` is used instead of `holds`. Branches and sub-agents that are not in `holds` are lost with all their content.
    """
    parents = {message.parent for message in exported.others}
    there, left, dropped, weak_counts = Counter[str](), Counter[str](), _things(lost), Counter[str]()
    left["sub-agents"] = len(exported.children)
    left["branches"] = sum(message.id not in parents for message in exported.others)
    if exported.conversation.title:
        there["titles"] = 1
    for counter, messages in ((there, exported.messages), (there if "branches" in holds else left, exported.others)):
        for message in messages:
            counter.update(things_in(message))
            weak_counts.update(_things(part for part in message.parts if weak(part)) if counter is there else ())
    for thing in ("branches", "sub-agents"):
        if thing in holds:
            there[thing] = left.pop(thing)
    kept, approximated = Counter[str](), Counter[str]()
    for thing, count in (there - dropped).items():
        keeping = holds.get(thing)
        few = count if keeping == "approximated" else min(weak_counts[thing], count)
        (kept if keeping else left)[thing] += count - few if keeping else count
        approximated[thing] += few if keeping else 0
    inner: Holds = (holds if inside is None else inside) if "sub-agents" in holds else {}
    children = [fidelity_of(child, inner, weak=weak) for child in exported.children]
    return sum(children, Fidelity(+kept, +approximated, left + (dropped & there)))


def unanswered(part: Part) -> bool:
    """Return whether a part is a tool call without an output."""
    return is_tool(part) and not is_settled(part)


def _things(parts: Iterable[Part]) -> Counter[str]:
    return Counter(thing for part in parts for thing in _part_things(part))


def file_kind(part: Part) -> str:
    """Return `pictures` for a picture, otherwise `files`."""
    return "pictures" if str(part.get("mediaType", "")).startswith("image/") else "files"


def is_picture(part: Part) -> bool:
    return part.get("type") == "file" and file_kind(part) == "pictures"


def without_output(call: Part) -> Part:
    """Return a tool call with its output removed."""
    rest = {name: value for name, value in call.items() if name not in ("output", "errorText", "resultProviderMetadata")}
    return {**rest, "state": "input-available"}


def steps_of(message: Message | ImportedMessage) -> list[JsonObject]:
    """Return the model calls recorded in the message's metadata."""
    return objects(message.metadata, "steps")


def things_in(message: Message | ImportedMessage) -> Iterator[str]:
    """Yield the name of each item in a message that is counted."""
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
    if kind in ("text", "step-start", PART):
        return ()
    if kind == "reasoning":  # vendor data such as a signature or encrypted content may be attached
        return ("reasoning", "signatures") if obj(part, "providerMetadata") else ("reasoning",)
    if is_tool(part):
        return ("tool calls",)
    return (file_kind(part),) if kind == "file" else ("other parts",)


def assistant_files(exported: ExportedConversation) -> list[Part]:
    """Return the files in assistant messages, for formats that allow files only in prompts."""
    return [part for message in exported.messages if message.role == "assistant" for part in message.parts if part.get("type") == "file"]


def with_parents(exported: ExportedConversation) -> Iterator[tuple[Message, str | None]]:
    """Yield each message with its parent. The active branch comes first, and parents precede their children."""
    before: str | None = None
    known = set[str]()
    for message in exported.messages:
        yield message, before
        before = message.id
        known.add(before)
    for message in exported.others:
        yield message, message.parent if message.parent in known else None
        known.add(message.id)


def with_descendants(exported: ExportedConversation) -> Iterator[tuple[ExportedConversation, str | None]]:
    """Yield the conversation and its descendants, each with the id of its parent. Parents precede their children."""
    stack: list[tuple[ExportedConversation, str | None]] = [(exported, None)]
    while stack:
        one, parent = stack.pop()
        yield one, parent
        stack += [(child, one.conversation.id) for child in reversed(one.children)]


def pretty(value: Json) -> str:
    """Return the value as JSON, indented by two spaces."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def fence_around(text: str) -> str:
    """Return a Markdown fence that is longer than any fence in the text."""
    return "`" * (max((len(found) for found in re.findall(r"`{3,}", text)), default=2) + 1)


def session_id_of(conversation: str, space: uuid.UUID) -> str:
    """Return a stable session id for a conversation: its own id if that is a UUID, otherwise a UUID in the given namespace."""
    try:
        return str(uuid.UUID(conversation))
    except ValueError:
        return str(uuid.uuid5(space, conversation))


class Tally:
    """Fidelity counts of one conversation, keyed by the item names that are listed at `Counts`."""

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        self.approximated: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def fidelity(self) -> Fidelity:
        return Fidelity(dict(+self.kept), dict(+self.approximated), dict(+self.lost))

    def weaken(self, word: str, count: int = 0) -> None:
        """Count `count` of the kept items with the name `word` as approximated instead. If `count` is 0, do this for all of them."""
        count = min(count or self.kept[word], self.kept[word])
        self.kept[word] -= count
        self.approximated[word] += count

    def lose(self, word: str, count: int = 1) -> None:
        """Count items with the name `word` as lost."""
        self.lost[word] += count
