"""The formats `kimi` and `kimi-code`: sessions of Kimi CLI, `~/.kimi/sessions/MD5/ID/wire.jsonl`, and of its successor Kimi Code,
`~/.kimi-code/sessions/wd_NAME_HEX/session_ID/agents/NAME/wire.jsonl`.

Both are logs of events. Text and the arguments of calls arrive in pieces, and one event contains the tokens of a model call. Reference:
`kimi_cli/wire/{file,types}.py` of https://github.com/MoonshotAI/kimi-cli, and other programs that document the locations and events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from moot.errors import UsageError
from moot.formats.editors.folders import data_folders
from moot.formats.kit.bases import environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import at, flag, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.files import read_head
from moot.formats.kit.json import json_value, parse_json
from moot.formats.kit.records import (
    Output,
    Records,
    SessionRecord,
    finish_reason,
    reasoning,
    step,
    tool_call,
    usage_without_cache,
)
from moot.formats.kit.sessions import LineFiles, LineRecords, RecordReader
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, is_tool, text_part

_NOTE = 1 << 20
"""Maximum size of a file that contains facts about sessions, in bytes."""
_USAGE = ("input_other", "output", "input_cache_read", "input_cache_creation")
_USAGE_OF_CODE = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")


@dataclass(slots=True)
class _Step:
    """A model call whose events are still being read."""

    number: int
    """Number of the step's first line."""
    at: int
    raws: list[bytes] = field(default_factory=list[bytes])
    parts: list[Part] = field(default_factory=list[Part])
    """The parts so far. In a call, the input is the text of the arguments so far."""
    facts: JsonObject | None = None

    def add(self, kind: str, words: str) -> None:
        """Append a piece of text or reasoning."""
        last = self.parts[-1] if self.parts else None
        if last is not None and last.get("type") == kind:
            self.parts[-1] = {**last, "text": str(last["text"]) + words}
        else:
            self.parts.append(text_part(words) if kind == "text" else reasoning(words))

    def record(self) -> SessionRecord:
        """Return the model call with the parsed arguments of its calls."""
        parts = tuple({**part, "input": json_value(part["input"] or "{}")} if is_tool(part) else part for part in self.parts)
        return SessionRecord(f"line-{self.number}", "assistant", b"".join(self.raws), parts, at=self.at, step=self.facts)


class Kimi(LineFiles):
    name = "kimi"
    version = 1
    resume_command = ("kimi", "--session")
    files = ("wire.jsonl",)
    companion_names: tuple[str, ...] = ("state.json",)
    stored_files = ("state.json",)
    depth = 4

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("KIMI_SHARE_DIR"), home / ".kimi") / "sessions"

    def neighbors(self, place: Path) -> Iterator[Path]:
        yield place.parent / "kimi.json"

    def is_own(self, path: Path, head: bytes) -> bool:
        return text(first_object(head), "type") == "metadata" and "protocol_version" in first_object(head)

    def knows_record(self, body: JsonObject) -> bool:
        return _piece_of(body) is not None

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        if not any(text(line.value, "message", "type") for line in json_lines(path)):
            raise UsageError(f"{str(path)!r} is not a Kimi session: no line has a message.")
        return ImportedConversation(path.parent.name, ()), RecordReader(_Records(path))


def _piece_of(value: JsonObject) -> tuple[str, str] | None:
    """Return the kind and text of an event that contains a piece of an answer, or None for any other event."""
    payload = obj(value, "message", "payload")
    match text(value, "message", "type"):
        case "ContentPart" if payload.get("type") == "text" and isinstance(payload.get("text"), str):
            return "text", text(payload, "text")
        case "ContentPart" if payload.get("type") == "think" and isinstance(payload.get("think"), str):
            return "reasoning", text(payload, "think")
        case "ToolCall" if isinstance(at(payload, "function", "arguments"), str | None) and text(payload, "function", "name"):
            return "call", text(payload, "function", "arguments")
        case "ToolCallPart" if isinstance(payload.get("arguments_part"), str | None):
            return "arguments", text(payload, "arguments_part")
        case _:
            return None


