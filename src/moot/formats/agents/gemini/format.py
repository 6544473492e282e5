"""The format `gemini`: chats of Gemini CLI, `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, and the older `.json`.

The file is a log of changes. It has a header and messages, and a message with a repeated id replaces the earlier one. `{"$set": …}` sets
header fields or, in `messages`, a new list of messages. `{"$rewindTo": id}` goes back to a message; moot keeps the messages after it as a
branch. Chats of sub-agents are in a folder whose name is the parent's id. Tool outputs are stored with the call and again as a user
message. Reference: `packages/core/src/services/chatRecordingService.ts` and `chatRecordingTypes.ts` of
https://github.com/google-gemini/gemini-cli, and chats of Gemini CLI 0.61.0.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Literal

from moot.convert.fold import in_history
from moot.errors import UsageError
from moot.formats.agents.gemini.content import (
    call_of,
    content_of,
    outputs_of,
    parts_of,
    response_of,
    shown,
    tokens_of,
    usage_of,
    with_files,
)
from moot.formats.kit.bases import ManyFiles, environment_folder, first_object
from moot.formats.kit.documents import json_lines
from moot.formats.kit.exact import mark_of
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of, session_id_of, steps_of
from moot.formats.kit.fields import iso_or_epoch, items, milliseconds, obj, objects, text
from moot.formats.kit.files import open_regular, read_head
from moot.formats.kit.json import array_items, json_object, member, parse_json, parse_prefix, read_chunks, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, exact_records, reasoning, step, tool_call
from moot.formats.kit.steps import model_calls
from moot.formats.kit.trees import find_branches
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.format import InstallableSession as Placement
from moot.types.message import Message, Part, Role, is_tool, text_part

_PATH = 1 << 16
_REGISTRY = 1 << 20
_OWNER = ".project_root"
"""File in a project's folder that contains the path of the project."""
_UPDATED = b'{"$set":{"lastUpdated":'
SPACE = uuid.UUID("7f6d5b0a-94c1-5b7e-8d0b-3f5f3c8a1e42")
"""UUID namespace for generated ids."""
_HEADER = ("sessionId", "projectHash", "startTime")
_SPEECH = frozenset({"user", "gemini"})
_TOKENS = ("input", "output", "cached", "thoughts", "total")


@dataclass(slots=True)
class _Message:
    """A message, and the records that changed it."""

    value: JsonObject
    raws: list[bytes] = field(default_factory=list[bytes])
    parent: str | None = None
    context: bool = False
    """True if the program wrote the message itself, as initial context in a `$set` record."""


