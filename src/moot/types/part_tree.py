"""The parts of a message as a tree: the parts of a sub-agent are below the call that started it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moot.types.canonical import Json, JsonObject
from moot.types.chunk import OURS, PARENT, Chunk
from moot.types.message import Part, is_tool


def parent_call(part: Part | Chunk) -> str:
    """Return the id of the call whose sub-agent made this call or wrote this text; empty for the agent itself.

    The id is in `toolMetadata.moot` of a call, or in the data of a `data-subagent`. Parts stored by older versions have it as `parent` in
    the data, or in the metadata of the agent that sent the part. Other programs that use the AI SDK keep it in their own
    `callProviderMetadata`.
    """
    kind = part.get("type")
    if kind == "data-subagent":
        data = _object(part.get("data"))
        return _text(data.get(PARENT)) or _text(data.get("parent"))
    places = ("providerMetadata",) if kind in ("text", "reasoning") else ("toolMetadata", "callProviderMetadata")
    vendors = {name: _object(value) for place in reversed(places) for name, value in _object(part.get(place)).items()}
    found = [vendors.get(OURS, {}).get(PARENT), *(vendor.get(name) for name in (PARENT, "parent") for vendor in vendors.values())]
    return next((id for id in found if isinstance(id, str)), "")


def linked(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with each parent call's id moved to the place where the current version stores it.

    A part whose parent is not an earlier call in `parts` is returned unchanged.
    """
    calls = set[str]()
    found: list[Part] = []
    for part in parts:
        parent = parent_call(part)
        found.append(_linked(part, parent) if parent in calls else part)
        if is_tool(part):
            calls.add(_text(part.get("toolCallId")))
    return found


def _linked(part: Part, parent: str) -> Part:
    kind = str(part.get("type"))
    if kind == "data-subagent":
        data = {name: value for name, value in _object(part.get("data")).items() if name != "parent"}
        return {**part, "data": {PARENT: parent, **data}}
    if kind in ("text", "reasoning"):  # the text of a sub-agent is not part of the answer
        return {"type": "data-subagent", "data": {PARENT: parent, "agent": "", "kind": kind, "text": part.get("text")}}
    metadata = _object(part.get("toolMetadata"))
    return {**part, "toolMetadata": {**metadata, OURS: {**_object(metadata.get(OURS)), PARENT: parent}}}


@dataclass(slots=True)
class Nested:
    """A part, with the parts of the sub-agents started by it."""

    part: Part
    inner: list[Nested] = field(default_factory=list["Nested"])


def nest(parts: Sequence[Part]) -> list[Nested]:
    """Return the parts in order, each below the earlier call that it belongs to, or at the top level if there is no such call."""
    calls: dict[str, Nested] = {}
    top: list[Nested] = []
    for part in linked(parts):
        found = Nested(part)
        holder = calls.get(parent_call(part))
        (top if holder is None else holder.inner).append(found)
        if is_tool(part):
            calls[_text(part.get("toolCallId"))] = found
    return top


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
