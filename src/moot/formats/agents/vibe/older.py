"""The format `vibe-old`: sessions of Mistral Vibe 1 and 2, `~/.vibe/logs/session/session_TIME_ID/{messages.jsonl, meta.json}`.

Each line is an OpenAI message. Tokens are known only for the whole session.
moot stores them with the first answer. Reference: `vibe.core` of mistral-vibe 2.18.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ManyFiles, environment_folder, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import flag, items, milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.json import json_value, parse_json, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_MESSAGES = "messages.jsonl"
_YOUNG = 60
"""Number of seconds after the last change to the messages during which the program may still be writing the metadata."""


class VibeOld(ManyFiles):
    name = "vibe-old"
    version = 1
    files = ("session_*/messages.jsonl", "agents/*/messages.jsonl")
    companion_names: tuple[str, ...] = ("meta.json",)
    stored_files = ("session_*/meta.json", "agents/*/meta.json")
    depth = 5

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("VIBE_HOME"), home / ".vibe") / "logs" / "session"

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        return text(first, "role") in _ROLES and isinstance(first.get("content"), str | list) and bool(text(first, "message_id"))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        if not any(text(line.value, "role") in _ROLES for line in json_lines(path)):
            raise UsageError(f"{str(path)!r} is not a Mistral Vibe session: no line has a role.")
        raw, about = _about(path.with_name("meta.json"))
        if not raw and path.name == _MESSAGES and time.time() - path.stat().st_mtime < _YOUNG:
            raise UsageError(f"{str(path)!r} has no 'meta.json' yet, which contains the session id.", fix="Import it again in a minute.")
        parent = text(about, "parent_session_id") or None
        is_agent = path.parent.parent.name == "agents"
        id = text(about, "session_id") or path.parent.name
        above, copied_from = (parent, None) if is_agent else (None, parent)
        started_at = milliseconds(about, "start_time")
        yield ImportedConversation(id, entries_of(_records(path, raw, about)), above, copied_from=copied_from, started_at=started_at)


def _about(path: Path) -> tuple[bytes, JsonObject]:
    """Return the session's metadata and its bytes, or empty values if the metadata can't be read."""
    try:
        raw = read_document(path)
        return raw, obj(parse_json(raw))
    except (UsageError, ValueError):
        return b"", {}


def _records(path: Path, raw: bytes, about: JsonObject) -> Records:
    yield ImportedFacts(
        title=text(about, "title"),
        directory=text(about, "environment", "working_directory"),
        agent="vibe",
        model=text(about, "config", "active_model"),
        created_at=milliseconds(about, "start_time"),
        updated_at=milliseconds(about, "end_time"),
    )
    totals = _totals(about)
    if raw and not totals:
        yield ImportedRecord(raw, about)
    for line in json_lines(path):
        if line.value is None or text(line.value, "role") not in _ROLES:
            yield ImportedRecord(line.raw, line.value, line.problem or f"line {line.number} has an unknown role")
        elif text(line.value, "role") == "assistant" and totals:
            yield _message(line, line.value, about, raw, totals)
            totals = {}
        else:
            yield _message(line, line.value, about)


def _totals(about: JsonObject) -> JsonObject:
    """Return the token counts of the whole session as fields of a step."""
    counts = (whole_number(about, "stats", f"session_{name}_tokens") for name in ("prompt", "completion", "cached"))
    usage = Usage(*counts).to_json()
    if not usage:
        return {}
    cost = money(about, "stats", "session_cost")
    return {"usage": usage, TOTAL_OF: "session", **({"cost": cost} if cost else {})}


def _message(line: Line, value: JsonObject, about: JsonObject, raw: bytes = b"", totals: JsonObject | None = None) -> SessionRecord:
    """Convert a message. `raw` contains the metadata with the totals, which grow with the session."""
    id = text(value, "message_id") or str(line.number)
    identity = f"vibe:{text(value, 'message_id')}" if text(value, "message_id") else ""
    at = milliseconds(about, "start_time") if line.number == 1 else 0
    match value["role"]:
        case "tool":
            output = Output(text(value, "tool_call_id"), value.get("content"), name=text(value, "name"))
            return SessionRecord(id, "assistant", line.raw, outputs=(output,))
        case "assistant":
            thoughts = text(value, "reasoning_content")
            parts = [
                *([reasoning(thoughts)] if thoughts else []),
                *_content(value.get("content")),
                *map(_call, objects(value, "tool_calls")),
            ]
            facts = step(text(about, "config", "active_model")) | (totals or {})
            return SessionRecord(id, "assistant", line.raw + raw, tuple(parts), step=facts or {"model": ""}, identity=identity)
        case role:
            kind = "system" if role == "system" or flag(value, "injected") else "user"
            return SessionRecord(id, kind, line.raw, tuple(_content(value.get("content"))), at=at, identity=identity)


def _call(call: JsonObject) -> Part:
    return tool_call(text(call, "id"), text(call, "function", "name"), json_value(obj(call, "function").get("arguments")))


def _content(content: Json) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield text_part(content)
        return
    for block in items({"content": content}, "content"):
        known = isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
        yield text_part(text(block, "text")) if known else {"type": "data-block", "data": block}
