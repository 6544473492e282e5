"""The format `json`: a conversation with all contents of its messages as one JSON document, including sub-agents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats._portable import HOLDS, VERSION, ConversationReader, conversation_value, lost, message_value, named
from moot.formats._source.documents import LARGEST, Document
from moot.formats._source.pieces import whole
from moot.formats._writing import fidelity_of, linked
from moot.types.canonical import JsonObject, dumps
from moot.types.format import Entry, ExportedConversation, ImportedConversation, ImportedRecord, Written

__all__ = ["JsonDocument"]

_BEGIN = re.compile(rb'\s*\{\s*"moot"\s*:\s*"conversation"\s*,.*"conversation"\s*:\s*\{', re.DOTALL)
_DEEPEST = 64


class JsonDocument:
    """`Format`."""

    name = "json"
    version = 1
    suffix = ".json"
    words = "everything in the messages as one JSON document"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        return _BEGIN.match(head) is not None

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        data = whole(path, LARGEST)
        if not self.sniff(path, data[: 1 << 16]):
            raise UsageError(f"{str(path)!r} is not a conversation in the format {self.name!r}.")
        yield from _conversations(data, None, 0)

    def write(self, exported: ExportedConversation) -> Written:
        pieces: list[bytes] = [b'{"moot":"conversation","version":%d,' % VERSION]
        _put(pieces, exported, None)
        return Written(b"".join(pieces) + b"\n", fidelity_of(exported, HOLDS))


def _put(pieces: list[bytes], exported: ExportedConversation, parent: str | None) -> None:
    """Append a conversation without its opening brace. Each message is one line, so that diffs show messages."""
    pieces += [b'"conversation":', dumps(conversation_value(exported, parent)), b',"messages":[\n']
    pieces.append(b",\n".join(dumps(message_value(message, before)) for message, before in linked(exported)))
    pieces.append(b'\n],"children":[')
    for number, child in enumerate(exported.children):
        pieces.append(b",\n{" if number else b"\n{")
        _put(pieces, child, exported.conversation.id)
    pieces.append(b"]}")


def _conversations(document: bytes, parent: str | None, depth: int) -> Iterator[ImportedConversation]:
    """Yield the conversation of an object, then its children."""
    found = Document(document)
    about = found.value("conversation")
    value = about if isinstance(about, dict) else {}
    id = named(value, "id") or hashlib.sha256(document).hexdigest()
    yield ImportedConversation(id, _entries(found, value), parent, named(value, "parent_call") or None)
    for child in found.elements("children") if depth < _DEEPEST else ():
        if child.raw.startswith(b"{"):
            yield from _conversations(child.raw, id, depth + 1)


def _entries(found: Document, value: JsonObject) -> Iterator[Entry]:
    reader = ConversationReader(value)
    if value:
        yield ImportedRecord(found.raw("conversation"), value)
    yield reader.begin()
    for one in found.elements("messages"):
        if one.problem:
            yield from lost(one.raw, None, f"message {one.number}: {one.problem}")
        else:
            yield from reader.read(one.value, one.raw, f"message {one.number}")
    if not found.whole or not value:
        yield from lost(b"", None, "the document is damaged or truncated")
    yield reader.end()
