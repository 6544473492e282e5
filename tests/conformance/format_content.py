"""A check that a format keeps what its table `holds` declares, and conversations to check it with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from conformance.formats import read_whole, source
from moot.plugins import FORMATS
from moot.types.canonical import Json
from moot.types.conversation import Conversation
from moot.types.format import DeclaresFidelity, ExportedConversation, Format, WholeConversation, WriteOnly
from moot.types.message import Message, Part, is_tool, text_of, text_part, tool_name

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Told(NamedTuple):
    """A message of either role."""

    id: str
    role: str
    parts: Sequence[Part]
    parent: str | None
    created_at: int
    metadata: dict[str, Json]


def check_holds(format: Format, folder: Path, conversation: ExportedConversation) -> None:
    """Check that reading a written file gives back what the table declares, and that the report agrees."""
    if not isinstance(format, DeclaresFidelity) or isinstance(format, WriteOnly) or not format.holds:
        return
    made = format.write(conversation)
    path = source(format, folder, made.data)
    read = read_whole(format, path)
    for thing, keeping in format.holds.items():
        other = made.fidelity.approximated if keeping == "kept" else made.fidelity.kept
        assert thing not in other, f"{thing} are {keeping} and told otherwise"
        if keeping == "kept":
            before, after = _beside(thing, conversation, read, format.holds)
            assert after == before, f"{thing} are to be kept, and are not: {before!r} became {after!r}"


def _beside(thing: str, exported: ExportedConversation, read: list[WholeConversation], holds: Any) -> tuple[object, object]:
    """Return content before and after; branches are compared without order, which formats choose freely."""
    before, after = wanted(thing, exported, holds), found(thing, read)
    if "branches" in holds and isinstance(before, list) and isinstance(after, list):
        return sorted(before, key=repr), sorted(after, key=repr)
    return before, after


def wanted(thing: str, exported: ExportedConversation, holds: Any) -> object:
    if thing == "sub-agents":
        return [(exported.conversation.id, child.conversation.parent_tool_call) for child in exported.children]
    if thing == "titles":
        return exported.conversation.title
    before = [None, *(message.id for message in exported.messages)]
    shown = [
        Told(message.id, message.role, message.parts, parent, message.created_at, message.metadata)
        for message, parent in zip(exported.messages, before, strict=False)
    ]
    others = [Told(one.id, one.role, one.parts, one.parent, one.created_at, one.metadata) for one in exported.others]
    return told(thing, [*shown, *others] if "branches" in holds else shown)


def found(thing: str, read: list[WholeConversation]) -> object:
    first = read[0]
    if thing == "sub-agents":
        return [(one.conversation.parent, one.conversation.parent_call) for one in read[1:]]
    if thing == "titles":
        return first.facts.title
    messages = [Told(one.source_id, one.role, one.parts, one.parent, one.created_at, one.metadata) for one in first.messages]
    return told(thing, messages)


def told(thing: str, messages: Sequence[Told]) -> object:
    match thing:
        case "messages":
            return [(one.role, text_of(tuple(one.parts))) for one in messages]
        case "times":
            return [one.created_at for one in messages]
        case "models":
            return [one.metadata.get("model") for one in messages if one.role == "assistant"]
        case "usage" | "costs":
            return [[step.get(thing.removesuffix("s")) for step in _steps(one)] for one in messages]
        case "branches":
            return sorted(_paths(messages))
        case _:
            return [piece for one in messages for part in one.parts if (piece := _piece(thing, part)) is not None]


def _piece(thing: str, part: Part) -> object:
    kind = str(part.get("type"))
    match thing:
        case "reasoning" if kind == "reasoning":
            return part["text"]
        case "signatures" if kind == "reasoning" and part.get("providerMetadata"):
            return (part["text"], part["providerMetadata"])
        case "tool calls" if is_tool(part):
            return (tool_name(part), part.get("input"), part.get("output"), part.get("errorText"))
        case "pictures" if kind == "file" and str(part["mediaType"]).startswith("image/"):
            return (part["mediaType"], part["url"])
        case "files" if kind == "file" and not str(part["mediaType"]).startswith("image/"):
            return (part["mediaType"], part["url"], part.get("filename"))
        case "other parts" if kind not in ("reasoning", "file", "text", "step-start") and not is_tool(part):
            return part
        case _:
            return None


def _steps(one: Told) -> list[Any]:
    steps = one.metadata.get("steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _paths(messages: Sequence[Told]) -> list[tuple[str, ...]]:
    """Return each message by the texts on the path to it."""
    paths: dict[str | None, tuple[str, ...]] = {None: ()}
    for one in messages:
        paths[one.id] = (*paths[one.parent], text_of(tuple(one.parts)))
    return [path for id, path in paths.items() if id is not None]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
LINES = st.lists(WORDS, min_size=1, max_size=4).map("\n".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 50), 1 << 50) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def conversations(draw: st.DrawFn) -> ExportedConversation:
    """A user and an agent taking turns, the agent with everything that a run may leave."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append(Message(f"u{turn}", "user", tuple(draw(_asked())), created_at=1_700_000_000_000 + turn * 61_001))
        messages.append(draw(_answer(turn)))
    others: tuple[Message, ...] = ()
    if draw(st.booleans()):
        others = (Message("other", "user", (text_part(draw(LINES)),), parent=None, created_at=1_700_000_900_000),)
    children: tuple[ExportedConversation, ...] = ()
    if draw(st.booleans()):
        inner = (Message("inner", "user", (text_part(draw(LINES)),), created_at=1_700_000_100_000),)
        children = (ExportedConversation(Conversation("c2", title="Inside", parent="c1", parent_tool_call="call-0"), inner),)
    return ExportedConversation(Conversation("c1", title=draw(WORDS), model="big@mine"), tuple(messages), others, children)


