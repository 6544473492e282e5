"""Fold chunks into message parts, as the AI SDK's client (version 7) does, but resumably and without exceptions.

Where that client throws an exception, the fold continues: a delta for an unknown id opens a part, and chunks of unknown tool calls or
kinds are ignored. An open part has the state `streaming` and keeps its `id`, so a fold can continue from stored parts:
`fold_parts(fold_parts(p, a), b) == fold_parts(p, a + b)`. When a text part ends, its `id` is removed, as in clients; a reasoning part
keeps its `id`. If a part starts with the id of an open part, the open part ends. If two calls have the same id, chunks apply to the newer
call.

An abandoned attempt is followed by a `data-attempt` part with `abandoned: true`. The parts of the attempt are those between the step's
start, or its previous `data-attempt`, and this part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from moot.convert import tool_parts
from moot.convert.tool_parts import NoValue, partial_json
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.message import Part, is_tool

ATTEMPT = "data-attempt"

_FILES = ("mediaType", "url", "providerMetadata")
_PLAIN: dict[str, tuple[str, ...]] = {
    "file": _FILES,
    "reasoning-file": _FILES,
    "source-url": ("sourceId", "url", "title", "providerMetadata"),
    "source-document": ("sourceId", "mediaType", "title", "filename", "providerMetadata"),
    "custom": ("kind", "providerMetadata"),
    "steering-message": ("id", "parts"),
}
"""Types of chunks that become parts, each with the fields that are kept in the part."""


def fold_parts(parts: Sequence[Part], chunks: Iterable[Chunk]) -> tuple[Part, ...]:
    """Return the parts of a message after these chunks have been applied. The given parts are not modified."""
    folder = Folder(parts)
    for chunk in chunks:
        folder.feed(chunk)
    return folder.parts()


def merge(base: JsonObject, over: JsonObject) -> JsonObject:
    """Merge metadata: objects are merged at every depth, everything else is replaced."""
    merged = dict(base)
    for name, value in over.items():
        known = merged.get(name)
        merged[name] = merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def abandoned(parts: Sequence[Part]) -> frozenset[int]:
    """Return the indexes of parts that belong to abandoned attempts, including their `data-attempt` parts."""
    found: set[int] = set()
    begin = 0
    for index, part in enumerate(parts):
        if part.get("type") == "step-start":
            begin = index + 1
        elif part.get("type") == ATTEMPT:
            data = part.get("data")
            if isinstance(data, dict) and data.get("abandoned") is True:
                found.update(range(begin, index + 1))
            begin = index + 1
    return frozenset(found)


def in_history(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return all parts except those of abandoned attempts."""
    dropped = abandoned(parts)
    return tuple(part for index, part in enumerate(parts) if index not in dropped)


class _Open:
    """An open part: its index, and the deltas that have not been added to the part yet."""

    __slots__ = ("index", "pieces")

    def __init__(self, index: int) -> None:
        self.index = index
        self.pieces: list[str] = []


class _Handler(Protocol):
    def __call__(self, chunk: Chunk, /) -> object: ...


