"""Replies in the wire format of each dialect: the frames of a stream, and the bodies of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moot.testing._wires import drawn, google, heard, json_bytes, ollama, responses
from moot.testing._wires import pieces as _pieces
from moot.testing.script import Reply, ToolCall, Usage


def frames(reply: Reply, dialect: str, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return the frames of a reply's event stream. `ids` provides ids that the script does not set."""
    made = _DIALECTS.get(dialect, _chat)(reply, model, ids)
    if reply.malformed_at is not None:
        made.insert(reply.malformed_at, b'{"broken": \n' if dialect == "ollama" else b'data: {"broken": \n\n')
    return made


def content_type(dialect: str) -> str:
    """Return the content type of a stream in that dialect."""
    kinds = {"ollama": "application/x-ndjson", "pictures": "application/json", "sounds": "application/json"}
    return kinds.get(dialect, "text/event-stream")


def error_body(reply: Reply, dialect: str) -> bytes:
    """Return the JSON body of an error response."""
    message = reply.error or f"scripted status {reply.status}"
    if dialect == "anthropic":
        kind = reply.error_code or {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(
            reply.status, "api_error"
        )
        return json_bytes({"type": "error", "error": {"type": kind, "message": message}})
    if dialect == "ollama":
        return json_bytes({"error": message})
    if dialect == "google":
        return json_bytes({"error": {"code": reply.status, "message": message, "status": reply.error_code or "SCRIPTED"}})
    return json_bytes({"error": {"message": message, "type": "scripted", "param": None, "code": reply.error_code or None}})


def _chat(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    base = {"id": f"chatcmpl-{next(ids)}", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": reply.model or model}

    def frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    made = [frame({"role": "assistant", "content": ""})]
    made += [frame({"reasoning_content": piece}) for piece in _pieces(reply.reasoning, reply.chunk_size)]
    made += [frame({"content": piece}) for piece in _pieces(reply.text, reply.chunk_size)]
    for index, call in enumerate(reply.tool_calls):
        head = {"name": call.name, "arguments": ""}
        made.append(frame({"tool_calls": [{"index": index, "id": call.id or f"call_{next(ids)}", "type": "function", "function": head}]}))
        pieces = _pieces(call.text, reply.chunk_size)
        made += [frame({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in pieces]
    if reply.finish is None:
        return made
    made.append(frame({}, reply.finish or ("tool_calls" if reply.tool_calls else "stop")))
    if reply.usage is not None:
        made.append(_data({**base, "choices": [], "usage": _chat_usage(reply.usage)}))
    return [*made, b"data: [DONE]\n\n"]


def _chat_usage(usage: Usage) -> dict[str, Any]:
    counts: dict[str, Any] = {"prompt_tokens": usage.get("input", 0), "completion_tokens": usage.get("output", 0)}
    counts["total_tokens"] = counts["prompt_tokens"] + counts["completion_tokens"]
    if "cache_read" in usage:
        counts["prompt_tokens_details"] = {"cached_tokens": usage["cache_read"]}
    if "reasoning" in usage:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage["reasoning"]}
    return counts


def _messages(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    message: dict[str, Any] = {
        "id": f"msg_{next(ids)}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or model,
        "content": [],
    }
    message |= {"stop_reason": None, "stop_sequence": None, "usage": _messages_usage(reply.usage or {}, output=1)}
    made = [_event("message_start", {"message": message}), _event("ping", {})]
    blocks: list[list[bytes]] = []
    if reply.reasoning:
        blocks.append(_thinking(reply, len(blocks)))
    if reply.text:
        pieces = [{"type": "text_delta", "text": piece} for piece in _pieces(reply.text, reply.chunk_size)]
        blocks.append(_block(len(blocks), {"type": "text", "text": ""}, pieces))
    for call in reply.tool_calls:
        blocks.append(_tool_use(call, len(blocks), reply.chunk_size, ids))
    made += [frame for block in blocks for frame in block]
    if reply.finish is None:
        return made
    reason = reply.finish or ("tool_use" if reply.tool_calls else "end_turn")
    delta: dict[str, Any] = {"delta": {"stop_reason": reason, "stop_sequence": None}}
    if reply.usage is not None:
        delta["usage"] = {"output_tokens": reply.usage.get("output", 0)}
    return [*made, _event("message_delta", delta), _event("message_stop", {})]


def _messages_usage(usage: Usage, output: int) -> dict[str, int]:
    read, write = usage.get("cache_read", 0), usage.get("cache_write", 0)
    counts = {"input_tokens": usage.get("input", 0) - read - write, "output_tokens": output}
    if read or write:
        counts |= {"cache_read_input_tokens": read, "cache_creation_input_tokens": write}
    return counts


def _thinking(reply: Reply, index: int) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(reply.reasoning, reply.chunk_size)]
    deltas.append({"type": "signature_delta", "signature": reply.signature})
    return _block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)


def _tool_use(call: ToolCall, index: int, size: int, ids: Iterator[str]) -> list[bytes]:
    head: dict[str, Any] = {"type": "tool_use", "id": call.id or f"toolu_{next(ids)}", "name": call.name, "input": {}}
    return _block(index, head, [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(call.text, size)])


def _block(index: int, head: dict[str, Any], deltas: list[dict[str, Any]]) -> list[bytes]:
    made = [_event("content_block_start", {"index": index, "content_block": head})]
    made += [_event("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
    return [*made, _event("content_block_stop", {"index": index})]


def _event(name: str, value: dict[str, Any]) -> bytes:
    return b"event: %s\n%s" % (name.encode(), _data({"type": name, **value}))


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + json_bytes(value) + b"\n\n"


_DIALECTS: dict[str, Callable[[Reply, str, Iterator[str]], list[bytes]]] = {
    "anthropic": _messages,
    "google": google,
    "ollama": ollama,
    "pictures": drawn,
    "sounds": heard,
    "openai-responses": responses,
}
"""All other dialects get chat completions."""
