"""The format `amp`: threads of Amp that were stored on the machine before they moved to its server, `~/.local/share/amp/threads/T-ID.json`.

Reference: the locations and fields documented by other programs that read the threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.anthropic import content_parts
from moot.formats.editors.folders import path_of
from moot.formats.kit.bases import ManyFiles, environment_folder
from moot.formats.kit.fields import at, milliseconds, objects, text, whole_number
from moot.formats.kit.json import Element, PartialDocument, load_document, member, partial_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, finish_reason, step, usage_without_cache
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.usage import Usage

_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


class Amp(ManyFiles):
    name = "amp"
    version = 1
    resume_command = ("amp", "threads", "continue")
    suffix = ".json"
    files = ("T-*.json",)

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share") / "amp" / "threads"

    def is_own(self, path: Path, head: bytes) -> bool:
        document = partial_document(head)
        return document.text("id").startswith("T-") and "messages" in document and "created" in document

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        document = load_document(path)
        if not document.text("id"):
            raise UsageError(f"{str(path)!r} is not an Amp thread: it has no id.")
        yield ImportedConversation(document.text("id"), entries_of(_records(document)))


def _records(document: PartialDocument) -> Records:
    trees = objects(document.value("env"), "initial", "trees")
    place = text(trees[0], "uri") if trees else ""
    yield ImportedFacts(
        title=document.text("title"),
        directory=path_of(place) if place.startswith("file:") else "",
        agent="amp",
        created_at=milliseconds({"at": document.value("created")}, "at"),
    )
    span = member(document.data, "messages")
    begin, end = (span.begin, span.end) if span is not None else (len(document.data), len(document.data))
    yield ImportedRecord(document.data[:begin] + document.data[end:], {"title": document.text("title")})
    if span is None:
        yield ImportedRecord(b"", problem="'messages' contains no messages")
    for element in document.elements("messages"):
        if element.value is None:
            yield ImportedRecord(element.raw, problem=element.problem)
        else:
            yield _message(element, element.value)


def _message(element: Element, value: JsonObject) -> SessionRecord:
    number = whole_number(value, "messageId")
    id = str(element.number if number is None else number)
    at_ = milliseconds(value, "meta", "sentAt") or milliseconds(value, "usage", "timestamp")
    blocks = objects(value, "content")
    outputs = tuple(_output(block) for block in blocks if block.get("type") == "tool_result")
    if value.get("role") == "assistant":
        parts = tuple(content_parts(value.get("content")))
        return SessionRecord(id, "assistant", element.raw, parts, at=at_, step=_step(value) or {"model": ""})
    if outputs:
        return SessionRecord(id, "assistant", element.raw, outputs=outputs, at=at_)
    return SessionRecord(id, "user", element.raw, tuple(content_parts(value.get("content"))), at=at_)


def _step(value: JsonObject) -> JsonObject:
    model = text(value, "usage", "model")
    fresh, output, read, written = (whole_number(value, "usage", name) for name in _COUNTS)
    usage = usage_without_cache(fresh, output, read, written)
    if model.startswith("gpt-"):  # these models have no cache writes: the number is fresh input, reported under a different name
        usage = Usage(usage.input, output, read)
    return step(model, usage=usage.to_json(), finish_reason=finish_reason(text(value, "state", "stopReason")))


def _output(block: JsonObject) -> Output:
    status, error = text(block, "run", "status"), at(block, "run", "error")
    result: Json = at(block, "run", "result")
    value = error if result is None and error is not None else result
    if isinstance(value, dict) and isinstance(value.get("output"), str) and value.keys() <= {"output", "exitCode"}:
        value = value["output"]
    return Output(text(block, "toolUseID"), value, status in ("error", "cancelled"))
