"""The chunk writer shared by all translators: text, reasoning and tool calls, with one open part at a time and unique call ids.

`Parts` is the part of a translator's state that is needed for writing. A `Writer` handles one raw event: it is created from the `Parts`
before the event, and its field `parts` is the state after the event.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Literal, NamedTuple

from moot.types import canonical
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, ExchangeOptions

Rope = tuple[str, ...]
Spoken = Literal["text", "reasoning"]

UNNAMED = "unknown"
"""Tool name used for calls without a name."""

UNSETTLED: dict[Ended, str] = {
    "eof": "the agent ended without an output of this call",
    "cut": "the agent was cut off before this call had an output",
    "cancelled": "the run was stopped before this call had an output",
}
"""Error texts for calls that an outside agent left without an output, keyed by how the stream ended."""


def join(rope: Rope, piece: str) -> Rope:
    """Append a piece to the rope. Neighboring pieces are merged,
    so that each piece is copied only log(n) times and the rope stays short.
    """
    kept = len(rope)
    while kept and len(rope[kept - 1]) <= 2 * len(piece):
        kept -= 1
        piece = rope[kept] + piece
    return (*rope[:kept], piece)


class Call(NamedTuple):
    """A tool call whose input is arriving."""

    key: int
    """The vendor's index of the call."""
    id: str
    vendor_id: str
    """The vendor's id of the call; empty if the vendor sent none."""
    name: str
    text: Rope = ()
    begun: bool = False
    done: bool = False
    free: bool = False
    """True if the input is plain text, not JSON."""
    executed: bool = False
    """True if the vendor runs the call."""
    dynamic: bool = False
    """True if the tool is not one that moot offered."""
    metadata: JsonObject | None = None


class Parts(NamedTuple):
    prefix: str
    step: int
    used: tuple[str, ...]
    """Tool call ids already in the message."""
    next: int = 0
    kind: str = ""
    """Kind of the open part, text or reasoning; empty if none is open."""
    id: str = ""
    calls: tuple[Call, ...] = ()


def free_id(first: str, used: Container[str], stem: str, number: int) -> str:
    """Return an id that is not used yet: `first`, or else `<stem>.<number>` with `number` increased until the id is unused."""
    id = first
    while id in used:
        id, number = f"{stem}.{number}", number + 1
    return id


def begin(options: ExchangeOptions) -> Parts:
    """Return the initial state for an exchange, with no open part."""
    return Parts(options.prefix, options.step, options.tool_call_ids)


def read_arguments(text: str) -> JsonObject:
    """Parse a call's arguments with exact integers. Empty text means no arguments. Raise ValueError if they are not a JSON object."""
    if not text.strip():
        return {}
    value = canonical.loads_exact(text)
    if not isinstance(value, dict):
        raise ValueError("the arguments are no JSON object")
    canonical.dumps(value)
    if "\\u" in text:  # lone surrogates can't be stored: approvals, hashes and tools all use U+FFFD instead
        clean = canonical.loads_exact(canonical.dumps(value))
        return clean if isinstance(clean, dict) else value
    return value


