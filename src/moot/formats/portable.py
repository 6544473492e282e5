"""The formats `json` and `jsonl`: all content of a conversation's messages as a JSON document or JSON Lines. See docs/export.md."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

from moot.errors import UsageError
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of, things_in, with_descendants, with_parents
from moot.formats.kit.fields import obj, text
from moot.formats.kit.json import MAX_DOCUMENT, PartialDocument, read_document
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.format import (
    Entry,
    ExportedConversation,
    ExportFile,
    Fidelity,
    FidelityLevel,
    ImportedConversation,
    ImportedFacts,
    ImportedMessage,
    ImportedRecord,
)
from moot.types.message import Message, Part

VERSION = 1

HOLDS: dict[str, FidelityLevel] = {**ALL_KEPT, "branches": "kept", "sub-agents": "kept"}

_FACTS = ("id", "title", "agent", "agent_type", "model", "directory", "forked_from", "created_at", "updated_at")


def conversation_value(exported: ExportedConversation, parent: str | None) -> JsonObject:
    conversation = exported.conversation
    value: JsonObject = {name: fact for name in _FACTS if (fact := getattr(conversation, name)) not in ("", 0, None)}
    if exported.messages:
        value["head"] = exported.messages[-1].id
    if parent is not None:
        value |= {"parent": parent, "parent_call": conversation.parent_tool_call}
    if usage := conversation.usage.to_json():
        value["usage"] = usage
    return value if conversation.cost is None else {**value, "cost": conversation.cost}


def message_value(message: Message, parent: str | None) -> JsonObject:
    value: JsonObject = {"id": message.id, "role": message.role, "parent": parent, "status": message.status}
    if message.created_at:
        value["created_at"] = message.created_at
    return {**value, "metadata": message.metadata, "parts": list[Json](message.parts)}


class ConversationReader:
    """A reader for the JSON values of one conversation. An invalid message does not affect the other messages."""

    def __init__(self, value: JsonObject) -> None:
        self._value = value
        self._seen = set[str]()

    def begin(self) -> ImportedFacts:
        value = self._value
        title = text(value, "title")
        return ImportedFacts(
            Fidelity({"titles": 1} if title else {}),
            title,
            directory=text(value, "directory"),
            agent=text(value, "agent"),
            model=text(value, "model"),
            created_at=_time(value, "created_at"),
            updated_at=_time(value, "updated_at"),
        )

    def end(self) -> ImportedFacts:
        head = text(self._value, "head")
        metadata: JsonObject = {name: self._value[name] for name in ("usage", "cost", "forked_from") if name in self._value}
        return ImportedFacts(head=head if head in self._seen else None, metadata=metadata)

    def read(self, value: Json, raw: bytes, where: str) -> Iterator[ImportedMessage | ImportedRecord | ImportedFacts]:
        message = self._message(value, raw)
        if isinstance(message, str):
            yield from unreadable(raw, value, f"{where}: {message}")
            return
        self._seen.add(message.source_id)
        yield message
        yield ImportedFacts(Fidelity(Counter(things_in(message))))

    def _message(self, value: Json, raw: bytes) -> ImportedMessage | str:
        """Return the message, or a description of the problem if it is invalid."""
        if not isinstance(value, dict):
            return "not an object"
        id, role, parent, parts, metadata = (value.get(name) for name in ("id", "role", "parent", "parts", "metadata"))
        if not isinstance(id, str) or not id or id in self._seen:
            return f"invalid or duplicate id {id!r}"
        if role not in ("system", "user", "assistant"):
            return f"unknown role {role!r}; expected system, user or assistant"
        if not isinstance(parts, list) or not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
            return "`parts` is not a list of objects with a `type`"
        return ImportedMessage(
            role,
            tuple(cast("list[Part]", parts)),
            id,
            raw,
            parent if isinstance(parent, str) and parent in self._seen else None,
            _time(value, "created_at"),
            metadata if isinstance(metadata, dict) else {},
        )


def unreadable(raw: bytes, value: Json, problem: str) -> Iterator[ImportedRecord | ImportedFacts]:
    """Yield an unreadable record, and count it as lost."""
    yield ImportedRecord(raw, value, problem)
    yield ImportedFacts(Fidelity(lost={"records": 1}))


def _time(value: JsonObject, name: str) -> int:
    found = value.get(name)
    return found if type(found) is int and 0 <= found < 1 << 53 else 0


_BEGIN = re.compile(rb'\s*\{\s*"moot"\s*:\s*"conversation"\s*,.*"conversation"\s*:\s*\{', re.DOTALL)
_DEEPEST = 64


class JsonDocument:
    name = "json"
    version = 2
    suffix = ".json"
    words = "everything in the messages as one JSON document"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        return _BEGIN.match(head) is not None

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        data = read_document(path, MAX_DOCUMENT)
        if not self.sniff(path, data[: 1 << 16]):
            raise UsageError(f"{str(path)!r} is not a conversation in the format {self.name!r}.")
        yield from conversations_in(data, None, 0)

    def write(self, exported: ExportedConversation) -> ExportFile:
        pieces: list[bytes] = [b'{"moot":"conversation","version":%d,' % VERSION]
        _append(pieces, exported, None)
        return ExportFile(b"".join(pieces) + b"\n", fidelity_of(exported, HOLDS))


def _append(pieces: list[bytes], exported: ExportedConversation, parent: str | None) -> None:
    """Append a conversation's JSON, except the opening brace. Each message is on its own line, so that diffs show whole messages."""
    pieces += [b'"conversation":', dumps(conversation_value(exported, parent)), b',"messages":[\n']
    pieces.append(b",\n".join(dumps(message_value(message, before)) for message, before in with_parents(exported)))
    pieces.append(b'\n],"children":[')
    for number, child in enumerate(exported.children):
        pieces.append(b",\n{" if number else b"\n{")
        _append(pieces, child, exported.conversation.id)
    pieces.append(b"]}")


