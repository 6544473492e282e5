"""The format `pi`: sessions of the coding agent pi, `~/.pi/agent/sessions/--CWD--/TIME_ID.jsonl`, and the output of `pi --mode json`.

After a header, each record names its predecessor, which forms a tree. In version 1 records have no ids, and each follows the one before
it. Reference: `packages/coding-agent/src/core/session-manager.ts` and `packages/ai/src/types.ts` of https://github.com/badlogic/pi-mono,
and `config.js` and sessions of pi 0.73.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ManyFiles, environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import flag, milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.records import (
    Branches,
    Output,
    Records,
    SessionRecord,
    entries_of,
    file,
    find_branches,
    finish_reason,
    output_value,
    reasoning,
    step,
    tool_call,
    usage_without_cache,
)
from moot.types.canonical import JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part

_SPEECH = frozenset({"user", "assistant", "toolResult", "bashExecution"})


class Pi(ManyFiles):
    name = "pi"
    version = 3
    files = ("*_*.jsonl", "agents/*/sessions/*.jsonl")

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        usual = environment_folder(environ.get("PI_CODING_AGENT_DIR"), home / ".pi" / "agent") / "sessions"
        yield environment_folder(environ.get("PI_CODING_AGENT_SESSION_DIR"), usual)

    def variants(self, home: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
        yield "prime", home / ".prime" / "agent" / "sessions"
        yield "omp", home / ".omp" / "agent" / "sessions"
        yield "openclaw", environment_folder(environ.get("OPENCLAW_STATE_DIR"), home / ".openclaw") / "agents"
        others = {".clawdbot": "openclaw", ".moltbot": "openclaw", ".qclaw": "qclaw", ".kimi_openclaw": "kimi-openclaw"}
        yield from ((program, home / folder / "agents") for folder, program in others.items())

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return first.get("type") == "session" and bool(text(first, "id")) and "cwd" in first

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        header = next((line.value for line in json_lines(path) if text(line.value, "type") == "session"), None)
        if header is None:
            raise UsageError(f"{str(path)!r} is not a pi session: it has no session header.")
        linked = any(text(line.value, "parentId") for line in json_lines(path))
        links = ((text(one, "id"), text(one, "parentId") or None, _speaks(one)) for line in json_lines(path) if (one := line.value))
        tree = find_branches(links) if linked else None
        yield ImportedConversation(
            text(header, "id") or path.stem,
            entries_of(_records(path, tree), tree),
            copied_from=_original(header),
            started_at=milliseconds(header, "timestamp"),
        )


def _original(header: JsonObject) -> str | None:
    """Return the id of the session that this one was forked from; the header has its id or the path of its file."""
    named = text(header, "parentSession") or text(header, "branchedFrom")
    return Path(named).name.removesuffix(".jsonl").rpartition("_")[2] or None


_STREAMED = frozenset({"message_start", "message_update"})
_ENDED = "message_end"
"""Event of `pi --mode json` with a complete message. The events in `_STREAMED` contain an incomplete message."""


def _speaks(value: JsonObject) -> bool:
    return value.get("type") in ("message", _ENDED) and text(value, "message", "role") in _SPEECH


def _records(path: Path, tree: Branches | None) -> Records:
    unfinished: Line | None = None
    ended = 0
    for line in json_lines(path):
        if unfinished is not None:
            yield ImportedRecord(unfinished.raw, unfinished.value)
        if line.value is not None and text(line.value, "type") in _STREAMED and text(line.value, "message", "role") in _SPEECH:
            unfinished = line
            continue
        unfinished = None
        if line.value is None:
            yield ImportedRecord(line.raw, problem=line.problem)
        elif _speaks(line.value):
            yield _message(line, line.value, f"message-{ended}" if line.value["type"] == _ENDED else str(line.number))
            ended += 1
        else:
            yield ImportedRecord(line.raw, line.value)
            yield _facts(line.value)
    if unfinished is not None and unfinished.value is not None:  # the stream ended in the middle of this message
        yield _message(unfinished, unfinished.value, f"message-{ended}")


def _facts(value: JsonObject) -> ImportedFacts:
    match value.get("type"):
        case "session":
            metadata: JsonObject = {"forked_from": original} if (original := _original(value)) else {}
            return ImportedFacts(directory=text(value, "cwd"), agent="pi", created_at=milliseconds(value, "timestamp"), metadata=metadata)
        case "session_info":
            return ImportedFacts(title=text(value, "name"))
        case "model_change":
            return ImportedFacts(model=f"{text(value, 'modelId')}@{text(value, 'provider')}")
        case _:
            return ImportedFacts()


def _message(line: Line, value: JsonObject, name: str) -> SessionRecord:
    """Convert a message. `name` is its id if it has none of its own."""
    message = obj(value, "message")
    id, parent = text(value, "id") or name, text(value, "parentId") or None
    at = milliseconds(value, "timestamp") or milliseconds(message, "timestamp")
    # ids are unique only in a file
    identity = f"pi:{id}:{at}:{text(message, 'responseId')}" if text(value, "id") else ""
    match message["role"]:
        case "toolResult":
            output = Output(text(message, "toolCallId"), output_value(_parts(message)), flag(message, "isError"), text(message, "toolName"))
            return SessionRecord(id, "assistant", line.raw, outputs=(output,), parent=parent, at=at)
        case "bashExecution":  # a shell command that the user typed after an exclamation mark
            words = f"!{text(message, 'command')}\n\n{text(message, 'output')}"
            return SessionRecord(id, "user", line.raw, (text_part(words),), parent=parent, at=at, identity=identity)
        case "assistant":
            return SessionRecord(id, "assistant", line.raw, _parts(message), parent=parent, at=at, step=_step(message), identity=identity)
        case _:
            return SessionRecord(id, "user", line.raw, _parts(message), parent=parent, at=at, identity=identity)


def _parts(message: JsonObject) -> tuple[Part, ...]:
    content = message.get("content")
    if isinstance(content, str):
        return (text_part(content),) if content else ()
    return tuple(_part(block, message) for block in objects(message, "content"))


def _part(block: JsonObject, message: JsonObject) -> Part:
    match block.get("type"):
        case "text":
            return text_part(text(block, "text"))
        case "thinking":
            signature = text(block, "thinkingSignature")
            noted: JsonObject = {"signature": signature, **({"redacted": True} if flag(block, "redacted") else {})}
            return reasoning(text(block, "thinking"), {text(message, "api") or "pi": noted} if signature else None)
        case "toolCall":
            return tool_call(text(block, "id"), text(block, "name"), block.get("arguments"))
        case "image":
            return file(f"data:{text(block, 'mimeType')};base64,{text(block, 'data')}", text(block, "mimeType"))
        case _:
            return {"type": "data-block", "data": block}


def _step(message: JsonObject) -> JsonObject:
    usage = usage_without_cache(*(whole_number(message, "usage", name) for name in ("input", "output", "cacheRead", "cacheWrite")))
    return step(
        text(message, "model"),
        text(message, "provider"),
        finish_reason=finish_reason(text(message, "stopReason")),
        usage=usage.to_json(),
        cost=money(message, "usage", "cost", "total") or None,  # pi writes 0 for unknown prices
        error=text(message, "errorMessage") or None,
    )
