"""The format `vscode-copilot`: chats of VS Code with GitHub Copilot, `chatSessions/ID.json` or `ID.jsonl` in the storage of a workspace.

A `.jsonl` file is a log of changes to the document in its first line: `kind` 1 sets a value, 2 appends to an array, 3 deletes a value, and
`k` is the path. An append with `i` first removes everything from this index on. Reference:
`src/vs/workbench/contrib/chat/common/model/{objectMutationLog,chatSessionOperationLog}.ts` of https://github.com/microsoft/vscode.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from moot.errors import UsageError
from moot.formats.editors.folders import path_of, user_folders, workspace_folder
from moot.formats.kit.bases import ManyFiles, first_object
from moot.formats.kit.documents import Line, json_lines
from moot.formats.kit.fields import flag, items, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.files import read_head
from moot.formats.kit.json import array_items, json_container, load_document, member, partial_document
from moot.formats.kit.records import Output, Records, SessionRecord, detect_media_type, entries_of, file_of, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_SET, _PUSH, _DELETE = 1, 2, 3
_BOOKKEEPING = frozenset({"prepareToolInvocation", "undoStop", "codeblockUri", "mcpServersStarting"})
"""Kinds of response items that have no content."""
_Container: TypeAlias = dict[str, Json] | list[Json]


class VSCodeCopilot(ManyFiles):
    name = "vscode-copilot"
    version = 2
    files = ("chatSessions/*.json", "chatSessions/*.jsonl", "emptyWindowChatSessions/*.json", "emptyWindowChatSessions/*.jsonl")

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        for user in user_folders(home, environ):
            yield from sorted((user / "workspaceStorage").glob("*/chatSessions"))  # other files there belong to other programs
            yield user / "globalStorage" / "emptyWindowChatSessions"

    def neighbors(self, place: Path) -> Iterator[Path]:
        if place.name == "emptyWindowChatSessions":
            workspaces = place.parent.parent / "workspaceStorage" / "*"
            yield from (workspaces / "chatSessions", workspaces / "workspace.json")

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the chats. A newer version keeps the old `.json` next to the `.jsonl` that it was converted to."""
        yield from (path for path in super().sources(folder) if path.suffix == ".jsonl" or not path.with_suffix(".jsonl").exists())

    def is_own(self, path: Path, head: bytes) -> bool:
        first = first_object(head)
        if whole_number(first, "kind") == 0 and (document := obj(first, "v")):
            return bool(text(document, "sessionId")) and isinstance(document.get("requests"), list)
        found = partial_document(head, "v") if head.startswith(b'{"kind":0,') else partial_document(head)
        return "requests" in found and bool({"sessionId", "responderUsername"}.intersection(found.names()))

    def knows_record(self, body: JsonObject) -> bool:
        is_change = whole_number(body, "kind") in (0, _SET, _PUSH, _DELETE) and bool({"k", "v"} & body.keys())
        return is_change or ("message" in body and "response" in body)  # checked when it is read

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        log = _Log()
        head = read_head(path)
        is_log = whole_number(first_object(head), "kind") is not None or head.startswith(b'{"kind":')
        records = list(log.lines(path) if is_log else log.document(path))
        if not log.about and not log.requests:
            raise UsageError(f"{str(path)!r} is not a VS Code chat: it has no requests.")
        started = milliseconds(log.about, "creationDate")
        entries = entries_of(_records(path, log, records))
        yield ImportedConversation(text(log.about, "sessionId") or path.stem, entries, started_at=started)