def conversations_in(document: bytes, parent: str | None, depth: int) -> Iterator[ImportedConversation]:
    """Yield the conversation in an object, followed by its children."""
    found = PartialDocument(document)
    value = obj(found.value("conversation"))
    id = text(value, "id") or hashlib.sha256(document).hexdigest()
    yield ImportedConversation(id, _document_entries(found, value), parent, text(value, "parent_call") or None)
    for child in found.elements("children") if depth < _DEEPEST else ():
        if child.raw.startswith(b"{"):
            yield from conversations_in(child.raw, id, depth + 1)


def _document_entries(found: PartialDocument, value: JsonObject) -> Iterator[Entry]:
    reader = ConversationReader(value)
    if value:
        yield ImportedRecord(found.raw("conversation"), value)
    yield reader.begin()
    for one in found.elements("messages"):
        if one.problem:
            yield from unreadable(one.raw, None, f"message {one.number}: {one.problem}")
        else:
            yield from reader.read(one.value, one.raw, f"message {one.number}")
    if found.whole and "messages" not in found:
        yield from unreadable(b"", None, "'messages' is missing")
    if not found.whole or not value:
        yield from unreadable(b"", None, "the document is damaged or truncated")
    yield reader.end()


HEADER_MARK = "lines"
"""Value of the key `moot` that identifies a header line."""


class JsonLines:
    name = "jsonl"
    version = 2
    suffix = ".jsonl"
    words = "one line per message, for programs that stream"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        with suppress(ValueError):
            return _header(loads_object(head.partition(b"\n")[0])) is not None
        return False

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        lines = _Lines(path)
        while (header := lines.header()) is not None:
            value = _header(header.value) or {}
            entries = _line_entries(lines, header, value)
            yield ImportedConversation(
                text(value, "id") or f"line-{header.number}",
                entries,
                text(value, "parent") or None,
                text(value, "parent_call") or None,
            )
            for _ in entries:
                pass  # skip lines that the caller did not read
        if not lines.any:
            raise UsageError(f"No conversation found in {str(path)!r}: the file has no header line.")

    def write(self, exported: ExportedConversation) -> ExportFile:
        lines: list[bytes] = []
        for one, parent in with_descendants(exported):
            lines.append(dumps({"moot": HEADER_MARK, "version": VERSION, "conversation": conversation_value(one, parent)}))
            lines += [dumps(message_value(message, before)) for message, before in with_parents(one)]
        return ExportFile(b"".join(line + b"\n" for line in lines), fidelity_of(exported, self.holds))


class _Lines:
    """The lines of a file, with a lookahead of one line."""

    def __init__(self, path: Path) -> None:
        self._lines = json_lines(path)
        self._back: Line | None = None
        self.any = False

    def next(self) -> Line | None:
        line, self._back = self._back or next(self._lines, None), None
        return line

    def back(self, line: Line) -> None:
        self._back = line

    def header(self) -> Line | None:
        """Return the next header line. Lines before the first header are ignored."""
        while (line := self.next()) is not None:
            if _header(line.value) is not None:
                self.any = True
                return line
        return None


def _line_entries(lines: _Lines, header: Line, value: JsonObject) -> Iterator[Entry]:
    reader = ConversationReader(value)
    yield ImportedRecord(header.raw, header.value)
    yield reader.begin()
    while (line := lines.next()) is not None:
        if _header(line.value) is not None:
            lines.back(line)
            break
        if line.value is None:
            yield from unreadable(line.raw, None, line.problem)
        else:
            yield from reader.read(line.value, line.raw, f"line {line.number}")
    yield reader.end()


def _header(value: JsonObject | None) -> JsonObject | None:
    """Return the conversation in a header line, or None for any other line."""
    if value is None or value.get("moot") != HEADER_MARK:
        return None
    found = value.get("conversation")
    return found if isinstance(found, dict) else None
