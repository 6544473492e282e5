"""The format `qwen`: sessions of Qwen Code, `~/.qwen/projects/CWD/chats/ID.jsonl`.

The field `parentUuid` of a record refers to its predecessor. Content is in the format of Google's API. Records of the type `system`
(telemetry, snapshots, titles) are kept unchanged. Reference: `packages/core/src/services/chatRecordingService.ts` of
https://github.com/QwenLM/qwen-code, locations used by Qwen Code 0.15.10 and 0.24.4 on npm, and sessions of 0.15.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal
from uuid import UUID

from moot.convert.fold import in_history
from moot.errors import UsageError
from moot.formats.agents.gemini.content import call_of, content_of, outputs_of, parts_of, response_of, shown, tokens_of, usage_of
from moot.formats.kit.bases import environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.exact import mark_of
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of, session_id_of, steps_of, with_parents
from moot.formats.kit.fields import at, iso_or_epoch, milliseconds, obj, objects, text
from moot.formats.kit.records import Output, Records, SessionRecord, exact_records, step
from moot.formats.kit.sessions import LineFiles, LineRecords, Link, LinkedLines, RecordReader
from moot.formats.kit.steps import model_calls
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.format import InstallableSession as Placement
from moot.types.message import Message, Part, Role, text_part

_VERSION = "0.15.10"
"""The version of Qwen Code in whose format sessions are written."""
SPACE = UUID("d1c0a6b6-0f0e-5b0a-9d6c-5a4d6e1f7b93")
"""UUID namespace for generated ids."""
_ABOUT_SESSION = b'{"type":"system",'
_SPEECH = frozenset({"user", "assistant", "tool_result"})
_USAGE = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount", "totalTokenCount")


class Qwen(LineFiles):
    name = "qwen"
    version = 4
    resume_command = ("qwen", "--resume")
    files = ("chats/*.jsonl",)
    resumable: Literal[True] = True
    words = "a session that Qwen Code can resume"
    holds: Mapping[str, FidelityLevel] = {**ALL_KEPT, "branches": "kept"}

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        runtime = environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME")
        yield environment_folder(runtime, home / ".qwen") / "projects"

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        if not text(first, "uuid") or not text(first, "sessionId"):
            return False
        # other programs use similar records, but without content parts
        return _speaks(first) or (first.get("type") == "system" and "subtype" in first and "userType" not in first)

    def knows_record(self, body: JsonObject) -> bool:
        return body.get("type") == "system" and "systemPayload" in body

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        first = next((line.value for line in json_lines(path) if line.value and text(line.value, "uuid")), None)
        if first is None:
            raise UsageError(f"{str(path)!r} is not a Qwen Code session: none of its lines has a uuid.")
        return ImportedConversation(text(first, "sessionId") or path.stem, ()), RecordReader(_Records(), LinkedLines(path, _link))

    def write(self, exported: ExportedConversation) -> ExportFile:
        data = b"".join(_lines(exported, session_id_of(exported.conversation.id, SPACE)))
        return ExportFile(data, fidelity_of(exported, self.holds))

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Placement:
        path = places[0] / folder_name(str(directory)) / "chats" / f"{id}.jsonl"
        data = b"".join(_lines(exported, id))
        command = ("qwen", "--resume", id)
        return Placement(path, data, command, directory, fidelity_of(exported, self.holds), bookkeeping=_ABOUT_SESSION)


def _speaks(value: JsonObject) -> bool:
    return text(value, "type") in _SPEECH and isinstance(at(value, "message", "parts"), list)


def _link(value: JsonObject) -> Link:
    return text(value, "uuid"), text(value, "parentUuid") or None, _speaks(value)


class _Records(LineRecords):
    def __init__(self) -> None:
        self._known = False
        """True once the facts in the first line were read."""

    def convert(self, line: Line, value: JsonObject) -> Records:
        if not self._known:
            self._known = True
            yield ImportedFacts(directory=text(value, "cwd"), agent="qwen", created_at=milliseconds(value, "timestamp"))
        if _speaks(value):
            yield _record(line, value)
            return
        yield ImportedRecord(line.raw, value)
        if title := text(value, "systemPayload", "customTitle") or text(value, "systemPayload", "title"):
            yield ImportedFacts(title=title)


def _record(line: Line, value: JsonObject) -> SessionRecord:
    return replace(_content(line, value), mark=mark_of(value))


def _content(line: Line, value: JsonObject) -> SessionRecord:
    id, parent, when = text(value, "uuid") or str(line.number), text(value, "parentUuid") or None, milliseconds(value, "timestamp")
    identity = f"qwen:{text(value, 'uuid')}" if text(value, "uuid") else ""
    content = at(value, "message", "parts")
    parts, outputs = parts_of(content), outputs_of(content)
    if value["type"] == "tool_result":
        if text(value, "toolCallResult", "status") in ("error", "cancelled"):
            outputs = tuple(Output(one.call, one.value, True, one.name) for one in outputs)
        return SessionRecord(id, "assistant", line.raw, (), outputs, parent, when)
    if value["type"] == "assistant":
        facts = step(text(value, "model"), usage=usage_of(obj(value, "usageMetadata"), *_USAGE).to_json())
        return SessionRecord(id, "assistant", line.raw, parts, outputs, parent, when, facts, identity=identity)
    if value.get("subtype") == "mid_turn_user_message":  # sent while the agent was working: part of the answer
        steering: Part = {"type": "steering-message", "id": id, "parts": list[Json](parts)}
        return SessionRecord(id, "assistant", line.raw, (steering,), (), parent, when)
    role: Role = "system" if value.get("subtype") == "notification" else "user"
    return SessionRecord(id, role, line.raw, parts, outputs, parent, when, identity=identity)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def folder_name(directory: str) -> str:
    """Return the name of the folder in which Qwen Code stores the sessions of a directory."""
    units = memoryview(directory.encode("utf-16-le")).cast("H")
    return "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)


def _lines(exported: ExportedConversation, session: str) -> Iterator[bytes]:
    """Yield the lines of a session. The last line refers to the active branch, so that Qwen Code resumes this branch."""
    conversation = exported.conversation
    last: dict[str | None, str | None] = {None: None}
    base: JsonObject = {"sessionId": session, "cwd": conversation.directory or "/", "version": _VERSION}
    for message, parent in with_parents(exported):
        before = last[parent]
        records: list[JsonObject] = []
        for body in _answer(message) if message.role == "assistant" else [_prompt(message)]:
            uuid = f"{message.id}.{len(records)}" if records else message.id
            at = iso_or_epoch(message.created_at)
            records.append({"uuid": uuid, "parentUuid": before, **base, "timestamp": at, **body})
            before = uuid
        last[message.id] = before
        for record in exact_records(message, records, lambda value: _record(Line(0, b"", value), value)):
            yield dumps(record) + b"\n"
    end = last[exported.messages[-1].id if exported.messages else None]
    at = iso_or_epoch(conversation.created_at)
    about: JsonObject = {"uuid": f"{session}.end", "parentUuid": end, **base, "timestamp": at}
    if conversation.title:
        payload: JsonObject = {"customTitle": conversation.title, "titleSource": "manual"}
        yield dumps({"type": "system", "subtype": "custom_title", **about, "systemPayload": payload}) + b"\n"
    elif exported.others:
        yield dumps({"type": "system", "subtype": "rewind", **about, "systemPayload": {}}) + b"\n"


def _prompt(message: Message) -> JsonObject:
    prompt: JsonObject = {"type": "user", "message": {"role": "user", "parts": content_of(message.parts)}}
    return prompt if message.role == "user" else {**prompt, "subtype": "notification"}


def _answer(message: Message) -> Iterator[JsonObject]:
    """Yield a record for each model call, and for each output and prompt that follows it."""
    recorded, model = steps_of(message), str(message.metadata.get("model") or "")
    for number, one in enumerate(model_calls(replace(message, parts=in_history(message.parts)))):
        parts: list[Json] = [{"text": one.thought, "thought": True}] if one.thought else []
        parts += content_of((text_part(one.text), *one.files) if one.text else one.files)
        for part in one.calls:
            parts.append({"functionCall": call_of(part)})
        record: JsonObject = {"type": "assistant", "model": model, "message": {"role": "model", "parts": parts}}
        if usage := obj(recorded[number] if number < len(recorded) else None, "usage"):
            counts = tokens_of(usage)
            names = zip(_USAGE, ("input", "output", "cached", "thoughts", "total"), strict=True)
            record["usageMetadata"] = {theirs: counts[ours] for theirs, ours in names}
        yield record
        for part in one.calls:
            answer, files = response_of(part)
            failed = "error" in obj(answer, "response")
            response: JsonObject = {**answer, "parts": files} if files else answer
            pieces: list[Json] = [{"functionResponse": response}]
            result: JsonObject = {"callId": answer["id"], "status": "error" if failed else "success", "resultDisplay": shown(answer)}
            yield {"type": "tool_result", "message": {"role": "user", "parts": pieces}, "toolCallResult": result}
        for part in one.others:
            if part.get("type") == "steering-message":
                said = content_of(objects(part, "parts"))
                yield {"type": "user", "subtype": "mid_turn_user_message", "message": {"role": "user", "parts": said}}