@dataclass(slots=True)
class _Log:
    """A chat, with all changes in its log applied."""

    about: JsonObject = field(default_factory=dict[str, Json])
    """The document. Its `requests` are the same objects as in `requests`."""
    requests: list[Json] = field(default_factory=list[Json])
    raws: list[list[bytes]] = field(default_factory=list[list[bytes]])
    """For each request, the bytes from which it was read."""

    def document(self, path: Path) -> Iterator[ImportedRecord]:
        """Read a `.json` file."""
        found = load_document(path)
        self.about = {name: found.value(name) for name in found.names() if name != "requests"}
        if "requests" not in found:
            yield ImportedRecord(b"", problem="'requests' contains no messages")
        for element in found.elements("requests"):
            if element.value is None or element.problem:
                yield ImportedRecord(element.raw, element.value, element.problem or f"request {element.number} is not an object")
            else:
                self.requests.append(element.value)
                self.raws.append([element.raw])
        begin = found.data.find(found.raw("requests")) if "requests" in found else 0
        yield ImportedRecord(found.data[:begin] + found.data[begin + len(found.raw("requests")) :], self.about)

    def lines(self, path: Path) -> Iterator[ImportedRecord]:
        """Read a `.jsonl` file. Lines that belong to a request are not yielded."""
        for line in json_lines(path):
            if line.value is None:
                yield ImportedRecord(line.raw, problem=line.problem)
                continue
            number = whole_number(line.value, "kind")
            keys = items(line.value, "k")
            if number == 0 and isinstance(line.value.get("v"), dict):
                yield self._start(line, obj(line.value, "v"))
            elif number not in (_SET, _PUSH, _DELETE) or not keys or not self._change(line.value, keys, number):
                yield ImportedRecord(line.raw, line.value, f"line {line.number} is not a change of this chat")
            elif not self._belongs_to_request(line, keys):
                yield ImportedRecord(line.raw, line.value)

    def _start(self, line: Line, document: JsonObject) -> ImportedRecord:
        self.about = document
        outer = member(line.raw, "v")
        inner = member(line.raw, "requests", outer.begin) if outer is not None else None
        self._requests()
        self.raws = _slices(line.raw[inner.begin : inner.end], len(self.requests)) if inner is not None else []
        raw = line.raw if inner is None else line.raw[: inner.begin] + line.raw[inner.end :]
        problem = "" if isinstance(document.get("requests"), list) else f"line {line.number}: 'requests' contains no messages"
        return ImportedRecord(raw, {"kind": 0, "v": {name: one for name, one in document.items() if name != "requests"}}, problem)

    def _requests(self) -> None:
        found = self.about.get("requests")
        self.requests = found if isinstance(found, list) else []

    def _change(self, change: JsonObject, keys: list[Json], number: int) -> bool:
        """Apply a change. Return False if it doesn't fit the document."""
        if not self.about or change.keys() - {"kind", "k", "v", "i"} or not all(isinstance(key, str) or type(key) is int for key in keys):
            return False
        holder: Json = self.about
        for key in keys[:-1]:
            holder = _get(holder, key)
        if not isinstance(holder, dict | list):
            return False
        if number == _PUSH:
            array, start = _get(holder, keys[-1]), whole_number(change, "i")
            pushed = change.get("v", [])
            if not isinstance(array, list | None) or not isinstance(pushed, list):
                return False
            return _put(holder, keys[-1], [*(array or [])[:start], *pushed])
        return _remove(holder, keys[-1]) if number == _DELETE else "v" in change and _put(holder, keys[-1], change["v"])

    def _belongs_to_request(self, line: Line, keys: list[Json]) -> bool:
        """Add the line to the bytes of the request that it changed. Return False if the line did not change a request."""
        self._requests()
        if keys[0] != "requests":
            return False
        if len(keys) == 1:
            span = member(line.raw, "v")
            start = whole_number(line.value, "i") if whole_number(line.value, "kind") == _PUSH else 0
            kept = self.raws[:start]
            more = _slices(line.raw[span.begin : span.end], len(self.requests) - len(kept)) if span is not None else []
            self.raws = kept + more
            return bool(more)
        place = keys[1]
        if type(place) is not int or not 0 <= place < len(self.raws):
            return False
        self.raws[place].append(line.raw)
        return True


