"""Replies in the stream formats of OpenAI's Responses, Google's Gemini and Ollama's chat."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any

from moot.testing.script import Reply, ToolCall, Usage

__all__ = ["drawn", "google", "heard", "json_bytes", "ollama", "pieces", "responses"]


def pieces(text: str, size: int) -> list[str]:
    """Split the text into pieces of that many characters."""
    return [text[start : start + size] for start in range(0, len(text), max(1, size))]


def json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def ollama(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return lines of JSON. A call is complete in a single line."""
    base = {"model": reply.model or model, "created_at": "2026-01-01T00:00:00.000000000Z"}

    def line(message: dict[str, Any], **more: Any) -> bytes:
        return json_bytes({**base, "message": {"role": "assistant", **message}, "done": False, **more}) + b"\n"

    made = [line({"content": "", "thinking": piece}) for piece in pieces(reply.reasoning, reply.chunk_size)]
    made += [line({"content": piece}) for piece in pieces(reply.text, reply.chunk_size)]
    for call in reply.tool_calls:
        function = {"name": call.name, "arguments": _object(call)}
        made.append(line({"content": "", "tool_calls": [{**({"id": call.id} if call.id else {}), "function": function}]}))
    if reply.picture:
        made.append(line({"content": "", "images": [base64.b64encode(reply.picture).decode()]}))
    if reply.finish is None:
        return made
    totals: dict[str, Any] = {"total_duration": 5_000_000, "load_duration": 1_000_000}
    if reply.usage is not None:
        totals |= {"prompt_eval_count": reply.usage.get("input", 0), "eval_count": reply.usage.get("output", 0)}
    return [*made, line({"content": ""}, done=True, done_reason=reply.finish or "stop", **totals)]


