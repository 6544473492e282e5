"""The format `iflow`: sessions of iFlow CLI, `~/.iflow/projects/CWD/session-ID.jsonl`.

The lines look like Claude Code's, but an answer with parallel calls is written as a series of snapshots, so that a call can be in several
lines. moot takes each call from the first line that contains it, and treats each line as the successor of the line before it. The vendor
doesn't document the files. Their format is known from other programs that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, milliseconds, objects, text, whole_number
from moot.formats.kit.records import Output, Records, SessionRecord, reasoning, step, tool_call, usage_without_cache
from moot.formats.kit.sessions import LineFiles, LineRecords, RecordReader
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part

_PREFIX = "session-"


class IFlow(LineFiles):
    name = "iflow"
    version = 1
    files = ("projects/*/session-*.jsonl",)
    depth = 3

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".iflow" / "projects"

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return text(first, "sessionId").startswith(_PREFIX) and "parentUuid" in first and "message" in first

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        first = next((line.value for line in json_lines(path) if text(line.value, "sessionId").startswith(_PREFIX)), None)
        if first is None:
            raise UsageError(f"{str(path)!r} is not an iFlow session: no line has a session id.")
        return ImportedConversation(text(first, "sessionId"), ()), RecordReader(_Records())


class _Records(LineRecords):
    def __init__(self) -> None:
        self._known = False
        """True once the facts in the first line were read."""
        self._calls = set[str]()

    def convert(self, line: Line, value: JsonObject) -> Records:
        if not self._known:
            self._known = True
            yield ImportedFacts(directory=text(value, "cwd"), agent="iflow", created_at=milliseconds(value, "timestamp"))
        if text(value, "type") in ("user", "assistant") and at(value, "message", "content") is not None:
            yield _record(line, value, self._calls)
        else:
            yield ImportedRecord(line.raw, value, f"line {line.number} has the unknown type {text(value, 'type')!r}")


def _record(line: Line, value: JsonObject, calls: set[str]) -> SessionRecord:
    """Convert a line. `calls` are the ids of the calls in earlier lines."""
    id, when = text(value, "uuid") or str(line.number), milliseconds(value, "timestamp")
    content = at(value, "message", "content")
    blocks = objects(value, "message", "content")
    outputs = tuple(_output(block) for block in blocks if block.get("type") == "tool_result")
    if outputs:
        return SessionRecord(id, "assistant", line.raw, outputs=outputs, at=when)
    if value["type"] == "user":
        parts = (text_part(content),) if isinstance(content, str) else tuple(map(_part, blocks))
        return SessionRecord(id, "user", line.raw, parts, at=when)
    is_snapshot = not calls.isdisjoint(text(block, "id") for block in blocks)
    fresh = [block for block in blocks if (block.get("type") == "tool_use" and text(block, "id") not in calls) or not is_snapshot]
    calls.update(text(block, "id") for block in blocks if block.get("type") == "tool_use")
    parts = (text_part(content),) if isinstance(content, str) else tuple(map(_part, fresh))
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    usage = usage_without_cache(*(whole_number(value, "message", "usage", name) or None for name in names))  # iFlow writes 0 for unknown
    facts = None if is_snapshot else step(text(value, "message", "model"), usage=usage.to_json())
    return SessionRecord(id, "assistant", line.raw, parts, at=when, step=facts)


def _part(block: JsonObject) -> Part:
    match block.get("type"):
        case "text":
            return text_part(text(block, "text"))
        case "thinking":
            return reasoning(text(block, "thinking"))
        case "tool_use":
            return tool_call(text(block, "id"), text(block, "name"), block.get("input"))
        case _:
            return {"type": "data-block", "data": block}


def _output(block: JsonObject) -> Output:
    content = block.get("content")
    response: Json = at(content, "responseParts", "functionResponse", "response")
    error = at(response, "error")
    if error is not None:
        return Output(text(block, "tool_use_id"), error, error=True)
    output = at(response, "output")
    shown = output if output is not None else content if response is None else response
    return Output(text(block, "tool_use_id"), shown, name=text(content, "responseParts", "functionResponse", "name"))
