"""Snapshots as conversations. Nested tool calls become child conversations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.documents import Document, Element, document
from moot.formats._source.fields import milliseconds, objects
from moot.formats._source.turns import Turns
from moot.formats.talkcody.rows import Record, Rows
from moot.types.canonical import JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts
from moot.types.part import Part

__all__ = ["read_snapshot"]

_DEEPEST = 8
"""Maximum depth of nested tool calls."""


def read_snapshot(path: Path) -> Iterator[ImportedConversation]:
    """Read a snapshot. Raise UsageError if it is not a snapshot or has an unknown version."""
    found = document(path)
    task = Document(found.raw("task"))
    if not task.text("id") or "messages" not in found:
        raise UsageError(f"{str(path)!r} is not a snapshot of TalkCody.")
    if (version := found.text("version")) and version.partition(".")[0] != "1":
        raise UsageError(f"{str(path)!r} has the unsupported snapshot version {version!r}. Supported: 1.0.")
    yield from _conversations(found, "messages", task.text("id"), task, None, None, 0)


def _conversations(
    found: Document, name: str, id: str, task: Document, parent: str | None, call: str | None, depth: int
) -> Iterator[ImportedConversation]:
    nested: list[tuple[str, Document]] = []
    yield ImportedConversation(id, _entries(found, name, task, nested), parent, call)
    for number, (inner, holder) in enumerate(nested, 1):
        if depth < _DEEPEST:
            yield from _conversations(holder, "nestedTools", f"{id}/{inner or number}", Document(b""), id, inner or None, depth + 1)


def _entries(found: Document, name: str, task: Document, nested: list[tuple[str, Document]]) -> Iterator[Entry]:
    turns = Turns()
    reader = Rows(turns)
    for element in found.elements(name):
        if element.value is None:
            yield turns.broken(element.raw, element.problem, lead=element.lead)
            continue
        yield from reader.take(_record(element, element.value))
        if element.value.get("nestedTools"):
            nested.append((_call(element.value), Document(element.raw)))
    yield from reader.end()
    if not found.whole:
        yield turns.broken(b"", "the file is truncated")
    turns.tally.kept["titles"] += bool(task.text("title"))
    turns.tally.kept = +turns.tally.kept
    yield ImportedFacts(
        turns.tally.fidelity(), title=task.text("title"), model=task.text("model"), created_at=milliseconds(task.value("createdAt"))
    )


def _record(element: Element, value: JsonObject) -> Record:
    files = [part for one in objects(value.get("attachments")) if (part := _file(one)) is not None]
    return Record(
        str(value.get("id") or element.number),
        str(value.get("role")),
        value.get("content"),
        element.raw,
        element.lead,
        milliseconds(value.get("timestamp")),
        files=tuple(files),
    )


def _call(value: JsonObject) -> str:
    return next((str(one.get("toolCallId") or "") for one in objects(value.get("content"))), "")


def _file(value: JsonObject) -> Part | None:
    kind, url, preview = str(value.get("mimeType") or "application/octet-stream"), value.get("url"), value.get("preview")
    if not isinstance(url, str) or not url.startswith(("data:", "https:", "http:")):
        if not isinstance(preview, str) or not preview:
            return None
        url = preview if preview.startswith("data:") else f"data:{kind};base64,{preview}"
    return {"type": "file", "mediaType": kind, "url": url, "filename": str(value.get("filename") or "")}