@st.composite
def _asked(draw: st.DrawFn) -> list[Part]:
    parts = [text_part(draw(LINES))]
    if draw(st.booleans()):
        parts.append({"type": "file", "mediaType": "image/png", "url": PIXEL, "filename": "dot.png"})
    if draw(st.booleans()):
        parts.append({"type": "file", "mediaType": "application/pdf", "url": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"})
    return parts


@st.composite
def _answer(draw: st.DrawFn, turn: int) -> Message:
    parts: list[Part] = []
    steps: list[Json] = []
    for step in range(draw(st.integers(1, 2))):
        parts.append({"type": "step-start"})
        if draw(st.booleans()):
            sealed: Part = {"providerMetadata": {"mine": {"signature": draw(WORDS)}}} if draw(st.booleans()) else {}
            parts.append({"type": "reasoning", "text": draw(LINES), "state": "done", **sealed})
        parts.append(text_part(draw(LINES)))
        if draw(st.booleans()):
            parts.append(draw(_call(f"call-{turn}{step}")))
        steps.append({"step": step + 1, "model": "big@mine", "usage": {"input": 10 + step, "output": 5}, "cost": 1000 + step, "ms": 20})
    metadata: dict[str, Json] = {"agent": "default", "model": "big", "provider": "mine", "finish_reason": "stop", "steps": steps}
    return Message(f"a{turn}", "assistant", tuple(parts), metadata, created_at=1_700_000_010_000 + turn * 61_001)


@st.composite
def _call(draw: st.DrawFn, id: str) -> Part:
    call: Part = {
        "type": "dynamic-tool",
        "toolName": draw(st.sampled_from(["shell", "read_file", "mcp__files__list"])),
        "toolCallId": id,
        "input": draw(st.dictionaries(WORDS, VALUES, max_size=3)),
    }
    if draw(st.booleans()):
        return {**call, "state": "output-available", "output": draw(LINES)}
    return {**call, "state": "output-error", "errorText": draw(LINES)}


def check_chain(one: Format, other: Format, folder: Path, conversation: ExportedConversation) -> None:
    """Check that content which both formats support survives a conversion there and back."""
    assert isinstance(one, DeclaresFidelity) and isinstance(other, DeclaresFidelity)
    carried = conversation
    for format in (one, other, one):
        path = source(format, folder, format.write(carried).data)
        carried = again(read_whole(format, path))
    read = read_whole(one, path)
    both = {thing for thing, keeping in one.holds.items() if keeping == "kept" == other.holds.get(thing)}
    for thing in both:
        before, after = _beside(thing, conversation, read, both)
        assert after == before, f"{thing} are kept by {one.name} and {other.name}, and not on the way between: {before!r} became {after!r}"


def again(read: list[WholeConversation]) -> ExportedConversation:
    """Return an imported conversation as it would be written again."""
    return _exported(read, read[0])


def _exported(read: list[WholeConversation], one: WholeConversation) -> ExportedConversation:
    messages = {
        entry.source_id: Message(entry.source_id, entry.role, entry.parts, entry.metadata, parent=entry.parent, created_at=entry.created_at)
        for entry in one.messages
    }
    shown: list[Message] = []
    at = one.facts.head or next(reversed(messages), None)
    while at is not None:
        shown.insert(0, messages[at])
        at = messages[at].parent
    known = {message.id for message in shown}
    facts, id = one.facts, one.conversation.source_id
    conversation = Conversation(id, title=facts.title, model=facts.model, parent_tool_call=one.conversation.parent_call)
    children = tuple(_exported(read, child) for child in read if child.conversation.parent == id)
    return ExportedConversation(conversation, tuple(shown), tuple(one for id, one in messages.items() if id not in known), children)


def chained(names: Sequence[str]) -> list[Format]:
    """The formats that are read and written by a content table."""
    formats: list[Format] = [FORMATS.make(name) for name in names]
    return [one for one in formats if isinstance(one, DeclaresFidelity) and one.holds and not isinstance(one, WriteOnly)]
