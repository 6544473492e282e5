"""The history that another program sent with its call, read back from storage. Each message is stored once, however often it is sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from moot.types.canonical import JsonObject, loads
from moot.types.message import Message, Role
from moot.types.part import Part, is_tool
from moot.types.store import Store

__all__ = ["told_history", "with_outputs"]

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


async def told_history(store: Store, blobs: Sequence[str]) -> list[Message]:
    """Return the messages, oldest first. An entry is a message, or names a stored one with the outputs of its calls. Raise NotFound."""
    messages: list[Message] = []
    for sha256 in blobs:
        entries = loads(await store.blobs.get(sha256))
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                messages.append(await _message(store, entry))
    return messages


async def _message(store: Store, entry: JsonObject) -> Message:
    named, parts, metadata, outputs = (entry.get(name) for name in ("message", "parts", "metadata", "outputs"))
    if isinstance(named, str):
        stored = await store.conversations.message(named)
        return dataclasses.replace(stored, parts=with_outputs(stored.parts, outputs if isinstance(outputs, dict) else {}))
    own = tuple(part for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return Message("", _ROLES.get(str(entry.get("role")), "user"), own, metadata if isinstance(metadata, dict) else {})


def with_outputs(parts: Sequence[Part], outputs: JsonObject) -> tuple[Part, ...]:
    """Return the parts with outputs supplied by the program, by call id: `{"output": …}` or `{"errorText": …}`."""
    return tuple(_with_output(part, outputs.get(str(part.get("toolCallId")))) if is_tool(part) else part for part in parts)


def _with_output(part: Part, outcome: object) -> Part:
    if not isinstance(outcome, dict):
        return part
    kept: Part = {name: value for name, value in part.items() if name not in ("output", "errorText", "preliminary")}
    state = "output-error" if "errorText" in outcome else "output-available"
    return {**kept, "state": state, **outcome}  # pyright: ignore[reportUnknownVariableType]