def google(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return one complete response per event. The signature is on the first call, or on an empty text at the end."""
    base = {"modelVersion": reply.model or model, "responseId": f"resp-{next(ids)}"}
    parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in pieces(reply.reasoning, reply.chunk_size)]
    parts += [{"text": piece} for piece in pieces(reply.text, reply.chunk_size)]
    if reply.picture:
        parts.append({"inlineData": {"mimeType": "image/png", "data": base64.b64encode(reply.picture).decode()}})
    calls: list[dict[str, Any]] = [
        {"functionCall": {"name": call.name, "args": _object(call), **({"id": call.id} if call.id else {})}} for call in reply.tool_calls
    ]
    if reply.reasoning:
        signed = calls[0] if calls else {"text": ""}
        signed["thoughtSignature"] = reply.signature
        calls = calls or [signed]
    made = [_data({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], **base}) for part in [*parts, *calls]]
    if reply.finish is None:
        return made
    last: dict[str, Any] = {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": reply.finish or "STOP", "index": 0}]}
    if reply.usage is not None:
        last["usageMetadata"] = _google_usage(reply.usage)
    return [*made, _data({**last, **base})]


def _google_usage(usage: Usage) -> dict[str, int]:
    thoughts = usage.get("reasoning", 0)
    counts = {"promptTokenCount": usage.get("input", 0), "candidatesTokenCount": usage.get("output", 0) - thoughts}
    counts["totalTokenCount"] = usage.get("input", 0) + usage.get("output", 0)
    if thoughts:
        counts["thoughtsTokenCount"] = thoughts
    return {**counts, "cachedContentTokenCount": usage["cache_read"]} if "cache_read" in usage else counts


def responses(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return the events of all items in order, between the start and end of the response."""
    response: dict[str, Any] = {"id": f"resp_{next(ids)}", "object": "response", "created_at": 1_700_000_000, "model": reply.model or model}
    response |= {"status": "in_progress", "error": None, "incomplete_details": None, "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
    ]
    items: list[dict[str, Any]] = []
    for index, (item, more) in enumerate(_items(reply, ids)):
        items.append(item)
        started: dict[str, Any] = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
        events.append({"type": "response.output_item.added", "output_index": index, "item": started})
        events += [{**event, "item_id": item["id"], "output_index": index} for event in more]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    if reply.finish is not None:
        status = "incomplete" if reply.finish in ("max_output_tokens", "content_filter") else reply.finish or "completed"
        ended = {**response, "status": status, "output": items, "usage": _responses_usage(reply.usage)}
        if status == "incomplete":
            ended["incomplete_details"] = {"reason": reply.finish}
        events.append({"type": f"response.{status}", "response": ended})
    numbers = itertools.count()
    return [b"event: %s\n" % event["type"].encode() + _data({**event, "sequence_number": next(numbers)}) for event in events]


def _items(reply: Reply, ids: Iterator[str]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return each completed item with the events between its start and end."""
    found: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if reply.reasoning:
        found.append(_thought(reply, next(ids)))
    if reply.text:
        found.append(_message(reply, next(ids)))
    if reply.picture:
        image = {"type": "image_generation_call", "id": f"ig_{next(ids)}", "status": "completed"}
        found.append(({**image, "result": base64.b64encode(reply.picture).decode(), "output_format": "png"}, []))
    for call in reply.tool_calls:
        item = {"type": "function_call", "id": f"fc_{next(ids)}", "call_id": call.id or f"call_{next(ids)}", "name": call.name}
        deltas: list[dict[str, Any]] = [
            {"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces(call.text, reply.chunk_size)
        ]
        done = {"type": "response.function_call_arguments.done", "arguments": call.text}
        found.append(({**item, "arguments": call.text, "status": "completed"}, [*deltas, done]))
    return found


def _thought(reply: Reply, id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    summary = {"type": "summary_text", "text": reply.reasoning}
    item = {"type": "reasoning", "id": f"rs_{id}", "summary": [summary], "encrypted_content": reply.signature}
    events: list[dict[str, Any]] = [{"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}}]
    events += [{"type": "response.reasoning_summary_text.delta", "delta": piece} for piece in pieces(reply.reasoning, reply.chunk_size)]
    events.append({"type": "response.reasoning_summary_text.done", "text": reply.reasoning})
    events.append({"type": "response.reasoning_summary_part.done", "part": summary})
    return item, [{**event, "summary_index": 0} for event in events]


def _message(reply: Reply, id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    content: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
    item: dict[str, Any] = {"type": "message", "id": f"msg_{id}", "role": "assistant", "status": "completed", "content": [content]}
    events: list[dict[str, Any]] = [{"type": "response.content_part.added", "part": {**content, "text": ""}}]
    events += [{"type": "response.output_text.delta", "delta": piece} for piece in pieces(reply.text, reply.chunk_size)]
    events.append({"type": "response.output_text.done", "text": reply.text})
    events.append({"type": "response.content_part.done", "part": content})
    return item, [{**event, "content_index": 0} for event in events]


def _responses_usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    counts: dict[str, Any] = {"input_tokens": usage.get("input", 0), "output_tokens": usage.get("output", 0)}
    counts["total_tokens"] = counts["input_tokens"] + counts["output_tokens"]
    counts["input_tokens_details"] = {"cached_tokens": usage.get("cache_read", 0), "cache_write_tokens": usage.get("cache_write", 0)}
    return {**counts, "output_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)}}


def drawn(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return the response to an image request, without an image if the script has none."""
    rows = [{"b64_json": base64.b64encode(reply.picture).decode(), "revised_prompt": reply.text}] if reply.picture else []
    return [json_bytes({"created": 1_700_000_000, "data": rows, "output_format": "png", "usage": _responses_usage(reply.usage)})]


def heard(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return a transcript."""
    return [json_bytes({"text": reply.text, "usage": _responses_usage(reply.usage)})]


def _object(call: ToolCall) -> Any:
    """Return the parsed arguments, for formats without JSON text. Invalid JSON is sent as is."""
    try:
        return json.loads(call.text)
    except ValueError:
        return call.text


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + json_bytes(value) + b"\n\n"