class Gemini(ManyFiles):
    name = "gemini"
    version = 3
    stored_files = (_OWNER,)
    resume_command = ("gemini", "--resume")
    files = ("chats/session-*.jsonl", "chats/*/*.jsonl", "chats/session-*.json")
    depth = sniffed_depth = 4
    resumable: Literal[True] = True
    words = "a session that Gemini CLI can resume"
    holds: Mapping[str, FidelityLevel] = ALL_KEPT

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("GEMINI_CLI_HOME"), home) / ".gemini" / "tmp"

    def write(self, exported: ExportedConversation) -> ExportFile:
        data = b"".join(_lines(exported, session_id_of(exported.conversation.id, SPACE)))
        return ExportFile(data, fidelity_of(exported, self.holds))

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Placement:
        folder = _project_folder(places[0], str(directory))
        started = datetime.fromtimestamp(max(exported.conversation.created_at, 0) // 1000, UTC)
        path = folder / "chats" / f"session-{started:%Y-%m-%dT%H-%M}-{id[:8]}.jsonl"
        owner = {folder / _OWNER: str(directory).encode()}
        now = time.time_ns() // 1_000_000  # by default, Gemini CLI deletes sessions that are older than 30 days when it starts
        data = b"".join(_lines(exported, id)) + _updated(now)
        command = ("gemini", "--resume", id)
        return Placement(path, data, command, directory, fidelity_of(exported, self.holds), owner, _UPDATED)

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
    """The messages of a chat, with all changes in its log applied."""

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
        """Apply a `$set` record. It contains changed header fields or a new list of messages, most of which are already known."""
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
    """Return whether the message contains only tool outputs and their files."""
    content = objects(value, "content")
    answers = ["functionResponse" in piece for piece in content]
    return any(answers) and all(answer or "inlineData" in piece for answer, piece in zip(answers, content, strict=True))


def _record(id: str, message: _Message, settled: frozenset[str]) -> SessionRecord:
    """Convert a message. `settled` contains the ids of the calls that are stored together with their outputs."""
    value, raw, when = message.value, b"".join(message.raws), milliseconds(message.value, "timestamp")
    content = value.get("content")
    if value["type"] == "gemini":
        parts, outputs = _answer(value)
        facts = step(text(value, "model"), usage=usage_of(obj(value, "tokens"), *_TOKENS).to_json())
        return SessionRecord(id, "assistant", raw, parts, outputs, message.parent, when, facts, mark=mark_of(value))
    if _answers_only(value):
        outputs = tuple(one for one in outputs_of(content) if one.call not in settled)
        return SessionRecord(id, "assistant", raw, (), outputs, message.parent, when)
    role: Role = "system" if message.context else "user"
    return SessionRecord(id, role, raw, parts_of(content), (), message.parent, when, mark=mark_of(value))


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
    value = with_files(answers[0].value, parts_of(tool_call.get("result")))
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
    with suppress(OSError, UnicodeDecodeError), open_regular(folder / _OWNER, links=False) as file:
        directories.append(file.read(_PATH).decode().strip())
    return ImportedFacts(
        title=text(facts, "summary"),
        directory=next(iter(directories), ""),
        agent="gemini",
        created_at=milliseconds(facts, "startTime"),
        updated_at=milliseconds(facts, "lastUpdated"),
    )


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _project_folder(place: Path, directory: str) -> Path:
    """Return the folder that Gemini CLI uses or would create for a project directory."""
    owners = {path.parent.name: _owner(path) for path in sorted(place.glob(f"*/{_OWNER}"))}
    listed = json_object(read_head(place.parent / "projects.json", _REGISTRY).decode("utf-8", "replace"))
    names = obj(listed, "projects")
    named = text(names, directory)
    if named and owners.get(named, directory) == directory:
        return place / named
    if (known := next((name for name, owner in owners.items() if owner == directory), None)) is not None:
        return place / known
    slug = re.sub(r"[^a-z0-9]+", "-", Path(directory).name.lower()).strip("-") or "project"
    used = {*owners, *(name for name in names.values() if isinstance(name, str))}
    return place / next(name for number in count() if (name := f"{slug}-{number}" if number else slug) not in used)


def _owner(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError), open_regular(path, links=False) as file:
        return file.read(_PATH).decode().strip()
    return ""


def _lines(exported: ExportedConversation, session: str) -> Iterator[bytes]:
    """Yield the lines of a chat. Each line depends only on the messages so far,
    so the earlier lines stay the same when a conversation grows.
    """
    conversation = exported.conversation
    at = iso_or_epoch(conversation.created_at or next((message.created_at for message in exported.messages), 0))
    directory = conversation.directory or "/"
    header: JsonObject = {"sessionId": session, "projectHash": sha256(directory.encode()).hexdigest(), "startTime": at, "lastUpdated": at}
    yield _line({**header, "kind": "main", "directories": [directory]})
    for message in exported.messages:
        records = _answer_records(message) if message.role == "assistant" else [_prompt_record(message)]
        for record in exact_records(message, records, lambda value: _record(text(value, "id"), _Message(value), frozenset())):
            yield _line(record)
        yield _updated(message.created_at)
    if conversation.title:
        yield _line({"$set": {"summary": conversation.title}})


def _updated(at: int) -> bytes:
    return _UPDATED + dumps(iso_or_epoch(at)) + b"}}\n"


def _line(record: JsonObject) -> bytes:
    return dumps(record) + b"\n"


def _prompt_record(message: Message) -> JsonObject:
    return {"id": message.id, "timestamp": iso_or_epoch(message.created_at), "type": "user", "content": content_of(message.parts)}


def _answer_records(message: Message) -> list[JsonObject]:
    """Return a record for each model call, followed by the prompts that were sent during it."""
    at, recorded = iso_or_epoch(message.created_at), steps_of(message)
    found: list[JsonObject] = []
    for number, one in enumerate(model_calls(replace(message, parts=in_history(message.parts)))):
        facts = recorded[number] if number < len(recorded) else {}
        content = content_of((text_part(one.text), *one.files) if one.text else one.files)
        record: JsonObject = {"id": f"{message.id}.{number}" if number else message.id, "timestamp": at, "type": "gemini"}
        record["content"] = one.text if not one.files else content
        record["thoughts"] = [{"subject": "", "description": one.thought, "timestamp": at}] if one.thought else []
        if usage := obj(facts, "usage"):
            record["tokens"] = tokens_of(usage)
        record["model"] = str(message.metadata.get("model") or "")
        if one.calls:
            record["toolCalls"] = [_call(part, at) for part in one.calls]
        found.append(record)
        said = (part for part in one.others if part.get("type") == "steering-message")
        for place, part in enumerate(said):
            words = content_of(objects(part, "parts"))
            found.append({"id": f"{message.id}.{number}.{place}", "timestamp": at, "type": "user", "content": words})
    return found


def _call(part: Part, at: str) -> JsonObject:
    answer, files = response_of(part)
    status = "error" if "error" in obj(answer, "response") else "success"
    result: list[Json] = [{"functionResponse": answer}, *files]
    call: JsonObject = {**call_of(part), "result": result, "status": status, "timestamp": at, "resultDisplay": shown(answer)}
    return {**call, "displayName": part["title"]} if part.get("title") else call
