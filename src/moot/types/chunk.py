"""Streamed pieces in the shape of the AI SDK's `UIMessageChunk`, versions 6 and 7 (reference: AI SDK UI, stream protocol).

A chunk is plain JSON, not a class: one is made for every few bytes of model output, and unknown fields must be preserved. `KINDS` lists the
required and optional fields of each kind; the functions below build the chunks that moot itself writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from moot.types.canonical import Json, JsonObject

Chunk: TypeAlias = JsonObject


@dataclass(frozen=True, slots=True)
class Kind:
    """The fields of one kind of chunk."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    since: int = 5
    """The first major version of the AI SDK whose clients support it."""
    later: frozenset[str] = frozenset()
    """Optional fields that only version 7 clients support."""
    ours: frozenset[str] = frozenset()
    """Fields that only moot reads; they are never sent to clients."""


def _kind(required: str = "", optional: str = "", *, since: int = 5, later: str = "", ours: str = "") -> Kind:
    return Kind(frozenset(required.split()), frozenset(optional.split()), since, frozenset(later.split()), frozenset(ours.split()))


_TOOL = "providerExecuted providerMetadata toolMetadata dynamic title"

KINDS: dict[str, Kind] = {
    "start": _kind("", "messageId messageMetadata"),
    "finish": _kind("", "finishReason messageMetadata"),
    "start-step": _kind(),
    "finish-step": _kind(),
    "reset-step": _kind(since=7),
    "text-start": _kind("id", "providerMetadata"),
    "text-delta": _kind("id delta", "providerMetadata"),
    "text-end": _kind("id", "providerMetadata", later="citations"),
    "reasoning-start": _kind("id", "providerMetadata"),
    "reasoning-delta": _kind("id delta", "providerMetadata"),
    "reasoning-end": _kind("id", "providerMetadata"),
    "tool-input-start": _kind("toolCallId toolName", f"inputEncoding {_TOOL}"),
    "tool-input-delta": _kind("toolCallId inputTextDelta"),
    "tool-input-available": _kind("toolCallId toolName input", _TOOL),
    "tool-input-error": _kind("toolCallId toolName input errorText", _TOOL),
    "tool-approval-request": _kind(
        "approvalId toolCallId", "", since=6, later="approvalDescriptor inputSchemaInput reason isAutomatic signature"
    ),
    "tool-approval-response": _kind("approvalId approved", "reason providerExecuted providerMetadata", since=7),
    "tool-output-available": _kind("toolCallId output", "providerExecuted providerMetadata toolMetadata dynamic preliminary"),
    "tool-output-error": _kind("toolCallId errorText", "providerExecuted providerMetadata toolMetadata dynamic"),
    "tool-output-denied": _kind("toolCallId", since=6, ours="approvalId reason"),
    "source-url": _kind("sourceId url", "title providerMetadata"),
    "source-document": _kind("sourceId mediaType title", "filename providerMetadata"),
    "file": _kind("url mediaType", "providerMetadata"),
    "reasoning-file": _kind("url mediaType", "providerMetadata", since=7),
    "custom": _kind("kind", "providerMetadata", since=7),
    "steering-message": _kind("id parts", since=7),
    "message-metadata": _kind("messageMetadata"),
    "error": _kind("errorText"),
    "abort": _kind("", "reason"),
}
"""Kinds named `data-NAME` need `data` and may have `id` and `transient`; `kind_of` handles them."""

DATA = _kind("data", "id transient")

OURS = "moot"
"""The key of `providerMetadata` for data that only moot uses, such as where the full output of a tool is stored.
It is in the log and in stored parts; clients and models never see it. In `toolMetadata`, which clients see, it contains `PARENT`."""

PARENT = "parentToolCallId"
"""The field that names the call whose sub-agent made a call (`toolMetadata.moot`) or wrote text (the data of a `data-subagent`)."""


def nested(metadata: JsonObject, parent: str) -> JsonObject:
    """Return the `toolMetadata` of a call that a sub-agent makes; unchanged if `parent` is empty."""
    return {**metadata, OURS: {PARENT: parent}} if parent else metadata


