"""The format `workbuddy`: sessions of WorkBuddy, `~/.workbuddy/projects/CWD/ID.jsonl`, whose lines are items of OpenAI's Responses API.

The vendor doesn't document the files. Their format is known from other programs that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.json import json_value
from moot.formats.kit.records import Output, Records, SessionRecord, reasoning, step, tool_call
from moot.formats.kit.sessions import LineFiles, LineRecords, RecordReader
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part
from moot.types.usage import Usage

_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_result"})
_TEXTS = frozenset({"input_text", "output_text", "text"})


class WorkBuddy(LineFiles):
    name = "workbuddy"
    version = 1
    files = ("projects/*/*.jsonl", "subagents/*.jsonl")
    depth = 4

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".workbuddy" / "projects"

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return text(first, "type") in _ITEMS and bool(text(first, "sessionId")) and whole_number(first, "timestamp") is not None

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        first = next((line.value for line in json_lines(path) if line.value and text(line.value, "sessionId")), None)
        if first is None:
            raise UsageError(f"{str(path)!r} is not a WorkBuddy session: no line has a session id.")
        session, is_part = text(first, "sessionId"), path.parent.name == "subagents"
        id, parent = (f"{session}/{path.stem}", session) if is_part else (session, None)
        return ImportedConversation(id, (), parent), RecordReader(_Records())


class _Records(LineRecords):
    def __init__(self) -> None:
        self._known = False
        """True once the facts in a line were read."""

    def convert(self, line: Line, value: JsonObject) -> Records:
        if not self._known and text(value, "cwd"):
            self._known = True
            yield ImportedFacts(directory=text(value, "cwd"), agent="workbuddy", created_at=milliseconds(value, "timestamp"))
        if text(value, "type") == "function_call_result" and "output" not in value:
            yield ImportedRecord(line.raw, value, f"the output in line {line.number} has an unknown form")
        elif text(value, "type") in _ITEMS:
            yield _record(line, value)
        else:
            yield ImportedRecord(line.raw, value, f"line {line.number} has the unknown type {text(value, 'type')!r}")


def _record(line: Line, value: JsonObject) -> SessionRecord:
    id, when = text(value, "id") or str(line.number), milliseconds(value, "timestamp")
    match value["type"]:
        case "function_call":
            call = tool_call(text(value, "callId"), text(value, "name"), json_value(value.get("arguments")))
            return SessionRecord(id, "assistant", line.raw, (call,), at=when, step=_step(value))
        case "function_call_result":
            output = value.get("output")
            is_text = text(output, "type") == "text" and isinstance(at(output, "text"), str)
            shown: Json = at(output, "text") if is_text else output
            return SessionRecord(
                id, "assistant", line.raw, outputs=(Output(text(value, "callId"), shown, name=text(value, "name")),), at=when
            )
        case "reasoning":
            words = "\n\n".join(text(one, "text") for one in objects(value, "summary") or objects(value, "content"))
            return SessionRecord(id, "assistant", line.raw, (reasoning(words),), at=when)
        case _:
            role: Role = "assistant" if text(value, "role") == "assistant" else "system" if text(value, "role") == "system" else "user"
            parts = tuple(map(_part, objects(value, "content")))
            return SessionRecord(id, role, line.raw, parts, at=when, step=_step(value) if role == "assistant" else None)


def _part(block: JsonObject) -> Part:
    return text_part(text(block, "text")) if text(block, "type") in _TEXTS else {"type": "data-block", "data": block}


def _step(value: JsonObject) -> JsonObject | None:
    """Return the model and usage of the model call that ended with this item, or None if the item doesn't contain them."""
    usage = obj(value, "providerData", "usage")
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    counts = Usage(*(whole_number(usage, name) for name in names)).to_json()
    return step(text(value, "providerData", "model"), usage=counts) or None