def _slices(data: bytes, count: int) -> list[list[bytes]]:
    """Return the bytes of each element of an array, which has `count` elements."""
    found = [[piece.raw] for piece in array_items([data])]
    return found[:count] + [[data] for _ in range(count - len(found))]


def _get(holder: Json, key: Json) -> Json:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    return holder[key] if isinstance(holder, list) and type(key) is int and 0 <= key < len(holder) else None


def _put(holder: _Container, key: Json, value: Json) -> bool:
    if isinstance(holder, dict) and isinstance(key, str):
        holder[key] = value
        return True
    if isinstance(holder, list) and type(key) is int and 0 <= key <= len(holder):
        holder[key : key + 1] = [value]
        return True
    return False


def _remove(holder: _Container, key: Json) -> bool:
    if isinstance(holder, dict) and isinstance(key, str):
        holder.pop(key, None)
        return True
    return _put(holder, key, None)


def _records(path: Path, log: _Log, records: list[ImportedRecord]) -> Records:
    yield from records
    yield ImportedFacts(
        title=text(log.about, "customTitle"),
        directory=workspace_folder(path.parent.parent) if path.parent.name == "chatSessions" else "",
        agent="vscode-copilot",
        created_at=milliseconds(log.about, "creationDate"),
        updated_at=milliseconds(log.about, "lastMessageDate"),
    )
    known: dict[str, Json] = {}
    for number, (request, raws) in enumerate(zip(log.requests, log.raws, strict=False), 1):
        raw = b"".join(raws)
        said = text(request, "message", "text") or text(request, "message")
        if not isinstance(request, dict) or not said or not isinstance(request.get("response"), list):
            yield ImportedRecord(raw, request, f"request {number} has an unknown shape")
        elif (id := text(request, "requestId") or str(number)) in known and known[id] == request:
            yield ImportedRecord(raw, request)  # the program has stored it twice
        else:
            yield from _turn(id, request, said, raws, is_counted=id not in known)
            known[id] = request


def _turn(id: str, request: JsonObject, said: str, raws: list[bytes], *, is_counted: bool) -> Records:
    """Yield a prompt and its answer. If another request has the same id, tokens are counted only once."""
    at = milliseconds(request, "timestamp")
    attached = map(_attachment, items(request, "variableData", "variables"))
    yield SessionRecord(id, "user", raws[0], (text_part(said), *attached), at=at)
    answer = _Answer(obj(request, "result", "metadata"))
    for item in items(request, "response"):
        answer.take(item)
    facts = _step(request) if is_counted else {}
    last = len(answer.steps) - 1
    for number, parts in enumerate(answer.steps):
        outputs = tuple(answer.outputs) if number == last else ()
        raw = b"" if number else b"".join(raws)
        name = f"{id}.answer.{number}" if number else f"{id}.answer"
        yield SessionRecord(name, "assistant", raw, tuple(parts), outputs, at=at, step=facts if number == last else None)
    if facts.get("usage"):  # the counts are those of the last model call, if there were several
        yield ImportedFacts(Fidelity({"usage": -1}, {"usage": 1}))


def _attachment(entry: Json) -> Part:
    """Return a picture, or a file or another piece of context that the user attached to a prompt."""
    value = obj(entry, "value")
    if text(entry, "kind") == "image":
        with suppress(ValueError, TypeError):
            older = [value.get(str(at)) for at in range(len(value))]  # older versions store an object with a number for each byte
            data = b64decode(text(value, "$base64"), validate=True) or bytes(one for one in older if isinstance(one, int))
            media_type = text(entry, "mimeType") or detect_media_type(data)
            if data and media_type.startswith("image/"):
                return file_of(data, media_type, text(entry, "name"))
    return {"type": "data-context", "data": entry}


def _step(request: JsonObject) -> JsonObject:
    metadata = obj(request, "result", "metadata")
    model = text(metadata, "resolvedModel") or text(request, "modelId").removeprefix("copilot/")
    usage = Usage(whole_number(metadata, "promptTokens"), whole_number(metadata, "outputTokens"))
    return step(
        model,
        "copilot" if model else "",
        usage=usage.to_json(),
        ms=whole_number(request, "result", "timings", "totalElapsed"),
        error=text(request, "result", "errorDetails", "message") or None,
        finish_reason="other" if flag(request, "isCanceled") else None,
    )


