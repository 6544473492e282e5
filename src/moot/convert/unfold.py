"""Convert a message to the fewest chunks from which it can be rebuilt,
for clients that join late, and adapt chunks to a client's SDK version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from moot.types.canonical import JsonObject
from moot.types.chunk import FINISH_REASONS, Chunk, kind_of, start
from moot.types.message import Message, Part, is_tool, tool_name

_AS_THEY_STAND = frozenset({"file", "reasoning-file", "source-url", "source-document", "custom", "steering-message"})
_INPUT_STATES = ("input-streaming", "input-available")
_OUTPUT_STATES = ("output-available", "output-error")


def unfold(message: Message) -> tuple[Chunk, ...]:
    """Return a `start` chunk with the message's id and metadata, followed by the chunks of its parts.
    Open parts stay open; there is no `finish` chunk.

    For folded parts, `fold_parts((), unfold(m)) == m.parts`. Parts of unknown types are omitted.
    """
    return (start(message.id, message.metadata), *unfold_parts(message.parts))


def unfold_parts(parts: tuple[Part, ...]) -> Iterator[Chunk]:
    """Yield the chunks of the parts, without a `start` chunk."""
    calls = set[str]()
    used = {str(part.get("id")) for part in parts if part.get("state") == "streaming"}
    for index, part in enumerate(parts):
        kind = str(part.get("type"))
        if kind in ("text", "reasoning"):
            yield from _spoken(kind, part, _part_id(part, index, used))
        elif is_tool(part):
            yield from _call(part, alone=str(part.get("toolCallId")) not in calls)
            calls.add(str(part.get("toolCallId")))
        elif kind == "step-start":
            yield {"type": "start-step"}
        elif kind in _AS_THEY_STAND or (kind.startswith("data-") and "data" in part):
            yield part


def _part_id(part: Part, index: int, used: set[str]) -> str:
    """Return the part's id. A finished text has none, so return an id that no open part of the message uses."""
    id = part.get("id")
    if isinstance(id, str):
        return id
    made = f"part-{index}"
    while made in used:
        made += "+"
    return made


def _spoken(kind: str, part: Part, id: str) -> Iterator[Chunk]:
    yield _with({"type": f"{kind}-start", "id": id}, part, "providerMetadata")
    if part.get("text"):
        yield {"type": f"{kind}-delta", "id": id, "delta": part["text"]}
    if part.get("state") != "streaming":
        yield _with({"type": f"{kind}-end", "id": id}, part, "citations")


def _call(part: Part, *, alone: bool) -> Iterator[Chunk]:
    """Yield the chunks of a tool call, including those for fields from earlier states, such as an approval or a result's metadata."""
    state = str(part.get("state"))
    at_once = "input" in part and not part.keys() & {"rawInput", "callProviderMetadata", "approval", "title"}
    if state == "output-error" and alone and at_once:  # the call's input was invalid, so one chunk is enough
        failed: Chunk = {"type": "tool-input-error", **_head(part), "input": part["input"], "errorText": part.get("errorText", "")}
        yield _with(failed, part, "resultProviderMetadata", "providerMetadata")
        return
    result, approvals = _result(part), list(_approvals(part))
    leftover = "resultProviderMetadata" in part and not result
    early = approvals if state in _INPUT_STATES else []
    if early or leftover:
        yield _input_start(part, encoded=False)
    if leftover:
        yield {"type": "tool-output-available", **_id(part), "output": None, "providerMetadata": part["resultProviderMetadata"]}
    yield from early
    yield from _input(part)
    if state not in _OUTPUT_STATES:
        yield from result
    if not early:
        yield from approvals
    if state in _OUTPUT_STATES:
        yield from result
    elif state == "output-denied":
        yield {"type": "tool-output-denied", **_id(part)}


def _id(part: Part) -> JsonObject:
    return {"toolCallId": part.get("toolCallId", "")}


def _head(part: Part) -> JsonObject:
    """Return the fields common to all chunks that open a call."""
    head: JsonObject = {**_id(part), "toolName": tool_name(part)}
    if part.get("type") == "dynamic-tool":
        head["dynamic"] = True
    for name in ("title", "toolMetadata", "providerExecuted"):
        _with(head, part, name)
    return _with(head, part, "callProviderMetadata", "providerMetadata")


