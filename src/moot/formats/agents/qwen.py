"""The format `qwen`: sessions of Qwen Code, `~/.qwen/projects/CWD/chats/ID.jsonl`.

Records name their predecessor by `parentUuid` and have content as in Google's API. Records of the type `system` (telemetry, snapshots,
titles) are kept unchanged. Reference: `packages/core/src/services/chatRecordingService.ts` of https://github.com/QwenLM/qwen-code,
locations used by Qwen Code 0.15.10 and 0.24.4 on npm, and sessions of 0.15.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats.agents.gemini.content import outputs_of, parts_of, usage_of
from moot.formats.kit.bases import ManyFiles, environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, milliseconds, obj, text
from moot.formats.kit.records import Branches, Output, Records, SessionRecord, entries_of, find_branches, step
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role

_SPEECH = frozenset({"user", "assistant", "tool_result"})
_USAGE = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount", "totalTokenCount")


class Qwen(ManyFiles):
    name = "qwen"
    version = 3
    files = ("chats/*.jsonl",)
    resumable: Literal[True] = True

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

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        first = next((line.value for line in json_lines(path) if line.value and text(line.value, "uuid")), None)
        if first is None:
            raise UsageError(f"{str(path)!r} is not a Qwen Code session: none of its lines has a uuid.")
        tree = find_branches(
            (text(one, "uuid"), text(one, "parentUuid") or None, _speaks(one)) for line in json_lines(path) if (one := line.value)
        )
        yield ImportedConversation(text(first, "sessionId") or path.stem, entries_of(_records(path, tree), tree))


def _speaks(value: JsonObject) -> bool:
    return text(value, "type") in _SPEECH and isinstance(at(value, "message", "parts"), list)


def _records(path: Path, tree: Branches) -> Records:
    known = False
    for line in json_lines(path):
        value = line.value
        if value is None:
            yield ImportedRecord(line.raw, problem=line.problem)
            continue
        if not known:
            known = True
            yield ImportedFacts(directory=text(value, "cwd"), agent="qwen", created_at=milliseconds(value, "timestamp"))
        if _speaks(value):
            yield _record(line, value)
            continue
        yield ImportedRecord(line.raw, value)
        if title := text(value, "systemPayload", "customTitle") or text(value, "systemPayload", "title"):
            yield ImportedFacts(title=title)


def _record(line: Line, value: JsonObject) -> SessionRecord:
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