class _Answer:
    """The parts of an answer, divided into model calls. Text or reasoning after a tool call starts a new model call."""

    def __init__(self, metadata: JsonObject) -> None:
        self.steps: list[list[Part]] = [[]]
        self.outputs: list[Output] = []
        rounds = (call for one in objects(metadata, "toolCallRounds") for call in objects(one, "toolCalls"))
        self._calls = {text(one, "id"): one for one in rounds}
        self._results = obj(metadata, "toolCallResults")

    def take(self, item: Json) -> None:
        """Add an item of the response. Items with an unknown structure are kept unchanged in a part."""
        kind, value = text(item, "kind"), obj(item).get("value")
        words = value if isinstance(value, str) else text(value, "value")
        if not isinstance(item, dict):
            self._add({"type": "data-block", "data": item})
        elif "kind" not in item and words:
            self._say(words)
        elif kind == "inlineReference" and (name := _reference(item)):
            self._say(f"`{name}`")
        elif kind == "thinking" and (words or isinstance(value, list)):
            thoughts = words or "\n\n".join(str(one) for one in items(value) if isinstance(one, str))
            self._add(reasoning(thoughts))
        elif kind == "toolInvocationSerialized" and text(item, "toolCallId"):
            self._call(item)
        elif kind not in _BOOKKEEPING and not (kind in ("", "thinking") and words == value == ""):
            self._add({"type": "data-block", "data": item})

    def _say(self, words: str) -> None:
        parts = self.steps[-1]
        if parts and parts[-1]["type"] == "text":  # text is divided by references and bookkeeping
            parts[-1] = text_part(f"{parts[-1]['text']}{words}")
        else:
            self._add(text_part(words))

    def _add(self, part: Part) -> None:
        parts = self.steps[-1]
        if parts and parts[-1]["type"] == "dynamic-tool" and part["type"] in ("text", "reasoning"):
            self.steps.append([])
        self.steps[-1].append(part)

    def _call(self, item: JsonObject) -> None:
        id = text(item, "toolCallId")
        own = id.partition("__vscode")[0]
        called = self._calls.get(own, {})
        details = obj(item, "resultDetails")
        shown = json_container(details.get("input"))
        arguments = json_container(called.get("arguments")) if called.get("arguments") is not None else shown
        name = text(called, "name") or text(item, "toolId")
        metadata = {name: one for name, one in item.items() if name not in ("kind", "toolCallId", "toolId")}
        part = tool_call(id, name, arguments if arguments is not None else item.get("toolSpecificData"))
        self._add({**part, "toolMetadata": {"vscode": metadata}})
        output = _content(self._results.get(own)) or _content(item.get("resultDetails")) or _words(item.get("pastTenseMessage"))
        confirmed = item.get("isConfirmed")
        denied = confirmed is False or obj(confirmed).get("type") == 0
        if flag(item, "isComplete") and (output or denied):
            self.outputs.append(Output(id, output, flag(details, "isError"), denied=denied))


def _content(result: Json) -> str:
    """Return the text in a tool's result."""
    pieces = [*objects(result, "content"), *objects(result, "output")]
    return "\n".join(text(piece, "value") for piece in pieces if text(piece, "value"))


def _words(message: Json) -> str:
    return message if isinstance(message, str) else text(message, "value")


def _reference(item: JsonObject) -> str:
    """Return the name of a file or symbol that is part of the text."""
    target = obj(item, "inlineReference")
    found = text(item, "name") or text(target, "name")
    uri = obj(target, "uri") or target
    path = text(uri, "fsPath") or text(uri, "path") or path_of(text(uri, "external"))
    return found or PurePosixPath(path).name