def _with(chunk: Chunk, part: JsonObject, field: str, name: str = "") -> Chunk:
    """Copy a field to the chunk if the part has it. `name` is the field's name in the chunk if it differs."""
    if field in part:
        chunk[name or field] = part[field]
    return chunk


def _input(part: Part) -> Iterator[Chunk]:
    if part.get("state") == "input-streaming" or "rawInput" in part or "inputEncoding" in part or "input" not in part:
        yield _input_start(part, encoded=True)
        if "rawInput" in part:
            yield {"type": "tool-input-delta", **_id(part), "inputTextDelta": part["rawInput"]}
    else:
        yield {"type": "tool-input-available", **_head(part), "input": part["input"]}


def _input_start(part: Part, *, encoded: bool) -> Chunk:
    chunk: Chunk = {"type": "tool-input-start", **_head(part)}
    if encoded and "inputEncoding" in part:
        chunk["inputEncoding"] = part["inputEncoding"]
    elif encoded and "rawInput" in part and part.get("input") == part["rawInput"]:
        chunk["inputEncoding"] = "text"  # a failed output keeps the raw input without its encoding
    return chunk


def _approvals(part: Part) -> Iterator[Chunk]:
    approval = part.get("approval")
    if not isinstance(approval, dict):
        return
    request: Chunk = {"type": "tool-approval-request", "approvalId": approval.get("id", ""), **_id(part)}
    names = {"descriptor": "approvalDescriptor", "requestReason": "reason"}
    for name in ("descriptor", "inputSchemaInput", "requestReason", "isAutomatic", "signature"):
        _with(request, approval, name, names.get(name, ""))
    yield request
    if "approved" in approval:
        response: Chunk = {"type": "tool-approval-response", "approvalId": approval.get("id", ""), "approved": approval["approved"]}
        yield _with(response, approval, "reason")


def _result(part: Part) -> list[Chunk]:
    if "errorText" in part:
        chunk: Chunk = {"type": "tool-output-error", **_id(part), "errorText": part["errorText"]}
    elif "output" in part:
        chunk = _with({"type": "tool-output-available", **_id(part), "output": part["output"]}, part, "preliminary")
    else:
        return []
    return [_with(chunk, part, "resultProviderMetadata", "providerMetadata")]


Version = Literal[6, 7]

_DATA: dict[str, str] = {"steering-message": "data-steering"}
"""Chunk types of version 7 that are sent to older clients as data chunks, keyed by the types of these data chunks."""


def for_version(chunks: Iterable[Chunk], version: Version) -> tuple[Chunk, ...]:
    """Return the chunks in the form that a client of this version accepts, in order."""
    return tuple(fitted for chunk in chunks if (fitted := fit(chunk, version)) is not None)


def fit(chunk: Chunk, version: Version) -> Chunk | None:
    """Return the chunk without fields that the client doesn't know, or as a data chunk, or None if it must not be sent.

    If nothing changes, return the same object.
    """
    name = chunk.get("type")
    kind = kind_of(name) if isinstance(name, str) else None
    if kind is None:
        return None
    if kind.since > version:
        return _as_data(chunk)
    if not kind.required <= chunk.keys():
        return None
    known = kind.required | kind.optional | (kind.later if version >= 7 else frozenset[str]()) | {"type"}
    fitted = chunk
    if not chunk.keys() <= known or any(chunk[field] is None for field in chunk.keys() - kind.required):
        fitted = {field: value for field, value in chunk.items() if field in known and (value is not None or field in kind.required)}
    reason = fitted.get("finishReason")
    if name == "finish" and version < 7 and reason is not None and reason not in FINISH_REASONS:
        return {**fitted, "finishReason": "other"}
    return fitted


def _as_data(chunk: Chunk) -> Chunk | None:
    name = _DATA.get(str(chunk["type"]))
    if name is None:
        return None
    data: JsonObject = {field: value for field, value in chunk.items() if field not in ("type", "id")}
    converted: Chunk = {"type": name, "data": data}
    if isinstance(chunk.get("id"), str):
        converted["id"] = chunk["id"]
    return converted