class _Records(LineRecords):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._started = False
        self._open: _Step | None = None

    def take(self, line: Line) -> Records:
        if not self._started:
            self._started = True
            state = _note(self._path.with_name("state.json"))
            yield ImportedFacts(title=text(state, "custom_title"), agent="kimi", archived=flag(state, "archived"))
        if line.value is None or text(line.value, "message", "type") in ("TurnBegin", "SteerInput", "ToolResult", "StepBegin", "TurnEnd"):
            yield from self._unfinished()
            self._open = None
        yield from super().take(line)

    def rest(self) -> Records:
        yield from self._unfinished()
        yield ImportedFacts(directory=_directory(self._path))  # the program may write it to the other file later

    def _unfinished(self) -> Records:
        if self._open is not None:
            yield self._open.record()

    def convert(self, line: Line, value: JsonObject) -> Records:
        open_, kind = self._open, text(value, "message", "type")
        payload, when = obj(value, "message", "payload"), milliseconds(value, "timestamp")
        if (piece := _piece_of(value)) is not None:
            self._open = open_ = open_ or _Step(line.number, when)
            open_.raws.append(line.raw)
            _take(open_, piece, payload)
        elif kind == "StatusUpdate" and open_ is not None and open_.facts is None and obj(payload, "token_usage"):
            usage = usage_without_cache(*(whole_number(payload, "token_usage", name) for name in _USAGE))
            open_.facts = step(text(payload, "model"), usage=usage.to_json())
            open_.raws.append(line.raw)
        elif kind in ("TurnBegin", "SteerInput"):
            yield SessionRecord(f"line-{line.number}", "user", line.raw, tuple(_input(payload.get("user_input"))), at=when)
        elif kind == "ToolResult":
            result = obj(payload, "return_value")
            shown = result.get("output") if result.get("output") not in (None, "") else result.get("message")
            output = Output(text(payload, "tool_call_id"), shown, flag(result, "is_error"))
            yield SessionRecord(f"line-{line.number}", "assistant", line.raw, outputs=(output,), at=when)
        else:
            known = kind or value.get("type") == "metadata"
            yield ImportedRecord(line.raw, value, "" if known else f"line {line.number} has no message")


def _take(open_: _Step, piece: tuple[str, str], payload: JsonObject) -> None:
    kind, words = piece
    last = open_.parts[-1] if open_.parts else None
    if kind == "call":
        open_.parts.append(tool_call(text(payload, "id"), text(payload, "function", "name"), words))
    elif kind == "arguments" and last is not None and is_tool(last):
        open_.parts[-1] = {**last, "input": f"{last['input']}{words}"}
    elif kind == "arguments":
        open_.add("text", words)
    else:
        open_.add(kind, words)


def _input(content: Json) -> Iterator[Part]:
    if isinstance(content, str):
        yield text_part(content)
    for block in objects({"content": content}, "content"):
        yield text_part(text(block, "text")) if block.get("type") == "text" else {"type": "data-block", "data": block}


def _directory(path: Path) -> str:
    """Return the folder whose hash is part of the session's path, or an empty string if it is unknown."""
    folders = (text(one, "path") for one in objects(_note(path.parents[3] / "kimi.json"), "work_dirs")) if len(path.parents) > 3 else ()
    hashed = path.parent.parent.name.rpartition("_")[2]
    return next((folder for folder in folders if hashlib.md5(folder.encode(), usedforsecurity=False).hexdigest() == hashed), "")


def _note(path: Path) -> JsonObject:
    """Load a small JSON object. Return an empty object if it can't be read."""
    try:
        return obj(parse_json(read_head(path, _NOTE, links=False)))
    except (OSError, ValueError):
        return {}


