"""Conversion of conversations to documents for `opencode import`.

The command keeps only known fields. So moot's own field is in the `metadata` of a part, which OpenCode stores unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid5

from moot.convert.agents.session import EXACTLY
from moot.convert.files.attachments import label_of, with_texts
from moot.convert.fold import in_history
from moot.formats.kit.fidelity import steps_of
from moot.formats.kit.fields import obj, objects, text, whole_number
from moot.formats.kit.records import SessionRecord, exact_records
from moot.formats.kit.steps import Step, answer_text, model_calls, plain_call
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ExportedConversation
from moot.types.message import Message, Part, text_of, text_part

_VERSION = "1.18.33"
"""Version of OpenCode whose format is written."""
SPACE = UUID("0c7d0a4e-2a6b-5b66-9f5d-4e1c5d9d7a70")
"""Namespace of generated ids."""
INFO = b'{"info":'
"""Start of the line about the session, which changes when the conversation grows."""
_AGENT = "build"
"""The agent that is always there."""


def session_of(id: str) -> str:
    """Return the session id for a UUID."""
    return f"ses_{id.replace('-', '')[:26]}"


def lines_of(exported: ExportedConversation, session: str, read: Callable[[JsonObject], SessionRecord]) -> Iterator[bytes]:
    """Yield the lines of the document: the session, then one line per message, so that a longer conversation adds lines.

    `read` converts a message of the document.
    """
    conversation, writer = exported.conversation, _Writer(session, exported.conversation.directory or "/")
    created = conversation.created_at or next((message.created_at for message in exported.messages), 0)
    updated = max(created, conversation.updated_at, *(message.created_at for message in exported.messages), 0)
    info: JsonObject = {"id": session, "slug": f"moot-{session[4:12]}", "projectID": "global", "directory": writer.directory}
    info |= {"title": conversation.title, "version": _VERSION, "time": {"created": created, "updated": updated}}
    yield INFO + dumps(info) + b',"messages":[\n'
    comma = b""
    for place, message in enumerate(exported.messages):
        if message.role == "user":
            writer.model = _model_of(next((one for one in exported.messages[place:] if one.role == "assistant"), message))
        for record in exact_records(message, writer.records(message), read):
            yield comma + dumps(_with_mark(record)) + b"\n"
            comma = b","
    yield b"]}\n"


def _model_of(message: Message) -> tuple[str, str]:
    return str(message.metadata.get("provider") or "moot"), str(message.metadata.get("model") or "unknown")


def _with_mark(record: JsonObject) -> JsonObject:
    """Return the record with moot's field in the metadata of a part. Text comes first, because APIs get the metadata of reasoning."""
    parts = objects(record, "parts")
    kinds = [text(part, "type") for part in parts]
    place = min(range(len(parts)), key=lambda number: ("text", "tool", "reasoning").index(kinds[number]) if kinds[number] != "file" else 3)
    parts[place] = {**parts[place], "metadata": {**obj(parts[place], "metadata"), EXACTLY: record.get(EXACTLY)}}
    return {"info": record.get("info"), "parts": list[Json](parts)}


