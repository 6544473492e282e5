"""The format `copilot-cli`: sessions of GitHub Copilot CLI, `~/.copilot/session-state/ID/events.jsonl`, in older versions `ID.jsonl`.

Tokens and cost are in the event that ends a session. moot stores them with the last answer before this event. Reference:
`nodejs/src/generated/session-events.ts` of https://github.com/github/copilot-sdk, and the events documented by other programs that read the
sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.files import read_head
from moot.formats.kit.json import json_value
from moot.formats.kit.records import Output, Records, SessionRecord, reasoning, step, tool_call
from moot.formats.kit.sessions import LineFiles, LineRecords, RecordReader
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_NANO_AIU = 100
"""Number of nano-AIU per nano-dollar. A credit of 10^9 nano-AIU costs one cent."""
_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
_NAME = 64 << 10
"""Maximum size of the file that contains the session's name, in bytes."""


class CopilotCli(LineFiles):
    name = "copilot-cli"
    version = 1
    stored_files = ("workspace.yaml",)
    resume_command = ("copilot", "--resume")
    files = ("session-state/*/events.jsonl", "session-state/*.jsonl", "history-session-state/*.jsonl")
    companion_names: tuple[str, ...] = ("workspace.yaml",)

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        folder = environment_folder(environ.get("COPILOT_HOME"), home / ".copilot")
        yield from (folder / "session-state", folder / "history-session-state")

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return text(first, "type") == "session.start" and bool(text(first, "data", "sessionId"))

    def knows_record(self, body: JsonObject) -> bool:
        return text(body, "type") in ("session.shutdown", "tool.execution_start")

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        start = next((line.value for line in json_lines(path) if text(line.value, "type") == "session.start"), None)
        if start is None:
            raise UsageError(f"{str(path)!r} is not a Copilot CLI session: it has no start event.")
        return ImportedConversation(text(start, "data", "sessionId") or path.stem, ()), RecordReader(_Records(path))


class _Records(LineRecords):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._model = ""
        self._spent = 0
        """Cost so far in nano-AIU."""

    def convert(self, line: Line, value: JsonObject) -> Records:
        data, when = obj(value, "data"), milliseconds(value, "timestamp")
        id = text(value, "id") or f"line-{line.number}"
        match value.get("type"):
            case "session.start":
                yield ImportedRecord(line.raw, value)
                created = milliseconds(data, "startTime")
                yield ImportedFacts(
                    title=_title(self._path), directory=text(data, "context", "cwd"), agent="copilot-cli", created_at=created
                )
            case "session.model_change":
                self._model = text(data, "newModel") or self._model
                yield ImportedRecord(line.raw, value)
                yield ImportedFacts(model=self._model)
            case "user.message":
                is_added = text(data, "source").startswith("skill-") or text(data, "content").startswith("<skill-context")
                parts = (text_part(text(data, "content")),)
                yield SessionRecord(id, "system" if is_added else "user", line.raw, parts, at=when)
            case "assistant.message":
                yield _answer(line, id, data, self._model, when)
            case "tool.execution_complete":
                yield SessionRecord(id, "assistant", line.raw, outputs=(_output(data),), at=when)
            case "session.shutdown" if obj(data, "modelMetrics"):
                total = whole_number(data, "totalNanoAiu")
                cost = None if total is None else max(0, total - self._spent) // _NANO_AIU
                self._spent = self._spent if total is None else total
                yield from _totals(line, id, data, cost)
            case _:
                yield ImportedRecord(line.raw, value)


def _title(path: Path) -> str:
    """Return the session's name from the file next to its events, where the name is on a line of its own."""
    try:
        written = read_head(path.with_name("workspace.yaml"), _NAME, links=False).decode("utf-8", "replace")
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in written.splitlines() if line.startswith("name:"))
    return next(names, "").strip("\"'")


def _answer(line: Line, id: str, data: JsonObject, model: str, when: int) -> SessionRecord:
    thoughts = text(data, "reasoningText")
    parts: list[Part] = [reasoning(thoughts)] if thoughts else []
    if isinstance(content := data.get("content", data), str):
        parts += [text_part(content)] if content else []
    elif content is not None:  # an unknown format
        parts.append({"type": "data-block", "data": data})
    for call in objects(data, "toolRequests"):
        parts.append(tool_call(text(call, "toolCallId"), text(call, "name"), json_value(call.get("arguments"))))
    return SessionRecord(id, "assistant", line.raw, tuple(parts), at=when, step=step(model) or {"model": ""})


def _output(data: JsonObject) -> Output:
    result: Json = data.get("result")
    value = at(result, "content") if isinstance(at(result, "content"), str) else result
    if data.get("success") is False:
        error = text(data, "error", "message")
        return Output(text(data, "toolCallId"), error or value, error=True)
    return Output(text(data, "toolCallId"), value)


def _totals(line: Line, id: str, data: JsonObject, cost: int | None) -> Iterator[SessionRecord]:
    """Yield the token counts for each model since the session was started or resumed. The cost is known only for all models together."""
    for number, (model, metrics) in enumerate(obj(data, "modelMetrics").items()):
        usage = Usage(*(whole_number(metrics, "usage", name) for name in _COUNTS)).to_json()
        share: JsonObject = {} if cost is None else {"cost": cost if number == 0 else 0}
        facts = step(model, usage=usage) | {TOTAL_OF: "session", **share}
        yield SessionRecord(f"{id}-{number}", "assistant", line.raw if number == 0 else b"", step=facts)
