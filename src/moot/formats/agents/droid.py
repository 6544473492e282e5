"""The format `droid`: sessions of Factory Droid, `~/.factory/sessions/CWD/ID.jsonl`, with `ID.settings.json` next to them.

Messages consist of content blocks of Anthropic's API. Tokens are known only for the whole session. moot stores them with the first answer.
The vendor doesn't document the files. Their format is known from other programs that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.anthropic import content_parts
from moot.formats.kit.bases import first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, flag, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.json import parse_json, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, output_value, step, usage_without_cache
from moot.formats.kit.sessions import LineFiles, LineRecords, RecordReader
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part

_REMINDER = "<system-reminder>"
_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")


class Droid(LineFiles):
    name = "droid"
    version = 1
    stored_files = ("*.settings.json",)
    resume_command = ("droid", "--resume")
    files = ("sessions/*.jsonl", "sessions/*/*.jsonl")
    companion_names: tuple[str, ...] = ("*.settings.json",)
    depth = 3

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".factory" / "sessions"

    def is_own(self, path: Path, head: bytes) -> bool:
        return text(first_object(head), "type") == "session_start" and bool(text(first_object(head), "id"))

    def knows_record(self, body: JsonObject) -> bool:
        return "tokenUsage" in body or body.get("type") in ("session_start", "todo_state", "compaction_state")

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        start = next((line.value for line in json_lines(path) if line.value and line.value.get("type") == "session_start"), None)
        if start is None:
            raise UsageError(f"{str(path)!r} is not a Droid session: it has no start line.")
        return ImportedConversation(text(start, "id") or path.stem, ()), RecordReader(_Records(path.with_suffix(".settings.json")))


class _Records(LineRecords):
    def __init__(self, settings: Path) -> None:
        self._raw, self._settings = _settings(settings)
        self._model = text(self._settings, "model")
        usage = usage_without_cache(*(whole_number(self._settings, "tokenUsage", name) for name in _COUNTS)).to_json()
        self._totals: JsonObject = {"usage": usage, TOTAL_OF: "session"} if usage else {}
        """The session's totals, until they are added to an answer."""
        self._is_apart = bool(self._raw) and not usage
        """True if the settings are a record of their own, which precedes the first line."""

    def take(self, line: Line) -> Records:
        if self._is_apart:
            self._is_apart = False
            yield ImportedRecord(self._raw, self._settings)
        yield from super().take(line)

    def convert(self, line: Line, value: JsonObject) -> Records:
        if value.get("type") == "message" and isinstance(value.get("message"), dict):
            record = _message(line, value, self._model, self._totals, self._raw)
            self._totals = {} if record.step else self._totals
            yield record
        else:
            yield ImportedRecord(line.raw, value)
            if value.get("type") == "session_start":
                title = text(value, "sessionTitle") or text(value, "title")
                yield ImportedFacts(title=title, directory=text(value, "cwd"), agent="droid", model=self._model)


def _settings(path: Path) -> tuple[bytes, JsonObject]:
    """Return the session's settings and their bytes, or empty values if they can't be read."""
    try:
        raw = read_document(path)
        return raw, obj(parse_json(raw))
    except (UsageError, ValueError):
        return b"", {}


def _message(line: Line, value: JsonObject, model: str, totals: JsonObject, raw: bytes) -> SessionRecord:
    """Convert a message. The session's totals and the bytes of the settings, which grow with the session, are added to the first answer."""
    id, when = text(value, "id") or f"line-{line.number}", milliseconds(value, "timestamp")
    content: Json = at(value, "message", "content")
    blocks = objects(value, "message", "content")
    outputs = tuple(_output(block) for block in blocks if block.get("type") == "tool_result")
    if at(value, "message", "role") == "assistant":
        facts = step(text(value, "message", "modelId") or model) | totals
        data = line.raw + raw if totals else line.raw
        return SessionRecord(id, "assistant", data, tuple(content_parts(content)), at=when, step=facts or {"model": ""})
    if outputs:
        return SessionRecord(id, "assistant", line.raw, outputs=outputs, at=when)
    parts = content_parts(content) if isinstance(content, str) else list(map(_prompt, blocks))
    return SessionRecord(id, "user", line.raw, tuple(parts), at=when)


def _prompt(block: JsonObject) -> Part:
    """Convert a block of a prompt. Context that the program added is kept, but not as text of the prompt."""
    if text(block, "text").startswith(_REMINDER):
        return {"type": "data-context", "data": {"text": text(block, "text")}}
    return content_parts([block])[0]


def _output(block: JsonObject) -> Output:
    content = block.get("content")
    value: Json = output_value(content_parts(content)) if isinstance(content, list) else content
    return Output(text(block, "tool_use_id"), value, flag(block, "is_error"))
