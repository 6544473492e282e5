"""The elements of a script: the answers of a scripted model, and the failures of its endpoint."""

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
    """A tool call by the model."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    """A string is sent as is, even if it is not valid JSON."""
    id: str = ""
    """Id of the call. If empty, an id is generated that is unique in the server."""

    @property
    def text(self) -> str:
        """The arguments as sent."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. By default it is empty but well-formed."""

    text: str = ""
    reasoning: str = ""
    signature: str = "c2lnbmF0dXJl"
    """Signature of the reasoning, in dialects that have one."""
    tool_calls: Sequence[ToolCall] = ()
    picture: bytes = b""
    """A PNG image, in an answer or on its own. Not supported by Chat Completions or Anthropic's dialect."""
    finish: str | None = ""
    """The vendor's finish reason. If empty, the appropriate reason is sent. If None, no finish is sent."""
    usage: Usage | None = field(default_factory=lambda: {"input": 12, "output": 7})
    """Token counts; None if they are not reported."""
    model: str = ""
    """Model name in the answer. If empty, the requested model's name is used."""

    when: str = ""
    """The reply only answers requests whose last user text contains this text."""
    times: int = 1
    """Number of requests to answer; 0 for any number."""

    chunk_size: int = 8
    """Characters per delta."""
    write_size: int = 0
    """Bytes per write; 0 for one write per frame."""
    delay: float = 0.0
    """Seconds before each write."""
    wait: float = 0.0
    """Seconds before the response, including the status line."""
    hang_at: int | None = None
    """Number of writes after which the response hangs until the server's `release` or until the client disconnects; 0 for headers only."""
    cut_at_byte: int | None = None
    """Number of body bytes after which the connection breaks."""
    end_at_byte: int | None = None
    """Number of body bytes after which the response ends normally."""
    malformed_at: int | None = None
    """Index of a frame before which a frame with invalid JSON is inserted."""
    raw: bytes | None = None
    """The body, replacing all of the above."""
    content_type: str = ""
    """Content type of the response. If empty, the dialect's usual type is sent."""

    status: int = 200
    error: str = ""
    """Message of an error response. If empty, a default message is sent."""
    error_code: str = ""
    retry_after: float | str | None = None
    """The Retry-After header: seconds, or any text."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def replies_from_json(text: str | bytes) -> list[Reply]:
    """Parse a script from JSON: a list of objects with the fields of `Reply`.

    `raw` is given as text or as `raw_base64`, `picture` as `picture_base64`. Raise ValueError if it is not a valid script.
    """
    value: Any = json.loads(text)
    if not isinstance(value, list):
        raise ValueError(f"A script must be a list of replies, not {type(value).__name__}.")
    return [_reply(row) for row in cast("list[Any]", value)]


def replies_to_json(replies: Sequence[Reply]) -> str:
    """Return the script as JSON."""
    rows: list[dict[str, Any]] = []
    for reply in replies:
        row: dict[str, Any] = {item.name: getattr(reply, item.name) for item in fields(Reply)}
        row["tool_calls"] = [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in reply.tool_calls]
        for name in ("raw", "picture"):
            if (data := row.pop(name)) is not None:
                row[f"{name}_base64"] = base64.b64encode(data).decode()
        rows.append(row)
    return json.dumps(rows)


def _reply(row: Any) -> Reply:
    if isinstance(row, str):
        return Reply(text=row)
    if not isinstance(row, dict):
        raise ValueError(f"A reply must be a string or an object, not {type(row).__name__}.")
    values = dict(cast("dict[str, Any]", row))
    if "raw_base64" in values:
        values["raw"] = base64.b64decode(values.pop("raw_base64"))
    elif isinstance(values.get("raw"), str):
        values["raw"] = values["raw"].encode()
    if "picture_base64" in values:
        values["picture"] = base64.b64decode(values.pop("picture_base64"))
    known = {item.name for item in fields(Reply)}
    if unknown := values.keys() - known:
        raise ValueError(f"Unknown reply field {sorted(unknown)[0]!r}. Known fields: {', '.join(sorted(known))}.")
    values["tool_calls"] = [ToolCall(**call) for call in values.get("tool_calls", [])]
    return Reply(**values)