class Writer:
    """Writer of the chunks for one raw event. The results are in `chunks` and `parts`."""

    __slots__ = ("_parts", "chunks")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.chunks: list[Chunk] = []

    @property
    def parts(self) -> Parts:
        return self._parts

    def begin(self, kind: Spoken, metadata: JsonObject | None = None) -> None:
        """Close the open part, if any, and open a new one."""
        self.end()
        parts = self._parts
        id = f"{parts.prefix}.{parts.next}"
        self.chunks.append(_with({"type": f"{kind}-start", "id": id}, metadata))
        self._parts = parts._replace(next=parts.next + 1, kind=kind, id=id)

    def say(self, kind: Spoken, text: str, metadata: JsonObject | None = None) -> None:
        """Append text to the open part of this kind, or open such a part with the metadata."""
        if self._parts.kind != kind:
            self.begin(kind, metadata)
        if text:
            self.chunks.append({"type": f"{kind}-delta", "id": self._parts.id, "delta": text})

    def end(self, metadata: JsonObject | None = None) -> None:
        """Close the open part, if any."""
        parts = self._parts
        if parts.kind:
            self.chunks.append(_with({"type": f"{parts.kind}-end", "id": parts.id}, metadata))
            self._parts = parts._replace(kind="", id="")

    def part_id(self) -> str:
        """Return a new id for something that is not an open part, such as a source."""
        parts = self._parts
        self._parts = parts._replace(next=parts.next + 1)
        return f"{parts.prefix}.{parts.next}"

    def find(self, key: int) -> Call | None:
        """Return the newest call with this index, or None if there is none."""
        return next((call for call in reversed(self._parts.calls) if call.key == key), None)

    def call(
        self,
        key: int,
        vendor_id: str,
        name: str,
        *,
        free: bool = False,
        executed: bool = False,
        dynamic: bool = False,
        metadata: JsonObject | None = None,
    ) -> Call:
        """Add a call. Its first chunk is written when its name is known."""
        self.end()
        parts = self._parts
        id = _new_id(parts, vendor_id)
        call = Call(key, id, vendor_id, name, free=free, executed=executed, dynamic=dynamic, metadata=metadata)
        self._parts = parts._replace(calls=(*parts.calls, call), used=(*parts.used, id))
        return self._start(call) if name else call

    def name(self, call: Call, name: str) -> Call:
        """Set the name of a call that started without one."""
        return self._start(self._put(call, call._replace(name=name)))

    def arguments(self, call: Call, text: str) -> Call:
        """Append to a call's input."""
        if not text or call.done:
            return call
        if call.begun:
            self.chunks.append({"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": text})
        return self._put(call, call._replace(text=join(call.text, text)))

    def give(self, call: Call, text: str, metadata: JsonObject | None = None) -> None:
        """Set a call's complete input and end the call, with metadata that is known only now."""
        if not call.done:
            self.finish(self._put(call, call._replace(text=(text,), metadata=metadata or call.metadata)))

    def finish(self, call: Call, *, cut: bool = False) -> None:
        """End a call's input: write the call's arguments, or an error if they are invalid. Do nothing if the input has already ended."""
        if call.done:
            return
        text = "".join(call.text)
        named = call if call.name else call._replace(name=UNNAMED)
        chunk: Chunk
        if cut:
            chunk = _failed(named, text, "the model's answer was cut off before the call was complete")
        elif not call.name:
            chunk = _failed(named, text, "the call names no tool")
        elif call.free:
            chunk = {"type": "tool-input-available", **_head(named), "input": text}
        else:
            try:
                chunk = {"type": "tool-input-available", **_head(named), "input": read_arguments(text)}
            except ValueError as error:
                chunk = _failed(named, text, f"the arguments can't be read: {error}")
        self.chunks.append(chunk)
        self._put(call, named._replace(done=True, text=()))

    def close(self, *, cut: bool) -> None:
        """Close everything that is open."""
        self.end()
        for call in self._parts.calls:
            self.finish(call, cut=cut)

    def _start(self, call: Call) -> Call:
        chunk: Chunk = {"type": "tool-input-start", **_head(call)}
        if call.free:
            chunk["inputEncoding"] = "text"
        self.chunks.append(chunk)
        if call.text:
            self.chunks.append({"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": "".join(call.text)})
        return self._put(call, call._replace(begun=True))

    def _put(self, old: Call, new: Call) -> Call:
        self._parts = self._parts._replace(calls=tuple(new if call.id == old.id else call for call in self._parts.calls))
        return new


def _with(chunk: Chunk, metadata: JsonObject | None) -> Chunk:
    if metadata:
        chunk["providerMetadata"] = metadata
    return chunk


def _head(call: Call) -> JsonObject:
    head: JsonObject = {"toolCallId": call.id, "toolName": call.name}
    if call.executed:
        head["providerExecuted"] = True
    if call.dynamic:
        head["dynamic"] = True
    if call.metadata:
        head["providerMetadata"] = call.metadata
    tool: JsonObject = {}
    if call.vendor_id:
        tool["vendorId"] = call.vendor_id
    if call.free:
        tool["custom"] = True
    if tool:
        head["toolMetadata"] = tool
    return head


def _failed(call: Call, text: str, reason: str) -> Chunk:
    return {"type": "tool-input-error", **_head(call), "input": text, "errorText": reason}


def _new_id(parts: Parts, vendor_id: str) -> str:
    """Return the vendor's id, or a different one if the message already has it. Vendors reuse ids in later steps and attempts."""

    count = len(parts.calls)
    names = (vendor_id or f"call_{parts.prefix}_{count}", f"{vendor_id}#{parts.step}.{count}", f"{vendor_id}#{parts.prefix}.{count}")
    first = next((name for name in names if name not in parts.used), names[-1])
    return free_id(first, parts.used, f"{vendor_id}#{parts.prefix}", count + 1)