FINISH_REASONS = frozenset({"stop", "length", "content-filter", "tool-calls", "error", "other"})
"""Reasons that a version 6 client accepts; version 7 adds `interrupted`."""


def kind_of(name: str) -> Kind | None:
    """Return the field table of a chunk type, or None if no known version has the type."""
    return DATA if name.startswith("data-") else KINDS.get(name)


def problems(chunk: Chunk, version: int = 6) -> list[str]:
    """Return why a client of this major version would reject the chunk; empty if it would accept it."""
    name = chunk.get("type")
    kind = kind_of(name) if isinstance(name, str) else None
    if kind is None:
        return [f"unknown type {name!r}"]
    later: frozenset[str] = kind.later if version >= 7 else frozenset()
    allowed = kind.required | kind.optional | later | kind.ours
    found = [f"{name}: field {field!r} missing" for field in sorted(kind.required - chunk.keys())]
    found += [f"{name}: field {field!r} not known" for field in sorted(chunk.keys() - allowed - {"type"})]
    found += [f"{name}: field {field!r} is null; leave it out" for field in sorted(chunk.keys() & kind.optional) if chunk[field] is None]
    if kind.since > version:
        found.append(f"{name}: needs version {kind.since}")
    return found


def start(message_id: str, metadata: JsonObject | None = None) -> Chunk:
    chunk: Chunk = {"type": "start", "messageId": message_id}
    if metadata:
        chunk["messageMetadata"] = metadata
    return chunk


def finish(reason: str, metadata: JsonObject | None = None) -> Chunk:
    chunk: Chunk = {"type": "finish", "finishReason": reason}
    if metadata:
        chunk["messageMetadata"] = metadata
    return chunk


def message_metadata(metadata: JsonObject) -> Chunk:
    return {"type": "message-metadata", "messageMetadata": metadata}


def error(text: str) -> Chunk:
    return {"type": "error", "errorText": text}


def abort(reason: str = "") -> Chunk:
    return {"type": "abort", "reason": reason} if reason else {"type": "abort"}


def tool_output(tool_call_id: str, output: Json) -> Chunk:
    return {"type": "tool-output-available", "toolCallId": tool_call_id, "output": output}


def tool_error(tool_call_id: str, text: str) -> Chunk:
    return {"type": "tool-output-error", "toolCallId": tool_call_id, "errorText": text}


def tool_denied(tool_call_id: str, *, approval: str = "", reason: str = "") -> Chunk:
    """Return the output of a denied call. `approval` is the id of the approval if no earlier chunk of the call has it; `reason` is the
    agent's explanation. moot stores both in the part but doesn't send them to clients."""
    chunk: Chunk = {"type": "tool-output-denied", "toolCallId": tool_call_id}
    return chunk | {name: value for name, value in (("approvalId", approval), ("reason", reason)) if value}


def tool_input_error(tool_call_id: str, tool_name: str, value: Json, text: str) -> Chunk:
    return {"type": "tool-input-error", "toolCallId": tool_call_id, "toolName": tool_name, "input": value, "errorText": text}


def data(name: str, value: Json, *, id: str | None = None, transient: bool = False) -> Chunk:
    chunk: Chunk = {"type": f"data-{name}", "data": value}
    if id is not None:
        chunk["id"] = id
    if transient:
        chunk["transient"] = True
    return chunk


def source(url: str, title: str = "") -> Chunk:
    """Return a web page on which the answer is based. Its id depends only on the URL."""
    chunk: Chunk = {"type": "source-url", "sourceId": f"web-{sha256(url.encode('utf-8', 'replace')).hexdigest()[:16]}", "url": url}
    return {**chunk, "title": title} if title else chunk


def sub_agent(id: str, kind: str, text: str, *, agent: str = "", parent: str = "", details: JsonObject | None = None) -> Chunk:
    """Return a sub-agent's text or reasoning (`kind`). `parent` is the call that started the sub-agent, if known."""
    body: JsonObject = {PARENT: parent} if parent else {}
    return data("subagent", {**body, "agent": agent, **(details or {}), "kind": kind, "text": text}, id=id)


START_STEP: Chunk = {"type": "start-step"}
FINISH_STEP: Chunk = {"type": "finish-step"}
