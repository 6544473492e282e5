"""The words of a script: what a scripted model says, and how its endpoint misbehaves."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

Usage = Mapping[str, int]
"""Tokens by the names of `moot.types.usage.Usage`: input, output, cache_read, cache_write, reasoning."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model makes."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    """A string is sent as it is, also when it is no JSON."""
    id: str = ""
    """Empty = made up, unique in the server."""

    @property
    def text(self) -> str:
        """The arguments as they go over the wire."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. Without any field it is an empty, well-formed one."""

    text: str = ""
    reasoning: str = ""
    signature: str = "c2lnbmF0dXJl"
    """Of the reasoning, in the dialects that sign or seal it."""
    tool_calls: Sequence[ToolCall] = ()
    picture: bytes = b""
    """A PNG that the model gives, in an answer or on its own; chat completions and Anthropic's dialect have no place for it."""
    finish: str | None = ""
    """The vendor's own word; empty = what fits, None = no finish is sent at all."""
    usage: Usage | None = field(default_factory=lambda: {"input": 12, "output": 7})
    """None = the endpoint does not say."""
    model: str = ""
    """Of the answer; empty = the one that was asked for."""

    when: str = ""
    """Only for a request whose last user text contains this."""
    times: int = 1
    """How many requests it answers; 0 = any number."""

    chunk_size: int = 8
    """Characters in each delta."""
    write_size: int = 0
    """Bytes in each write; 0 = a write for each frame."""
    delay: float = 0.0
    """Seconds before each write."""
    wait: float = 0.0
    """Seconds before anything at all, the status line included."""
    hang_at: int | None = None
    """After so many writes it says nothing more until the client goes; 0 = after the headers."""
    cut_at_byte: int | None = None
    """The connection breaks after so many bytes of the body."""
    end_at_byte: int | None = None
    """The body ends after so many bytes as if that were all."""
    malformed_at: int | None = None
    """A frame that is no JSON stands before the n-th frame."""
    raw: bytes | None = None
    """The body, instead of everything above."""
    content_type: str = ""
    """Empty = what fits the dialect."""

    status: int = 200
    error: str = ""
    """The message of an answer whose status is no success; empty = made up."""
    error_code: str = ""
    retry_after: float | str | None = None
    """The Retry-After header: seconds, or any text."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def replies_from_json(text: str | bytes) -> list[Reply]:
    """The script in a JSON file: a list of objects with the fields of `Reply`; `raw` is text, or `raw_base64`, `picture` is
    `picture_base64`. Raises ValueError."""
    value: Any = json.loads(text)
    if not isinstance(value, list):
        raise ValueError(f"a script is a list of replies, got {type(value).__name__}")
    return [_reply(row) for row in cast("list[Any]", value)]


def replies_to_json(replies: Sequence[Reply]) -> str:
    """The same script as a JSON file."""
    return json.dumps([_row(reply) for reply in replies])


def _reply(row: Any) -> Reply:
    if isinstance(row, str):
        return Reply(text=row)
    if not isinstance(row, dict):
        raise ValueError(f"a reply is a text or an object, got {type(row).__name__}")
    values = dict(cast("dict[str, Any]", row))
    if "raw_base64" in values:
        values["raw"] = base64.b64decode(values.pop("raw_base64"))
    elif isinstance(values.get("raw"), str):
        values["raw"] = values["raw"].encode()
    if "picture_base64" in values:
        values["picture"] = base64.b64decode(values.pop("picture_base64"))
    known = {item.name for item in fields(Reply)}
    if unknown := values.keys() - known:
        raise ValueError(f"a reply has no field {sorted(unknown)[0]!r}; known: {', '.join(sorted(known))}")
    values["tool_calls"] = [ToolCall(**call) for call in values.get("tool_calls", [])]
    return Reply(**values)


def _row(reply: Reply) -> dict[str, Any]:
    row: dict[str, Any] = {item.name: getattr(reply, item.name) for item in fields(Reply)}
    row["tool_calls"] = [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in reply.tool_calls]
    if (raw := row.pop("raw")) is not None:
        row["raw_base64"] = base64.b64encode(raw).decode()
    if picture := row.pop("picture"):
        row["picture_base64"] = base64.b64encode(picture).decode()
    return row
