"""Check that a format's report is honest: content that comes back changed is not counted as kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from conformance.format_content import LINES, PIXEL, VALUES, WORDS, again, conversations
from conformance.formats import THINGS, read_whole, source
from moot.types.canonical import Json
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, Format
from moot.types.message import Message, Part, is_tool, text_of, text_part, tool_name

Things = dict[str, Counter[str]]
"""Kind of content → its instances, each as a complete text."""


def check_counted(format: Format, folder: Path, conversation: ExportedConversation) -> None:
    """Each instance is counted once, and as kept only if reading the written file gives it back unchanged."""
    made = format.write(conversation)
    before = things(conversation)
    after = things(again(read_whole(format, source(format, folder, made.data))))
    report = made.fidelity
    for thing in sorted(THINGS - {"records"}):
        kept, approximated, lost = (counts.get(thing, 0) for counts in (report.kept, report.approximated, report.lost))
        there = before[thing].total()
        assert kept + approximated + lost == there, (
            f"of {there} {thing} {kept} are kept, {approximated} approximated, {lost} lost: {report}"
        )
        same = before[thing] & after[thing]
        gone = before[thing] - after[thing]
        assert kept <= same.total(), f"{kept} {thing} are said to be kept, and {same.total()} are: {list(gone)} became {list(after[thing])}"


def things(exported: ExportedConversation) -> Things:
    found: Things = {thing: Counter() for thing in THINGS}
    for one in _all(exported):
        if one.conversation.title:
            found["titles"][one.conversation.title] += 1
        for child in one.children:
            found["sub-agents"][f"{child.conversation.parent_tool_call} {[text_of(message.parts) for message in child.messages]}"] += 1
        found["branches"] += Counter(_ends(one))
        for message in (*one.messages, *one.others):
            for thing, value in _in_message(message):
                found[thing][value] += 1
    return found


def _all(exported: ExportedConversation) -> Iterator[ExportedConversation]:
    yield exported
    for child in exported.children:
        yield from _all(child)


def _ends(one: ExportedConversation) -> Iterator[str]:
    """Return each hidden branch by the texts on the path to its end."""
    shown: tuple[str, ...] = ()
    ways: dict[str | None, tuple[str, ...]] = {None: ()}
    for message in one.messages:
        shown = ways[message.id] = (*shown, text_of(message.parts))
    for message in one.others:
        ways[message.id] = (*ways.get(message.parent, ()), text_of(message.parts))
    parents = {message.parent for message in one.others}
    yield from (repr(ways[message.id]) for message in one.others if message.id not in parents)


def _in_message(message: Message) -> Iterator[tuple[str, str]]:
    yield "messages", f"{message.role} {text_of(message.parts)!r}"
    if message.created_at:
        yield "times", str(message.created_at)
    if model := message.metadata.get("model"):
        yield "models", str(model)
    steps = message.metadata.get("steps")
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and step.get("usage"):
            yield "usage", repr(sorted(dict(step["usage"]).items()))  # type: ignore[arg-type]
        if isinstance(step, dict) and step.get("cost") is not None:
            yield "costs", str(step["cost"])
    for part in message.parts:
        yield from _in_part(part)


def _in_part(part: Part) -> Iterator[tuple[str, str]]:
    kind = part["type"]
    if kind == "reasoning":
        yield "reasoning", str(part["text"])
        if part.get("providerMetadata"):
            yield "signatures", repr((part["text"], part["providerMetadata"]))
    elif is_tool(part):
        told = [part.get(name) for name in ("state", "input", "output", "errorText", "approval")]
        yield "tool calls", repr((tool_name(part), *told))
    elif kind == "file":
        is_picture = str(part["mediaType"]).startswith("image/")
        yield ("pictures", repr((part["mediaType"], part["url"]))) if is_picture else ("files", repr((part["mediaType"], part["url"])))
    elif kind not in ("text", "step-start"):
        yield "other parts", repr({name: value for name, value in part.items() if name != "id"})


@st.composite
def everything(draw: st.DrawFn) -> ExportedConversation:
    """A conversation with everything that a conversation of moot can contain."""
    plain = draw(conversations())
    messages = [
        message if message.role == "user" else replace(message, parts=(*message.parts, *draw(_more()))) for message in plain.messages
    ]
    if draw(st.booleans()):
        messages.insert(0, Message("instructions", "system", (text_part(draw(LINES)),)))
    others = [*plain.others]
    if draw(st.booleans()):
        parts: tuple[Part, ...] = (text_part(draw(LINES)), *draw(_more()))
        others += [
            Message("fork", "user", (text_part(draw(LINES)),), parent=messages[-1].id, created_at=1_700_000_950_000),
            Message("forked", "assistant", parts, {"model": "small"}, parent="fork", created_at=1_700_000_960_000),
        ]
    return replace(plain, messages=tuple(messages), others=tuple(others), children=tuple(draw(_child(one)) for one in plain.children))


@st.composite
def _child(draw: st.DrawFn, child: ExportedConversation) -> ExportedConversation:
    """A conversation with an answer and possibly a sub-agent."""
    answer = Message("inner-answer", "assistant", (text_part(draw(LINES)), *draw(_more())), created_at=1_700_000_110_000)
    deeper: tuple[ExportedConversation, ...] = ()
    if draw(st.booleans()):
        message = Message("deepest", "user", (text_part(draw(LINES)),))
        deeper = (ExportedConversation(Conversation("c3", parent="c2", parent_tool_call="call-deep"), (message,)),)
    return replace(child, messages=(*child.messages, answer), children=deeper)


@st.composite
def _more(draw: st.DrawFn) -> Sequence[Part]:
    """Rare contents of an answer."""
    call: Part = {"type": "dynamic-tool", "toolName": "shell", "input": draw(st.dictionaries(WORDS, VALUES, max_size=2))}
    denied: Part = {"state": "output-denied", "approval": {"id": "a", "approved": False, "reason": draw(WORDS)}}
    values: Json = draw(VALUES)
    kinds: list[Part] = [
        {**call, "toolCallId": "open", "state": "input-available"},
        {**call, "toolCallId": "denied", **denied},
        {**call, "toolCallId": "json", "state": "output-available", "output": values},
        {"type": "reasoning", "text": draw(LINES), "state": "done", "providerMetadata": {"anthropic": {"signature": draw(WORDS)}}},
        {
            "type": "reasoning",
            "text": "",
            "state": "done",
            "providerMetadata": {"openai": {"itemId": "r", "encryptedContent": draw(WORDS)}},
        },
        {"type": "file", "mediaType": "image/png", "url": PIXEL},
        {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk=", "filename": "a.txt"},
        {"type": "file", "mediaType": "image/png", "url": "https://example.org/a.png"},
        {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
        {"type": "data-note", "data": {"text": draw(WORDS)}},
        {"type": "data-plan", "data": {"entries": [{"content": draw(WORDS), "status": "pending"}]}},
        {"type": "steering-message", "id": "st", "parts": [text_part(draw(WORDS))]},
    ]
    return draw(st.lists(st.sampled_from(kinds), max_size=4, unique_by=repr))
