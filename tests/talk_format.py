"""A format for import tests: JSON lines, several of which together form one message, as agents write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moot.errors import UsageError
from moot.formats.kit.documents import json_lines
from moot.types.canonical import JsonObject
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
from moot.types.message import Part, text_part


class Talk:
    """`{"talk": ID, …}` starts a conversation; `{"id", "parent", "role", "text", …}` is a part of a message; others are records."""

    name = "talk"
    version = 1
    suffix = ".talk"

    def sniff(self, path: Path, head: bytes) -> bool:
        return head.startswith(b'{"talk"')

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        lines = json_lines(path)
        first = next(lines, None)
        if first is None or first.value is None or "talk" not in first.value:
            raise UsageError(f"{str(path)!r} holds no talk")
        yield ImportedConversation(str(first.value["talk"]), _entries(first.raw, first.value, lines), *_above(first.value))

    def write(self, exported: ExportedConversation) -> ExportFile:
        raise UsageError("talk can only be read")


def _above(head: JsonObject) -> tuple[str | None, str | None]:
    above = head.get("above")
    return (str(above), "call") if above else (None, None)


def _entries(raw: bytes, head: JsonObject, lines: Iterator[Any]) -> Iterator[Entry]:
    title, directory, agent, model = (str(head.get(name, "")) for name in ("title", "directory", "agent", "model"))
    yield ImportedFacts(title=title, directory=directory, agent=agent, model=model)
    yield ImportedRecord(raw, head)
    open_: ImportedMessage | None = None
    for line in lines:
        value = line.value
        id = value.get("id") if value is not None else None
        if open_ is not None and id == open_.source_id:
            open_ = _more(open_, line.raw, value)
            continue
        if open_ is not None:
            yield open_
            open_ = None
        if value is None:
            yield ImportedRecord(line.raw, problem=line.problem)
        elif "head" in value:
            yield ImportedRecord(line.raw, value)
            yield ImportedFacts(head=str(value["head"]))
        elif id is None:
            yield ImportedRecord(line.raw, value)
            yield ImportedFacts(directory=str(value.get("directory", "")))
        else:
            open_ = _more(ImportedMessage(value.get("role", "user"), (), str(id), b"", value.get("parent")), line.raw, value)
    if open_ is not None:
        yield open_
    yield ImportedFacts(Fidelity({"messages": 1}))


def _more(message: ImportedMessage, raw: bytes, value: JsonObject) -> ImportedMessage:
    parts: list[Part] = [*message.parts, value["part"] if isinstance(value.get("part"), dict) else text_part(str(value.get("text", "")))]
    metadata = dict(message.metadata)
    if "usage" in value:
        steps = metadata.get("steps")
        step: JsonObject = {"model": value.get("model", ""), "usage": value["usage"], "cost": value.get("cost")}
        step |= {"at": value["at"]} if steps and "at" in value else {}
        metadata |= {name: value[name] for name in ("agent", "limits") if name in value}
        metadata["steps"] = [*(steps if isinstance(steps, list) else []), step]
    at = value.get("at")
    return ImportedMessage(
        message.role,
        tuple(parts),
        message.source_id,
        message.raw + raw,
        message.parent,
        message.created_at or (at if isinstance(at, int) else 0),
        metadata,
    )


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"
