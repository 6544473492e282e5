"""The format `role-jsonl`: a header for each conversation, then one line of JSON per message.

{"format": "role-jsonl", "id": "c1", "title": "Greetings"}
{"id": "m1", "role": "user", "content": "hello", "at": 1700000000000}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from moot.errors import UsageError
from moot.types.canonical import JsonObject, dumps, loads_object
from moot.types.format import (
    Entry,
    ExportedConversation,
    ExportFile,
    Fidelity,
    ImportedConversation,
    ImportedFacts,
    ImportedMessage,
    ImportedRecord,
)
from moot.types.message import Part, Role, is_tool, text_of, text_part

MARK = "role-jsonl"
ROLES = ("system", "user", "assistant")


class RoleJsonl:
    """A complete format: `sniff`, `read` and `write`, all pure. `read` and `write` report what they preserve."""

    name = MARK
    version = 1
    suffix = ".jsonl"

    def sniff(self, path: Path, head: bytes) -> bool:
        return _is_head(_object(head.partition(b"\n")[0]))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        head: JsonObject | None = None
        raws: list[bytes] = []
        with path.open("rb") as file:
            for line in file:
                value = _object(line)
                if _is_head(value):
                    if head is not None:
                        yield _conversation(head, raws)
                    head, raws = value, []
                if head is None:
                    raise UsageError(f"{str(path)!r} is not a {MARK} file: its first line has no format")
                raws.append(line)
        if head is None:
            raise UsageError(f"{str(path)!r} is empty")
        yield _conversation(head, raws)

    def write(self, exported: ExportedConversation) -> ExportFile:
        kept, approximated, lost = Counter[str](), Counter[str](), Counter[str]()
        lines = [dumps({"format": MARK, "id": exported.conversation.id, "title": exported.conversation.title})]
        for message in exported.messages:
            line: JsonObject = {"id": message.id, "role": message.role, "content": text_of(message.parts), "at": message.created_at}
            kept["messages"] += 1
            calls = [part for part in message.parts if is_tool(part)]
            if calls:  # the format can represent calls, but not their outputs
                line["calls"] = [str(part.get("type", "")).removeprefix("tool-") for part in calls]
                approximated["tool calls"] += len(calls)
            lost.update(_lost(part) for part in message.parts if not is_tool(part) and part.get("type") not in ("text", "step-start"))
            lines.append(dumps(line))
        return ExportFile(b"".join(line + b"\n" for line in lines), Fidelity(kept, approximated, lost))


def _conversation(head: JsonObject, raws: list[bytes]) -> ImportedConversation:
    entries: list[Entry] = []
    kept, lost = Counter[str](), Counter[str]()
    last: str | None = None
    seen: set[str] = set()
    for number, raw in enumerate(raws):
        value = _object(raw)
        message = None if value is None else _message(value, number, last, raw, seen)
        if message is not None:
            entries.append(message)
            last = message.source_id
            seen.add(last)
            kept["messages"] += 1
        else:
            entries.append(ImportedRecord(raw, value, f"line {number + 1} is not a message" if number else ""))
            if number:  # the first is the head
                lost["records"] += 1
    facts = ImportedFacts(Fidelity(kept, {}, lost), title=str(head.get("title", "")))
    return ImportedConversation(str(head.get("id", "")), (*entries, facts))


def _message(value: JsonObject, number: int, last: str | None, raw: bytes, seen: set[str]) -> ImportedMessage | None:
    role, content, at, id = value.get("role"), value.get("content"), value.get("at"), value.get("id")
    if role not in ROLES or not isinstance(content, str):
        return None
    parts: tuple[Part, ...] = (text_part(content),) if content else ()
    source_id = id if isinstance(id, str) and id and id not in seen else f"line-{number}"
    return ImportedMessage(cast("Role", role), parts, source_id, raw, last, at if type(at) is int else 0)


def _object(line: bytes) -> JsonObject | None:
    try:
        return loads_object(line)
    except ValueError:
        return None


def _is_head(value: JsonObject | None) -> bool:
    return value is not None and value.get("format") == MARK


def _lost(part: Part) -> str:
    return {"reasoning": "reasoning", "file": "files"}.get(str(part.get("type")), "other parts")
