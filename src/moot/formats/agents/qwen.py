"""The format `qwen`: sessions of Qwen Code, `~/.qwen/projects/CWD/chats/ID.jsonl`.

Records name their predecessor by `parentUuid` and have content in Google's shape. Records of the type `system` (telemetry, snapshots,
titles) are kept unchanged. Reference: `packages/core/src/services/chatRecordingService.ts` of https://github.com/QwenLM/qwen-code,
locations used by Qwen Code 0.15.10 and 0.24.4 on npm, and sessions of 0.15.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats.agents.gemini import counts, outputs_of, parts_of, usage_of
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, milliseconds, obj, text
from moot.formats.kit.records import (
    Branches,
    Output,
    ReadOnly,
    SessionRecord,
    entries_of,
    environment_folder,
    find_branches,
    first_object,
    matching_files,
    recognizes_any,
    step,
)
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Role

__all__ = ["Qwen"]

_SPEECH = frozenset({"user", "assistant", "tool_result"})
_USAGE = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount", "totalTokenCount")
_FILES = ("chats/*.jsonl",)


class Qwen(ReadOnly):
    """Implementation of `Format`, `Placed`, `Split` and `Resumable`."""

    name = "qwen"
    version = 1
    resumable: Literal[True] = True

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        runtime = environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME")
        yield environment_folder(runtime, home / ".qwen") / "projects"

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return path.is_dir() and recognizes_any(self, path, *_FILES, depth=3)
        first = first_object(head)
        return first is not None and bool(text(first, "uuid") and text(first, "sessionId")) and _is_ours(first)

    def sources(self, folder: Path) -> Iterator[Path]:
        return matching_files(folder, *_FILES, depth=3)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        first = next((line.value for line in json_lines(path) if line.value and text(line.value, "uuid")), None)
        if first is None:
            raise UsageError(f"{str(path)!r} is not a session of Qwen Code: none of its lines has a uuid.")
        tree = find_branches(
            (text(one, "uuid"), text(one, "parentUuid") or None, _speaks(one)) for line in json_lines(path) if (one := line.value)
        )
        yield ImportedConversation(text(first, "sessionId") or path.stem, entries_of(_records(path, tree), tree))


def _is_ours(value: JsonObject) -> bool:
    """Return whether the record is Qwen Code's. Other programs use similar records, but without content parts."""
    kind = value.get("type")
    return (kind in _SPEECH and isinstance(at(value, "message", "parts"), list)) or (
        kind == "system" and "subtype" in value and "userType" not in value
    )


def _speaks(value: JsonObject) -> bool:
    return value.get("type") in _SPEECH and isinstance(at(value, "message", "parts"), list)


def _records(path: Path, tree: Branches) -> Iterator[SessionRecord | ImportedRecord | ImportedFacts]:
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
    content = at(value, "message", "parts")
    parts, outputs = parts_of(content), outputs_of(content)
    if value["type"] == "tool_result":
        shown = obj(value, "toolCallResult")
        if text(shown, "status") in ("error", "cancelled"):
            outputs = tuple(Output(one.call, one.value, True, one.name) for one in outputs)
        return SessionRecord(id, "assistant", line.raw, (), outputs, parent, when)
    if value["type"] == "assistant":
        return SessionRecord(id, "assistant", line.raw, parts, outputs, parent, when, _step(value))
    if value.get("subtype") == "mid_turn_user_message":  # sent while the agent was working: part of the answer
        return SessionRecord(
            id, "assistant", line.raw, ({"type": "steering-message", "id": id, "parts": list[Json](parts)},), (), parent, when
        )
    role: Role = "system" if value.get("subtype") == "notification" else "user"
    return SessionRecord(id, role, line.raw, parts, outputs, parent, when)


def _step(value: JsonObject) -> JsonObject:
    return step(text(value, "model"), usage=usage_of(*counts(obj(value, "usageMetadata"), *_USAGE)).to_json())
