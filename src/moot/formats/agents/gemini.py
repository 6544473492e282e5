"""The format `gemini`: chats of Gemini CLI, `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, and the older `.json`.

The file is a log of changes. It has a header and messages, and a message with a repeated id replaces the earlier one. `{"$set": …}` sets
header fields, or in `messages` a new list of messages. `{"$rewindTo": id}` goes back to a message; the messages after it are kept as a
branch. Chats of sub-agents are in a folder named by their parent's id. Tool outputs are stored with the call and again as a user message.
Reference:
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
from moot.formats.kit.bases import ManyFiles, environment_folder, first_object
from moot.formats.kit.documents import json_lines
from moot.formats.kit.fields import flag, items, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.files import open_regular
from moot.formats.kit.json import array_items, member, parse_json, parse_prefix, read_chunks, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, find_branches, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, is_tool, text_part
from moot.types.usage import Usage


def parts_of(content: Json) -> tuple[Part, ...]:
    """Return the parts without tool outputs. Consecutive fragments of reasoning are joined."""
    if isinstance(content, str):
        return (text_part(content),) if content else ()
    parts: list[Part] = []
    for number, piece in enumerate(objects(content) if isinstance(content, list) else [obj(content)]):
        part = _part(piece, number)
        last = parts[-1] if parts else None
        if part is None:
            continue
        if last is not None and last["type"] == part["type"] == "reasoning" and "providerMetadata" not in last:
            parts[-1] = {**part, "text": f"{last['text']}{part['text']}"}
        else:
            parts.append(part)
    return tuple(parts)


def outputs_of(content: Json) -> tuple[Output, ...]:
    """Return the tool outputs."""
    found: list[Output] = []
    for piece in objects(content):
        answer = piece.get("functionResponse")
        if isinstance(answer, dict):
            response = obj(answer, "response")
            failed = "error" in response and "output" not in response
            value = response.get("error" if failed else "output", response)
            found.append(Output(text(answer, "id") or text(answer, "name"), value, failed, text(answer, "name")))
    return tuple(found)


def usage_of(value: JsonObject, *names: str) -> Usage:
    """Return the token usage. `names` are the fields for prompt, answer, cached, reasoning and total tokens, in this order.

    Reasoning tokens are added to the output tokens if the total shows that they are counted separately.
    """
    prompt, answer, cached, thoughts, total = (whole_number(value, name) for name in names)
    counted_separately = None not in (prompt, answer, thoughts, total) and total == (prompt or 0) + (answer or 0) + (thoughts or 0)
    output = (answer or 0) + (thoughts or 0) if counted_separately else answer
    return Usage(prompt, output, cached, None, thoughts)


def _part(piece: JsonObject, number: int) -> Part | None:
    if "functionResponse" in piece:
        return None
    if isinstance(function_call := piece.get("functionCall"), dict):
        part = tool_call(
            text(function_call, "id") or f"{text(function_call, 'name')}-{number}", text(function_call, "name"), function_call.get("args")
        )
        signature = text(piece, "thoughtSignature")
        return {**part, "callProviderMetadata": {"google": {"thoughtSignature": signature}}} if signature else part
    if isinstance(text_ := piece.get("text"), str):
        signature = text(piece, "thoughtSignature")
        noted: JsonObject | None = {"google": {"thoughtSignature": signature}} if signature else None
        return reasoning(text_, noted) if flag(piece, "thought") else text_part(text_)
    if isinstance(inline := piece.get("inlineData"), dict):
        return file(f"data:{text(inline, 'mimeType')};base64,{text(inline, 'data')}", text(inline, "mimeType"), text(inline, "displayName"))
    if isinstance(kept := piece.get("fileData"), dict):
        return file(text(kept, "fileUri"), text(kept, "mimeType"), text(kept, "displayName"))
    return {"type": "data-block", "data": piece} if piece else None


_PATH = 1 << 16
_HEADER = ("sessionId", "projectHash", "startTime")
_SPEECH = frozenset({"user", "gemini"})
_TOKENS = ("input", "output", "cached", "thoughts", "total")


@dataclass(slots=True)
class _Message:
    """A message and the records about it."""

    value: JsonObject
    raws: list[bytes] = field(default_factory=list[bytes])
    parent: str | None = None
    context: bool = False
    """True if the program wrote the message itself, as initial context in a `$set` record."""


class Gemini(ManyFiles):
    name = "gemini"
    version = 2
    files = ("chats/session-*.jsonl", "chats/*/*.jsonl", "chats/session-*.json")
    depth = sniffed_depth = 4
    resumable: Literal[True] = True

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("GEMINI_CLI_HOME"), home) / ".gemini" / "tmp"

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head) or parse_prefix(head)
        return all(text(first, name) for name in _HEADER)

    def knows_record(self, body: JsonObject) -> bool:
        return "$set" in body  # repeats messages

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        log = _Log()
        first = first_object(next(read_chunks(path), b""))
        records = list(log.document(path) if not first or "messages" in first else log.lines(path))
        if not text(log.facts, "sessionId"):
            raise UsageError(f"{str(path)!r} is not a Gemini CLI chat: it contains no session id.")
        tree = find_branches((id, message.parent, True) for id, message in log.messages.items())
        is_part = path.parent.parent.name == "chats"
        project = path.parent.parent.parent if is_part else path.parent.parent
        entries = entries_of(_entries(records, log, project), tree, log.last)
        yield ImportedConversation(text(log.facts, "sessionId"), entries, path.parent.name if is_part else None)


class _Log:
    """The messages of a chat after all changes in its log were applied."""

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
        data = read_document(path)
        span = member(data, "messages")
        try:
            self.facts = obj(parse_json(data if span is None else data[: span.begin] + b"[]" + data[span.end :]))
        except ValueError:
            self.facts = obj(parse_prefix(data))
            yield ImportedRecord(b"", problem="the document is damaged")
        if span is None or data[span.begin : span.begin + 1] != b"[":
            yield ImportedRecord(b"", problem="'messages' contains no messages")
        for piece in array_items([data[span.begin : span.end]]) if span is not None else ():
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
        """Apply a `$set` record, which has changed header fields or a new list of messages, most of which are already known."""
        self.facts |= {name: value for name, value in fields.items() if name != "messages"}
        if "messages" in fields:
            self.last = None
        outer = member(raw, "$set")
        inner = member(raw, "messages", outer.begin) if outer is not None and "messages" in fields else None
        for piece in array_items([raw[inner.begin : inner.end]]) if inner is not None else ():
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
        if text(value, "type") not in _SPEECH:
            return False
        known = self.messages.get(id)
        if known is None:
            known = self.messages[id] = _Message(value, parent=self.last)
        known.value, known.context = value, False
        known.raws.append(raw)
        self.last = id
        return True


def _answers_only(value: JsonObject) -> bool:
    content = items(value, "content")
    return bool(content) and all(isinstance(piece, dict) and "functionResponse" in piece for piece in content)


def _record(id: str, message: _Message, settled: frozenset[str]) -> SessionRecord:
    """Convert a message. `settled` contains the ids of calls that are stored together with their outputs."""
    value, raw, when = message.value, b"".join(message.raws), milliseconds(message.value, "timestamp")
    content = value.get("content")
    if value["type"] == "gemini":
        parts, outputs = _answer(value)
        facts = step(text(value, "model"), usage=usage_of(obj(value, "tokens"), *_TOKENS).to_json())
        return SessionRecord(id, "assistant", raw, parts, outputs, message.parent, when, facts)
    if _answers_only(value):
        outputs = tuple(one for one in outputs_of(content) if one.call not in settled)
        return SessionRecord(id, "assistant", raw, (), outputs, message.parent, when)
    return SessionRecord(id, "system" if message.context else "user", raw, parts_of(content), (), message.parent, when)


def _answer(value: JsonObject) -> tuple[tuple[Part, ...], tuple[Output, ...]]:
    calls = objects(value, "toolCalls")
    # pieces of reasoning without a subject are joined
    thoughts = [(text(one, "subject"), text(one, "description")) for one in objects(value, "thoughts")]
    words = "".join(f"**{subject}**\n\n{description}\n\n" if subject else description for subject, description in thoughts)
    parts = [reasoning(words.rstrip("\n"))] if words else []
    parts += [part for part in parts_of(value.get("content")) if not (calls and is_tool(part))]
    parts += [tool_call(text(one, "id"), text(one, "name"), one.get("args"), title=text(one, "displayName")) for one in calls]
    return tuple(parts), tuple(output for one in calls if (output := _output(one)) is not None)


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


def _entries(records: list[ImportedRecord], log: _Log, folder: Path) -> Records:
    yield from records
    yield _facts(log.facts, folder)
    calls = (one for message in log.messages.values() for one in objects(message.value, "toolCalls"))
    settled = frozenset(text(one, "id") for one in calls if one.get("result") or one.get("resultDisplay"))
    for id, message in log.messages.items():
        yield _record(id, message, settled)


def _facts(facts: JsonObject, folder: Path) -> ImportedFacts:
    """Return the conversation's facts. Newer versions store the project's directory next to its chats."""
    directories = [one for one in items(facts, "directories") if isinstance(one, str)]
    with suppress(OSError, UnicodeDecodeError), open_regular(folder / ".project_root", links=False) as file:
        directories.append(file.read(_PATH).decode().strip())
    return ImportedFacts(
        title=text(facts, "summary"),
        directory=next(iter(directories), ""),
        agent="gemini",
        created_at=milliseconds(facts, "startTime"),
        updated_at=milliseconds(facts, "lastUpdated"),
    )