class KimiCode(LineFiles):
    name = "kimi-code"
    version = 1
    resume_command = ("kimi", "--session")
    files = ("agents/*/wire.jsonl",)
    stored_files = ("state.json",)
    depth = 5

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".kimi-code" / "sessions"

    def variants(self, home: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
        data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share") / "kimi-desktop"
        for folder in (*data_folders(home, environ, "kimi-desktop"), data):
            yield "kimi-work", folder / "daimon-share" / "daimon" / "runtime" / "kimi-code" / "home" / "sessions"

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the sessions, except those that the desktop app uses for purposes such as generating titles."""
        is_desktop = "kimi-desktop" in folder.parts
        yield from (path for path in super().sources(folder) if not is_desktop or path.parents[2].name.startswith("conv-"))

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return text(first, "type") == "metadata" and "protocol_version" not in first and "time" in first

    def knows_record(self, body: JsonObject) -> bool:
        return body.get("type") in ("context.append_message", "usage.record")  # repeat prompts and tokens

    def companions(self, path: Path) -> Iterator[Path]:
        if path.parent.name == "main" and len(path.parents) > 2:
            yield path.parents[2] / "state.json"

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        if not any(text(line.value, "type").startswith(("turn.", "context.")) for line in json_lines(path)):
            raise UsageError(f"{str(path)!r} is not a Kimi Code session: it has no turn.")
        folder = path.parents[2] if len(path.parents) > 2 else path.parent
        session, agent = folder.name.removeprefix("session_"), path.parent.name
        main = agent == "main" or len(path.parents) <= 2
        conversation = ImportedConversation(session if main else f"{session}/{agent}", (), None if main else session)
        return conversation, RecordReader(_RecordsOfCode(_note(folder / "state.json") if main else {}))


class _RecordsOfCode(LineRecords):
    def __init__(self, state: JsonObject) -> None:
        self._state: JsonObject | None = state
        """Facts about the session from another file, until they are yielded."""
        self._model = ""

    def take(self, line: Line) -> Records:
        if (state := self._state) is not None:
            yield ImportedFacts(title=text(state, "title"), agent="kimi-code", created_at=milliseconds(state, "createdAt"))
            self._state = None
        yield from super().take(line)

    def convert(self, line: Line, value: JsonObject) -> Records:
        when, event = milliseconds(value, "time"), obj(value, "event")
        match value.get("type"):
            case "config.update":
                self._model = text(value, "modelAlias") or self._model
                yield ImportedRecord(line.raw, value)
                yield ImportedFacts(directory=text(value, "cwd"), model=self._model)
            case "turn.prompt" | "turn.steer":
                yield SessionRecord(f"line-{line.number}", "user", line.raw, tuple(_input(value.get("input"))), at=when)
            case "context.append_loop_event" if (record := _loop_event(line, event, self._model, when)) is not None:
                yield record
            case _:
                yield ImportedRecord(line.raw, value)


def _loop_event(line: Line, event: JsonObject, model: str, when: int) -> SessionRecord | None:
    """Convert an event of the agent's loop. Return None if it has no content."""
    id = text(event, "uuid") or f"line-{line.number}"
    match event.get("type"):
        case "content.part":
            return SessionRecord(id, "assistant", line.raw, (_part(obj(event, "part")),), at=when)
        case "tool.call":
            call = tool_call(text(event, "toolCallId"), text(event, "name"), event.get("args"))
            return SessionRecord(id, "assistant", line.raw, (call,), at=when)
        case "tool.result":
            result = obj(event, "result")
            output = Output(text(event, "toolCallId"), result.get("output"), flag(result, "isError"))
            return SessionRecord(f"{output.call or line.number}.output", "assistant", line.raw, outputs=(output,), at=when)
        case "step.end":
            usage = usage_without_cache(*(whole_number(event, "usage", name) for name in _USAGE_OF_CODE))
            reason = finish_reason(text(event, "finishReason"))
            facts = step(text(event, "model") or model, usage=usage.to_json(), finish_reason=reason)
            return SessionRecord(f"{id}.end", "assistant", line.raw, at=when, step=facts or None)
        case _:
            return None


def _part(part: JsonObject) -> Part:
    kind = part.get("type")
    words = part.get("text") if kind == "text" else part.get("think", part.get("text"))
    if kind not in ("text", "think") or not isinstance(words, str):
        return {"type": "data-block", "data": part}
    return text_part(words) if kind == "text" else reasoning(words)
