"""The format `gemini`: chats of Gemini CLI, `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, and the older `.json`.

The file is a log of changes: a header, messages (a repeated id replaces the earlier one), `{"$set": …}` for header fields (with `messages`:
the new list of messages) and `{"$rewindTo": id}`. Chats of sub-agents are in a folder named by their parent's id. Tool outputs are stored
with the call and again as a user message. Rewound messages are kept as a branch. Reference:
`packages/core/src/services/chatRecordingService.ts` and `chatRecordingTypes.ts` of https://github.com/google-gemini/gemini-cli, and chats
of Gemini CLI 0.61.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats._parts_of_google import counts, outputs_of, parts_of, usage_of
from moot.formats._saying import Output, Said, branches, call, entries_of, reasoning, step
from moot.formats._sessions import ReadOnly, environment_folder, first_object, holds_some, matching
from moot.formats._source.fields import items, milliseconds, obj, objects, text
from moot.formats._source.lines import json_lines
from moot.formats._source.pieces import Piece, array, beginning, bytes_of, member, parsed, whole
from moot.formats._source.plain import plain
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.part import Part, is_tool, text_part

__all__ = ["Gemini"]

_PATH = 1 << 16
_HEADER = ("sessionId", "projectHash", "startTime")
_SPEECH = frozenset({"user", "gemini"})
_TOKENS = ("input", "output", "cached", "thoughts", "total")
_FILES = ("chats/session-*.jsonl", "chats/*/*.jsonl", "chats/session-*.json")


@dataclass(slots=True)
class _Message:
    """A message and the records about it."""

    value: JsonObject
    raws: list[bytes] = field(default_factory=list[bytes])
    parent: str | None = None
    context: bool = False
    """True for initial context that the program wrote in a header change."""


class Gemini(ReadOnly):
    """`Format`, `Placed`, `Split`, `Resumable`."""

    name = "gemini"
    version = 1
    resumable: Literal[True] = True

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("GEMINI_CLI_HOME"), home) / ".gemini" / "tmp"

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return path.is_dir() and holds_some(self, path, *_FILES, depth=4)
        first = first_object(head) or beginning(head)
        return all(text(first, name) for name in _HEADER)

    def sources(self, folder: Path) -> Iterator[Path]:
        return matching(folder, *_FILES, depth=4)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        log = _Log()
        first = first_object(next(bytes_of(path), b""))
        records = list(log.document(path) if first is None or "messages" in first else log.lines(path))
        if not text(log.facts, "sessionId"):
            raise UsageError(f"{str(path)!r} is not a chat of Gemini CLI: it contains no session id.")
        tree = branches((id, message.parent, True) for id, message in log.messages.items())
        is_part = path.parent.parent.name == "chats"
        project = path.parent.parent.parent if is_part else path.parent.parent
        entries = entries_of(_entries(records, log, project), tree, log.last)
        yield ImportedConversation(text(log.facts, "sessionId"), entries, path.parent.name if is_part else None)


class _Log:
    """The result of applying the log."""

    def __init__(self) -> None:
        self.facts: JsonObject = {}
        self.messages: dict[str, _Message] = {}
        """All messages, including rewound ones, in the order of their first record."""
        self.last: str | None = None
        """The newest message that was not rewound."""

    def lines(self, path: Path) -> Iterator[ImportedRecord]:
        for line in json_lines(path):
            if line.value is None:
                yield ImportedRecord(line.raw, problem=line.problem)
            elif not self._take(line.raw, line.value):
                yield ImportedRecord(line.raw, line.value)

    def document(self, path: Path) -> Iterator[ImportedRecord]:
        data = whole(path)
        span = member(data, "messages")
        try:
            self.facts = obj(parsed(data if span is None else data[: span.begin] + b"[]" + data[span.end :]))
        except ValueError:
            self.facts = obj(beginning(data))
            yield ImportedRecord(b"", problem="the document is damaged")
        for piece in array([data[span.begin : span.end]]) if span is not None else ():
            if not isinstance(piece.value, dict) or not self._take(piece.raw, piece.value):
                yield ImportedRecord(piece.raw, piece.value, piece.problem)
        yield ImportedRecord(data if span is None else data[: span.begin] + data[span.end :], self.facts)

    def _take(self, raw: bytes, value: JsonObject) -> bool:
        """Apply a record. Return whether it belongs to a message."""
        if "$rewindTo" in value:
            known = self.messages.get(text(value, "$rewindTo"))
            self.last = known.parent if known is not None else None
        elif isinstance(value.get("$set"), dict):
            return self._set(raw, obj(value, "$set"))
        elif text(value, "id") and text(value, "type"):
            return self._message(raw, value)
        elif text(value, "sessionId"):
            self.facts |= value if not self.facts else {**value, "startTime": self.facts.get("startTime")}
        return False

    def _set(self, raw: bytes, fields: JsonObject) -> bool:
        """Apply header changes, and a new list of messages, most of which are already known."""
        self.facts |= {name: value for name, value in fields.items() if name != "messages"}
        if "messages" in fields:
            self.last = None
        for piece in _within(raw) if "messages" in fields else ():
            message = obj(piece.value)
            id = text(message, "id")
            if id in self.messages:
                self.last = id
            elif id and not _answers_only(message):
                self._message(piece.raw, message)
                if id in self.messages:
                    self.messages[id].context = self.messages[id].parent is None
        return False

    def _message(self, raw: bytes, value: JsonObject) -> bool:
        id = text(value, "id")
        if value.get("type") not in _SPEECH:
            return False
        known = self.messages.get(id)
        if known is None:
            known = self.messages[id] = _Message(value, parent=self.last)
        known.value, known.context = value, False
        known.raws.append(raw)
        self.last = id
        return True


def _within(raw: bytes) -> Iterator[Piece]:
    """Yield the messages in a header change, each with its own bytes."""
    fields = member(raw, "$set")
    inner = member(raw, "messages", fields.begin) if fields is not None else None
    yield from array([raw[inner.begin : inner.end]]) if inner is not None else ()


def _answers_only(value: JsonObject) -> bool:
    content = items(value, "content")
    return bool(content) and all(isinstance(piece, dict) and "functionResponse" in piece for piece in content)


def _said(id: str, message: _Message, settled: frozenset[str]) -> Said:
    value, raw, when = message.value, b"".join(message.raws), milliseconds(message.value, "timestamp")
    content = value.get("content")
    if value["type"] == "gemini":
        parts, outputs = _answer(value)
        return Said(id, "assistant", raw, parts, outputs, message.parent, when, _step(value))
    if _answers_only(value):
        outputs = tuple(one for one in outputs_of(content) if one.call not in settled)
        return Said(id, "assistant", raw, (), outputs, message.parent, when)
    return Said(id, "system" if message.context else "user", raw, parts_of(content), (), message.parent, when)


def _settled(messages: dict[str, _Message]) -> frozenset[str]:
    """Return the calls whose outputs are stored with them."""
    calls = (one for message in messages.values() for one in objects(message.value, "toolCalls"))
    return frozenset(text(one, "id") for one in calls if one.get("result") or one.get("resultDisplay"))


def _answer(value: JsonObject) -> tuple[tuple[Part, ...], tuple[Output, ...]]:
    calls = objects(value, "toolCalls")
    parts = list(_thoughts(value))
    parts += [part for part in parts_of(value.get("content")) if not (calls and is_tool(part))]
    parts += [call(text(one, "id"), text(one, "name"), one.get("args"), title=text(one, "displayName")) for one in calls]
    return tuple(parts), tuple(output for one in calls if (output := _output(one)) is not None)


def _thoughts(value: JsonObject) -> Iterator[Part]:
    """Yield the reasoning. Pieces without a subject are joined."""
    thoughts = [(text(one, "subject"), text(one, "description")) for one in objects(value, "thoughts")]
    words = "".join(f"**{subject}**\n\n{description}\n\n" if subject else description for subject, description in thoughts)
    if words:
        yield reasoning(words.rstrip("\n"))


def _output(tool_call: JsonObject) -> Output | None:
    id, failed = text(tool_call, "id"), text(tool_call, "status") in ("error", "cancelled")
    answers = outputs_of(tool_call.get("result"))
    if not answers:
        shown = tool_call.get("resultDisplay")
        return Output(id, shown, failed, text(tool_call, "name")) if shown is not None else None
    value: Json = answers[0].value
    if files := [part for part in parts_of(tool_call.get("result")) if part["type"] == "file"]:
        value = {"type": "content", "value": list[Json]([text_part(value if isinstance(value, str) else ""), *files])}
    return Output(id, value, failed or answers[0].error, text(tool_call, "name"))


def _step(value: JsonObject) -> JsonObject:
    return step(text(value, "model"), usage=usage_of(*counts(obj(value, "tokens"), *_TOKENS)).to_json())


def _entries(records: list[ImportedRecord], log: _Log, folder: Path) -> Iterator[Said | ImportedRecord | ImportedFacts]:
    yield from records
    yield _facts(log.facts, folder)
    settled = _settled(log.messages)
    for id, message in log.messages.items():
        yield _said(id, message, settled)


def _facts(facts: JsonObject, folder: Path) -> ImportedFacts:
    """Return the conversation's facts. Newer versions store the project's directory next to its chats."""
    directories = [one for one in items(facts, "directories") if isinstance(one, str)]
    with suppress(OSError, UnicodeDecodeError), plain(folder / ".project_root", links=False) as file:
        directories.append(file.read(_PATH).decode().strip())
    return ImportedFacts(
        title=text(facts, "summary"),
        directory=next(iter(directories), ""),
        agent="gemini",
        created_at=milliseconds(facts, "startTime"),
        updated_at=milliseconds(facts, "lastUpdated"),
    )
