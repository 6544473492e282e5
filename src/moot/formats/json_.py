"""The format `json`: a conversation with all that its messages hold as one JSON document, sub-agents' conversations inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats._json_values import Value, elements, members, text_of_file
from moot.formats._portable import HOLDS, VERSION, MessageReader, conversation_value, facts_of, message_value, named
from moot.formats._writing import fidelity_of, linked
from moot.types.canonical import dumps
from moot.types.format import Entry, ExportedConversation, Fidelity, ImportedConversation, ImportedFacts, ImportedRecord, Written

__all__ = ["JsonDocument"]

_BEGIN = re.compile(rb'\s*\{\s*"moot"\s*:\s*"conversation"\s*,.*"conversation"\s*:\s*\{', re.DOTALL)
_DEEPEST = 64


class JsonDocument:
    """`Format`."""

    name = "json"
    version = 1
    suffix = ".json"
    words = "all that the messages hold, as one document for programs"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        return _BEGIN.match(head) is not None

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        text = text_of_file(path)
        if not self.sniff(path, text[: 1 << 16].encode()):
            raise UsageError(f"{str(path)!r} is no conversation in the format {self.name!r}")
        yield from _conversations(text, 0, None, 0)

    def write(self, exported: ExportedConversation) -> Written:
        pieces: list[bytes] = [b'{"moot":"conversation","version":%d,' % VERSION]
        fidelity = _put(pieces, exported, None)
        return Written(b"".join(pieces) + b"\n", fidelity)


def _put(pieces: list[bytes], exported: ExportedConversation, parent: str | None) -> Fidelity:
    """A conversation but for its first brace; a message is a line, so that what compares lines compares messages."""
    pieces += [b'"conversation":', dumps(conversation_value(exported, parent)), b',"messages":[\n']
    pieces.append(b",\n".join(dumps(message_value(message, before)) for message, before in linked(exported)))
    pieces.append(b'\n],"children":[')
    fidelity = fidelity_of(exported, HOLDS)
    for number, child in enumerate(exported.children):
        pieces.append(b",\n{" if number else b"\n{")
        fidelity += _put(pieces, child, exported.conversation.id)
    pieces.append(b"]}")
    return fidelity


def _conversations(text: str, begin: int, parent: str | None, depth: int) -> Iterator[ImportedConversation]:
    """The conversation that begins there, then those inside it."""
    found, problem = _members(text, begin)
    about = found.get("conversation")
    value = about.value if about is not None and isinstance(about.value, dict) else {}
    id = named(value, "id") or f"at-{begin}"
    entries = _entries(text, found, about, problem)
    yield ImportedConversation(id, entries, parent, named(value, "parent_call") or None)
    children = found.get("children")
    if children is not None and isinstance(children.value, list) and depth < _DEEPEST:
        for child in elements(text, children.begin):
            if isinstance(child.value, dict) and isinstance(child.value.get("conversation"), dict):
                yield from _conversations(text, child.begin, id, depth + 1)


def _members(text: str, begin: int) -> tuple[dict[str, Value], str]:
    """What could be read of an object, and why no more could."""
    found: dict[str, Value] = {}
    try:
        for member in members(text, begin):
            found.setdefault(member.name, member)
    except ValueError as error:
        return found, str(error)
    return found, ""


def _entries(text: str, found: dict[str, Value], about: Value | None, problem: str) -> Iterator[Entry]:
    value = about.value if about is not None and isinstance(about.value, dict) else {}
    facts = facts_of(value)
    if about is not None:
        yield ImportedRecord(text[about.begin : about.end].encode(), about.value)
    yield ImportedFacts(facts.fidelity, facts.title, None, facts.directory, facts.agent, facts.model, facts.created_at, facts.updated_at)
    reader = MessageReader()
    messages = found.get("messages")
    if messages is not None and isinstance(messages.value, list):
        for number, one in enumerate(elements(text, messages.begin), 1):
            yield from reader.read(one.value, text[one.begin : one.end].encode(), f"message {number}")
    if problem:
        yield from _cut(text, found, reader, problem)
    yield ImportedFacts(head=facts.head if facts.head in reader.seen else None, metadata=facts.metadata)


def _cut(text: str, found: dict[str, Value], reader: MessageReader, problem: str) -> Iterator[Entry]:
    """What a damaged document still says: its messages as far as they go, and that it is damaged."""
    place = re.compile(r'"messages"\s*:\s*(?=\[)').search(text, found["conversation"].end if "conversation" in found else 0)
    if "messages" not in found and place is not None:
        try:
            for number, one in enumerate(elements(text, place.end()), 1):
                yield from reader.read(one.value, text[one.begin : one.end].encode(), f"message {number}")
        except ValueError:
            pass  # the problem below says so
    yield ImportedRecord(b"", problem=f"the document is damaged: {problem}")
    yield ImportedFacts(Fidelity(lost={"records": 1}))
