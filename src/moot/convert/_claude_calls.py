"""Tool calls of Claude Code, from input to output. It runs them itself; a sub-agent's calls name the call that started the sub-agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moot.convert._claude_facts import structured
from moot.convert._vendor import as_list, as_object, as_text
from moot.convert._writer import read_arguments
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, tool_denied, tool_error, tool_input_error, tool_output

NAME = "claude-code"
_WRAP = ("<tool_use_error>", "</tool_use_error>")


class Call(NamedTuple):
    """A call without an output."""

    id: str
    vendor_id: str
    parent: str = ""
    """The id of the call whose sub-agent makes this one; empty for the agent itself."""
    agent: str = ""
    """The sub-agent's kind."""


def own(chunk: Chunk, call: Call) -> Chunk:
    """Mark the chunk of a call's input as the agent's own tool, not moot's."""
    return {**chunk, "providerExecuted": True, "dynamic": True, "toolMetadata": _metadata(call)}


def whole(call: Call, block: JsonObject) -> tuple[Chunk, ...]:
    """Return the chunks for an input that was not streamed."""
    name = as_text(block.get("name")) or "unknown"
    start: Chunk = {"type": "tool-input-start", "toolCallId": call.id, "toolName": name}
    try:
        arguments = read_arguments(canonical.dumps(block.get("input") or {}).decode())
    except ValueError as error:
        failed = tool_input_error(call.id, name, None, f"the arguments can't be read: {error}")
        return own(start, call), own(failed, call)
    available: Chunk = {"type": "tool-input-available", "toolCallId": call.id, "toolName": name, "input": arguments}
    return own(start, call), own(available, call)


def output_of(call: Call, block: JsonObject, line: JsonObject) -> Chunk:
    """Return the call's one output, from its `tool_result` and the other fields of the line."""
    if _denied(call, line):
        return tool_denied(call.id)
    content = block.get("content")
    facts = structured(line.get("tool_use_result"))
    if block.get("is_error") is True:
        chunk = tool_error(call.id, _unwrapped(_text(content)) or "the tool failed and did not say why")
    else:
        chunk = tool_output(call.id, _output(content))
    return {**own(chunk, call), "toolMetadata": _metadata(call, facts)}


def _metadata(call: Call, facts: JsonObject | None = None) -> JsonObject:
    details: JsonObject = {"parent": call.parent, "agent": call.agent} if call.parent else {}
    if facts:
        details["result"] = facts
    return {"vendorId": call.vendor_id, NAME: details} if details else {"vendorId": call.vendor_id}


def _denied(call: Call, line: JsonObject) -> bool:
    """Return True if the user denied the call. A refusal by the agent's own rules is an error with its text."""
    for meta in map(as_object, as_list(line.get("tool_result_meta"))):
        if meta.get("id") == call.vendor_id:
            decision = as_object(meta.get("permission_decision"))
            return decision.get("source") == "user_reject" or (not decision and meta.get("non_execution_kind") == "user-rejected")
    return False


def _output(content: Json) -> Json:
    """Return text, or text and images in the shape of moot's own tool outputs."""
    if isinstance(content, str):
        return content
    blocks = [as_object(block) for block in as_list(content)]
    files = [file for block in blocks if (file := _file(block)) is not None]
    if not files:
        return _text(content)
    text = _text(content)
    return {"type": "content", "value": [*([{"type": "text", "text": text}] if text else []), *files]}


def _file(block: JsonObject) -> JsonObject | None:
    source = as_object(block.get("source"))
    kind, encoded = as_text(source.get("media_type")), as_text(source.get("data"))
    if block.get("type") not in ("image", "document") or source.get("type") != "base64" or not kind or not encoded:
        return None
    return {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{encoded}"}


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks: Sequence[JsonObject] = [as_object(block) for block in as_list(content)]
    return "\n".join(_words(block) for block in blocks if _words(block))


def _words(block: JsonObject) -> str:
    if block.get("type") == "tool_reference":
        return as_text(block.get("tool_name"))
    return as_text(block.get("text"))


def _unwrapped(text: str) -> str:
    return text.strip().removeprefix(_WRAP[0]).removesuffix(_WRAP[1]).strip()
