"""The format `pi`: sessions of the coding agent pi, `~/.pi/agent/sessions/--CWD--/TIME_ID.jsonl`, and the output of `pi --mode json`.

After a header, each record contains the id of its predecessor, so that the records form a tree. In version 1, records have no ids, and
each record follows the one before it. Reference: `packages/coding-agent/src/core/session-manager.ts` and `packages/ai/src/types.ts` of
https://github.com/badlogic/pi-mono, and `config.js` and sessions of pi 0.73.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from moot.convert.agents.session import EXACTLY
from moot.convert.files.attachments import label_of, with_texts
from moot.convert.fold import in_history
from moot.errors import UsageError
from moot.formats.kit.bases import environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.exact import mark_of
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of, session_id_of, steps_of, with_parents
from moot.formats.kit.fields import flag, iso_or_epoch, milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.records import (
    Output,
    Records,
    SessionRecord,
    exact_records,
    file,
    finish_reason,
    output_value,
    reasoning,
    step,
    tool_call,
    usage_without_cache,
)
from moot.formats.kit.sessions import LineFiles, LineRecords, Link, LinkedLines, RecordReader
from moot.formats.kit.steps import answer_text, model_calls, plain_call
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.format import InstallableSession as Placement
from moot.types.message import Message, Part, text_part

_VERSION = 3
"""The format version of the sessions that moot writes."""
SPACE = UUID("5e0b2a5c-7b1d-5f39-8f7e-6a0f8b6f2d31")
"""UUID namespace for generated ids."""
_END = b'{"moot":{"end":'
_SPEECH = frozenset({"user", "assistant", "toolResult", "bashExecution"})


class Pi(LineFiles):
    name = "pi"
    version = 4
    resume_command = ("pi", "--session")
    files = ("*_*.jsonl", "agents/*/sessions/*.jsonl")
    words = "a session that pi can resume"
    holds: Mapping[str, FidelityLevel] = {**ALL_KEPT, "branches": "kept"}

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

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        header = next((line.value for line in json_lines(path) if text(line.value, "type") == "session"), None)
        if header is None:
            raise UsageError(f"{str(path)!r} is not a pi session: it has no session header.")
        id, original, at = text(header, "id") or path.stem, _original(header), milliseconds(header, "timestamp")
        conversation = ImportedConversation(id, (), copied_from=original, started_at=at)
        return conversation, RecordReader(_Records(), LinkedLines(path, _link))

    def write(self, exported: ExportedConversation) -> ExportFile:
        data = b"".join(_lines(exported, session_id_of(exported.conversation.id, SPACE)))
        return ExportFile(data, fidelity_of(exported, self.holds))

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Placement:
        own = re.sub(r"[/\\:]", "-", str(directory).removeprefix("/"))
        folder = (
            places[0] / f"--{own}--" if places[0].name == "sessions" else places[0]
        )  # a different folder can be set with an environment variable
        started = re.sub(r"[:.]", "-", iso_or_epoch(exported.conversation.created_at))
        data = b"".join(_lines(exported, id))
        path, command = folder / f"{started}_{id}.jsonl", ("pi", "--session", id)
        return Placement(path, data, command, directory, fidelity_of(exported, self.holds), bookkeeping=_END)


def _original(header: JsonObject) -> str | None:
    """Return the id of the session from which this one was forked. The header contains that session's id or the path of its file."""
    named = text(header, "parentSession") or text(header, "branchedFrom")
    return Path(named).name.removesuffix(".jsonl").rpartition("_")[2] or None


_STREAMED = frozenset({"message_start", "message_update"})
_ENDED = "message_end"
"""Event of `pi --mode json` that contains a complete message. The events in `_STREAMED` contain incomplete messages."""


def _speaks(value: JsonObject) -> bool:
    return value.get("type") in ("message", _ENDED) and text(value, "message", "role") in _SPEECH


def _link(value: JsonObject) -> Link:
    return text(value, "id"), text(value, "parentId") or None, _speaks(value)


class _Records(LineRecords):
    def __init__(self) -> None:
        self._unfinished: Line | None = None
        """The last line, if it contains an incomplete message."""
        self._ended = 0

    def take(self, line: Line) -> Records:
        if (unfinished := self._unfinished) is not None:
            self._unfinished = None
            yield ImportedRecord(unfinished.raw, unfinished.value)
        yield from super().take(line)

    def convert(self, line: Line, value: JsonObject) -> Records:
        if text(value, "type") in _STREAMED and text(value, "message", "role") in _SPEECH:
            self._unfinished = line
        elif _speaks(value):
            yield _message(line, value, f"message-{self._ended}" if value["type"] == _ENDED else str(line.number))
            self._ended += 1
        else:
            yield ImportedRecord(line.raw, value)
            yield _facts(value)

    def rest(self) -> Records:
        if (last := self._unfinished) is not None and last.value is not None:  # the stream ended in the middle of this message
            yield _message(last, last.value, f"message-{self._ended}")


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
    return replace(_content(line, value, name), mark=mark_of(value))