class Folder:
    """A fold to which chunks are passed one by one. Each delta takes constant time; deltas are joined when the parts are read."""

    def __init__(self, parts: Sequence[Part] = (), metadata: JsonObject | None = None) -> None:
        self._parts: list[Part] = list(parts)
        self._metadata: JsonObject = metadata or {}
        self._text: dict[str, _Open] = {}
        self._reasoning: dict[str, _Open] = {}
        self._tool_input: dict[str, _Open] = {}
        self._step = 0
        self._recall()
        self._handlers: dict[str, _Handler] = {
            "text-delta": lambda chunk: self._delta("text", self._text, chunk),
            "reasoning-delta": lambda chunk: self._delta("reasoning", self._reasoning, chunk),
            "tool-input-delta": self._tool_delta,
            "text-start": lambda chunk: self._begin("text", self._text, chunk),
            "text-end": lambda chunk: self._end("text", self._text, chunk),
            "reasoning-start": lambda chunk: self._begin("reasoning", self._reasoning, chunk),
            "reasoning-end": lambda chunk: self._end("reasoning", self._reasoning, chunk),
            "tool-input-start": lambda chunk: self._input(chunk, tool_parts.input_start),
            "tool-input-available": lambda chunk: self._input(chunk, tool_parts.input_available),
            "tool-input-error": lambda chunk: self._input(chunk, tool_parts.input_error),
            "tool-approval-response": self._approval_response,
            "start-step": self._start_step,
            "reset-step": self._reset_step,
            **dict.fromkeys(("start", "finish", "message-metadata"), self._merge_metadata),
            **dict.fromkeys(_PLAIN, self._plain),
            **dict.fromkeys(tool_parts.OUTPUTS, self._output),
        }

    def feed(self, chunk: Chunk) -> None:
        """Fold the next chunk, which must not be modified afterwards. No content of a chunk causes an exception."""
        kind = chunk.get("type")
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(chunk)
        elif isinstance(kind, str) and kind.startswith("data-") and "data" in chunk:
            self._data(chunk)

    def feed_all(self, chunks: tuple[Chunk, ...]) -> None:
        """Fold several chunks. Deltas of an open text have a fast path, because nearly all chunks are such deltas."""
        for chunk in chunks:
            # exactly three fields: type, id, delta
            if len(chunk) == 3 and chunk.get("type") == "text-delta":
                id, delta = chunk.get("id"), chunk.get("delta")
                if isinstance(id, str) and isinstance(delta, str) and (open_part := self._text.get(id)) is not None:
                    open_part.pieces.append(delta)
                    continue
            self.feed(chunk)

    def parts(self) -> tuple[Part, ...]:
        """Return the parts so far. Later chunks don't modify them."""
        for open_parts in (self._text, self._reasoning, self._tool_input):
            for open_part in open_parts.values():
                self._settle(open_part)
        return tuple(self._parts)

    def metadata(self) -> JsonObject:
        """Return the message's metadata, merged from the chunks `start`, `message-metadata` and `finish`."""
        return self._metadata

    def _recall(self) -> None:
        """Find the open parts and the start of the current step."""
        self._text.clear()
        self._reasoning.clear()
        self._tool_input.clear()
        self._step = 0
        for index, part in enumerate(self._parts):
            kind, state = part.get("type"), part.get("state")
            if kind == "step-start":
                self._step = index + 1
            elif state == "streaming" and kind in ("text", "reasoning") and isinstance(id := part.get("id"), str):
                (self._text if kind == "text" else self._reasoning)[id] = _Open(index)
            elif state == "input-streaming" and isinstance(id := part.get("toolCallId"), str):
                self._tool_input[id] = _Open(index)
            elif is_tool(part):
                self._tool_input.pop(str(part.get("toolCallId")), None)

    def _settle(self, open_part: _Open) -> None:
        """Add the collected deltas to their part."""
        if not open_part.pieces:
            return
        part = self._parts[open_part.index]
        added = "".join(open_part.pieces)
        open_part.pieces.clear()
        if is_tool(part):
            self._parts[open_part.index] = _with_raw_input(part, f"{part.get('rawInput', '')}{added}")
        else:
            self._parts[open_part.index] = {**part, "text": f"{part.get('text', '')}{added}"}

    def _delta(self, kind: str, open_parts: dict[str, _Open], chunk: Chunk) -> None:
        id, delta = chunk.get("id"), chunk.get("delta")
        if not isinstance(id, str) or not isinstance(delta, str):
            return
        open_part = open_parts.get(id)
        if open_part is None:
            open_part = self._begin(kind, open_parts, {"type": kind, "id": id})
        open_part.pieces.append(delta)
        if chunk.get("providerMetadata") is not None:
            self._parts[open_part.index] = {**self._parts[open_part.index], "providerMetadata": chunk["providerMetadata"]}

    def _begin(self, kind: str, open_parts: dict[str, _Open], chunk: Chunk) -> _Open:
        id = str(chunk.get("id", ""))
        if id in open_parts:
            self._end(kind, open_parts, {"id": id})
        part: Part = {"type": kind, "id": id, "text": "", "state": "streaming"}
        if chunk.get("providerMetadata") is not None:
            part["providerMetadata"] = chunk["providerMetadata"]
        open_parts[id] = open_part = _Open(len(self._parts))
        self._parts.append(part)
        return open_part

    def _end(self, kind: str, open_parts: dict[str, _Open], chunk: Chunk) -> None:
        open_part = open_parts.pop(str(chunk.get("id", "")), None)
        if open_part is None:
            return
        self._settle(open_part)
        part: Part = {**self._parts[open_part.index], "state": "done"}
        if kind == "text":
            del part["id"]
            if chunk.get("citations") is not None:
                part["citations"] = chunk["citations"]
        if chunk.get("providerMetadata") is not None:
            part["providerMetadata"] = chunk["providerMetadata"]
        self._parts[open_part.index] = part

    def _tool_delta(self, chunk: Chunk) -> None:
        id, delta = chunk.get("toolCallId"), chunk.get("inputTextDelta")
        if isinstance(id, str) and isinstance(delta, str) and (open_part := self._tool_input.get(id)) is not None:
            if not delta and not open_part.pieces and "rawInput" not in self._parts[open_part.index]:
                self._parts[open_part.index] = _with_raw_input(self._parts[open_part.index], "")
            open_part.pieces.append(delta)

    def _input(self, chunk: Chunk, change: Callable[[Part, Chunk], Part]) -> None:
        id, name = chunk.get("toolCallId"), chunk.get("toolName")
        if not isinstance(id, str) or not isinstance(name, str):
            return
        dynamic = bool(chunk.get("dynamic"))
        either = change is tool_parts.input_error  # an error finds its call by id, even if the type differs
        index = self._find(id, None if either else dynamic, self._step)
        if index is None:
            index = len(self._parts)
            self._parts.append(tool_parts.new_part(chunk, dynamic=dynamic))
        self._change(id, index, change, chunk)

    def _change(self, id: str, index: int, change: Callable[[Part, Chunk], Part], chunk: Chunk) -> None:
        """Change a tool part. If its input is still streaming, later deltas apply to the newest part of the call."""
        open_part = self._tool_input.pop(id, None)
        if open_part is not None:
            self._settle(open_part)
        self._parts[index] = change(self._parts[index], chunk)
        newest = self._find(id, None, 0)
        if newest is not None and self._parts[newest].get("state") == "input-streaming":
            self._tool_input[id] = _Open(newest)

    def _find(self, id: str, dynamic: bool | None, begin: int) -> int | None:
        """Return the index of the newest part of the call with this id, starting the search at `begin`, or None if there is none."""
        for index in range(len(self._parts) - 1, begin - 1, -1):
            part = self._parts[index]
            if part.get("toolCallId") == id and is_tool(part) and dynamic in (None, part.get("type") == "dynamic-tool"):
                return index
        return None

    def _output(self, chunk: Chunk) -> None:
        id = chunk.get("toolCallId")
        change = tool_parts.OUTPUTS[str(chunk["type"])]
        if not isinstance(id, str) or (change is tool_parts.approval_request and not isinstance(chunk.get("approvalId"), str)):
            return
        index = self._find(id, None, 0)
        if index is not None:
            self._change(id, index, change, chunk)

    def _approval_response(self, chunk: Chunk) -> None:
        if not isinstance(chunk.get("approvalId"), str) or not isinstance(chunk.get("approved"), bool):
            return
        for index, part in reversed([*enumerate(self._parts)]):
            approval = part.get("approval")
            if is_tool(part) and isinstance(approval, dict) and approval.get("id") == chunk["approvalId"]:
                self._change(str(part.get("toolCallId")), index, tool_parts.approval_response, chunk)
                return

    def _data(self, chunk: Chunk) -> None:
        if chunk.get("transient"):
            return
        kind, id = chunk["type"], chunk.get("id")
        if id is not None:
            for index, part in enumerate(self._parts):
                if part.get("type") == kind and part.get("id") == id:
                    self._parts[index] = {**part, "data": chunk["data"]}
                    return
        self._parts.append(chunk)

    def _plain(self, chunk: Chunk) -> None:
        kind = str(chunk["type"])
        part: Part = {"type": kind}
        part |= {name: chunk[name] for name in _PLAIN[kind] if chunk.get(name) is not None}
        self._parts.append(part)

    def _start_step(self, _chunk: Chunk) -> None:
        self._parts.append({"type": "step-start"})
        self._step = len(self._parts)

    def _reset_step(self, _chunk: Chunk) -> None:
        self._parts = list(self.parts()[: self._step])
        self._recall()

    def _merge_metadata(self, chunk: Chunk) -> None:
        metadata = chunk.get("messageMetadata")
        if isinstance(metadata, dict):
            self._metadata = merge(self._metadata, metadata)


def _with_raw_input(part: Part, raw: str) -> Part:
    streamed: Part = {name: value for name, value in part.items() if name != "input"}
    if part.get("inputEncoding") == "text":
        streamed["input"] = raw
    else:
        with suppress(NoValue):
            streamed["input"] = partial_json(raw)
    streamed["rawInput"] = raw
    return streamed