@dataclass(slots=True)
class _Writer:
    session: str
    directory: str
    model: tuple[str, str] = ("moot", "unknown")
    """Provider and model of the current answer."""
    at: int = 0
    """Time of the last message. OpenCode sorts by time."""
    count: int = 0
    prompt: str = ""
    """Id of the last prompt."""

    def records(self, message: Message) -> list[JsonObject]:
        self.at = max(self.at, message.created_at)
        if message.role != "assistant":
            return [self._prompt(message.id, message.parts)]
        self.model = _model_of(message)
        recorded = steps_of(message)
        found: list[JsonObject] = []
        for number, one in enumerate(model_calls(replace(message, parts=in_history(message.parts)))):
            found.append(self._answer(f"{message.id} {number}", one, recorded[number] if number < len(recorded) else {}))
            for part in one.others:
                if part.get("type") == "steering-message":
                    found.append(self._prompt(f"{message.id} {len(found)}", objects(part, "parts")))
        return found

    def _id(self, kind: str, name: str) -> str:
        """Return an id. Ids are sorted, and those that OpenCode makes come later."""
        self.count += 1
        return f"{kind}_{self.count:012x}{uuid5(SPACE, f'{self.session} {name}').hex[:14]}"

    def _parts(self, message: str, parts: Sequence[JsonObject]) -> list[Json]:
        """Return the parts with ids. A message has at least one, which is empty text."""
        about: JsonObject = {"sessionID": self.session, "messageID": message}
        return [{**part, "id": self._id("prt", f"{message} {place}"), **about} for place, part in enumerate(parts or [_text("")])]

    def _prompt(self, name: str, parts: Sequence[Part]) -> JsonObject:
        self.prompt = self._id("msg", name)
        provider, model = self.model
        info: JsonObject = {"id": self.prompt, "sessionID": self.session, "role": "user", "time": {"created": self.at}, "agent": _AGENT}
        info["model"] = {"providerID": provider, "modelID": model}
        return {"info": info, "parts": self._parts(self.prompt, [_shown(part) for part in _speech(parts)])}

    def _answer(self, name: str, step: Step, facts: JsonObject) -> JsonObject:
        id, (provider, model) = self._id("msg", name), self.model
        info: JsonObject = {"id": id, "sessionID": self.session, "parentID": self.prompt or id, "role": "assistant"}
        info |= {"mode": _AGENT, "agent": _AGENT, "path": {"cwd": self.directory, "root": self.directory}}
        info |= {"providerID": provider, "modelID": model, "cost": (whole_number(facts, "cost") or 0) / 1e9, "tokens": _tokens(facts)}
        ended = self.at + (whole_number(facts, "ms") or 0)
        info |= {"time": {"created": self.at, "completed": ended}, "finish": "tool-calls" if step.calls else "stop"}
        times: JsonObject = {"start": self.at, "end": ended}
        parts: list[JsonObject] = [
            {"type": "reasoning", "text": str(part.get("text", "")), "metadata": obj(part, "providerMetadata"), "time": times}
            for part in step.reasoning
        ]
        parts += [_shown(part) for part in _speech((text_part(step.text), *step.files) if step.text else step.files)]
        parts += [self._call(id, part, times) for part in step.calls]
        return {"info": info, "parts": self._parts(id, parts)}

    def _call(self, message: str, part: Part, times: JsonObject) -> JsonObject:
        call, name, arguments = plain_call(part)
        words, failed = answer_text(part)
        found: JsonObject = {"type": "tool", "tool": name, "callID": call}
        if failed:
            return {**found, "state": {"status": "error", "input": arguments, "error": words, "time": times}}
        title = str(part.get("title") or "")
        state: JsonObject = {"status": "completed", "input": arguments, "output": words, "title": title, "metadata": {}, "time": times}
        if text(output := part.get("output"), "type") == "content":
            pieces = objects(output, "value")
            files = [_shown(piece) for piece in _speech(pieces) if piece.get("type") == "file"]
            state["output"] = text_of([piece for piece in _speech(pieces) if piece.get("type") == "text"])
            state["attachments"] = self._parts(message, files) if files else []
        return {**found, "state": state}


def _speech(parts: Sequence[Part]) -> list[Part]:
    """Return text and the files that models accept. Other files are replaced by text."""
    found: list[Part] = []
    for part in with_texts(parts):
        known = str(part.get("mediaType")).startswith(("image/", "application/pdf")) and str(part.get("url")).startswith("data:")
        if part.get("type") == "text" or (part.get("type") == "file" and known):
            found.append(part)
        elif part.get("type") == "file":
            found.append(text_part(f"[{label_of(part)}: not included]"))
    return found


def _shown(part: Part) -> JsonObject:
    if part.get("type") == "text":
        return _text(str(part.get("text", "")))
    named: JsonObject = {"filename": part["filename"]} if part.get("filename") else {}
    return {"type": "file", "mime": part.get("mediaType"), "url": part.get("url"), **named}


def _text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def _tokens(facts: JsonObject) -> JsonObject:
    """Return token usage. OpenCode counts cached and reasoning tokens separately."""
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    whole, output, read, written, thoughts = (whole_number(facts, "usage", name) or 0 for name in names)
    cache: JsonObject = {"read": read, "write": written}
    fresh = max(whole - read - written, 0)
    return {"total": whole + output, "input": fresh, "output": max(output - thoughts, 0), "reasoning": thoughts, "cache": cache}