def _content(line: Line, value: JsonObject, name: str) -> SessionRecord:
    """Convert a message. `name` is used as its id if the message has none."""
    message = obj(value, "message")
    id, parent = text(value, "id") or name, text(value, "parentId") or None
    at = milliseconds(value, "timestamp") or milliseconds(message, "timestamp")
    # ids are unique only within a file
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


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _lines(exported: ExportedConversation, session: str) -> Iterator[bytes]:
    """Yield the lines of a session. The last line belongs to the active branch, so that pi resumes this branch."""
    conversation = exported.conversation
    at = conversation.created_at or next((message.created_at for message in exported.messages), 0)
    header: JsonObject = {"type": "session", "version": _VERSION, "id": session, "timestamp": iso_or_epoch(at)}
    yield dumps({**header, "cwd": conversation.directory or "/"}) + b"\n"
    last: dict[str | None, str | None] = {None: None}
    for message, parent in with_parents(exported):
        before = last[parent]
        records: list[JsonObject] = []
        for body in _answer(message) if message.role == "assistant" else [_prompt(message.parts)]:
            id = f"{message.id}.{len(records)}" if records else message.id
            entry: JsonObject = {"type": "message", "id": id, "parentId": before, "timestamp": iso_or_epoch(message.created_at)}
            records.append({**entry, "message": {**body, "timestamp": message.created_at}})
            before = id
        last[message.id] = before
        for record in exact_records(message, records, lambda value: _message(Line(0, b"", value), value, "")):
            yield dumps(record) + b"\n"
    shown = last[exported.messages[-1].id if exported.messages else None]
    about: JsonObject = {"id": f"{session}.end", "parentId": shown, "timestamp": iso_or_epoch(at)}
    if conversation.title:
        yield dumps({EXACTLY: {"end": True}, "type": "session_info", **about, "name": conversation.title}) + b"\n"
    elif exported.others:
        yield dumps({EXACTLY: {"end": True}, "type": "custom", **about, "customType": "moot"}) + b"\n"


def _prompt(parts: Sequence[Part]) -> JsonObject:
    return {"role": "user", "content": _blocks(parts)}


def _blocks(parts: Sequence[Part]) -> list[Json]:
    """Return the text and pictures of a message. Other files are replaced by text."""
    return [_block_of(part) for part in with_texts(parts) if part.get("type") in ("text", "file")]


def _block_of(part: Part) -> JsonObject:
    if part.get("type") == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    media_type, url = str(part.get("mediaType")), str(part.get("url"))
    prefix = f"data:{media_type};base64,"
    if media_type.startswith("image/") and url.startswith(prefix):
        return {"type": "image", "data": url.removeprefix(prefix), "mimeType": media_type}
    return {"type": "text", "text": f"[{label_of(part)}: not included]"}


def _answer(message: Message) -> Iterator[JsonObject]:
    """Yield each model call, followed by the outputs of its tool calls and by the prompts that were sent during it."""
    recorded = steps_of(message)
    for number, one in enumerate(model_calls(replace(message, parts=in_history(message.parts)))):
        facts = recorded[number] if number < len(recorded) else {}
        thoughts = [_thought(part) for part in one.reasoning]
        content: list[Json] = [block for _, block in thoughts]
        content += _blocks((text_part(one.text), *one.files) if one.text else one.files)
        for part in one.calls:
            id, name, arguments = plain_call(part)
            content.append({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
        api = next((name for name, _ in thoughts if name), "unknown")
        model: JsonObject = {"provider": str(message.metadata.get("provider") or "moot"), "model": str(message.metadata.get("model") or "")}
        reason = "toolUse" if one.calls else "stop"
        yield {"role": "assistant", "content": content, "api": api, **model, "usage": _usage_of(facts), "stopReason": reason}
        for part in one.calls:
            yield _output(part)
        for part in one.others:
            if part.get("type") == "steering-message":
                yield _prompt(objects(part, "parts"))


_APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses", "google": "google-generative-ai"}


def _thought(part: Part) -> tuple[str, JsonObject]:
    """Return the name of the API that signed the reasoning, if any, and the reasoning block."""
    block: JsonObject = {"type": "thinking", "thinking": str(part.get("text", ""))}
    for name, data in obj(part, "providerMetadata").items():
        if signature := text(data, "signature"):
            return _APIS.get(name, name), {
                **block,
                "thinkingSignature": signature,
                **({"redacted": True} if flag(data, "redacted") else {}),
            }
    return "", block


def _output(part: Part) -> JsonObject:
    id, name, _ = plain_call(part)
    output, (words, failed) = part.get("output"), answer_text(part)
    exact = not failed and text(output, "type") == "content"
    content = _blocks(objects(output, "value")) if exact else _blocks([text_part(words)])
    return {"role": "toolResult", "toolCallId": id, "toolName": name, "content": content, "isError": failed}


def _usage_of(step: JsonObject) -> JsonObject:
    """Return the usage and cost of a model call. pi counts cached tokens separately, and writes 0 for unknown values."""
    whole, output, read, written = (whole_number(step, "usage", name) or 0 for name in ("input", "output", "cache_read", "cache_write"))
    usage: JsonObject = {"input": max(whole - read - written, 0), "output": output, "cacheRead": read, "cacheWrite": written}
    cost = whole_number(step, "cost") or 0
    none: JsonObject = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    return {**usage, "totalTokens": whole + output, "cost": {**none, "total": cost / 1e9}}
