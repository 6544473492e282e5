"""Replies in the wire format of each dialect: the frames of a stream, and the bodies of errors."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from moot.testing.script import Reply, ToolCall, Usage

Object = dict[str, Any]


def split_text(text: str, size: int) -> list[str]:
    """Split the text into pieces of that many characters."""
    return [text[start : start + size] for start in range(0, len(text), max(1, size))]


def json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def ollama(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return lines of JSON. A call is complete in a single line."""
    base = {"model": reply.model or model, "created_at": "2026-01-01T00:00:00.000000000Z"}

    def line(message: Object, **more: Any) -> bytes:
        return json_bytes({**base, "message": {"role": "assistant", **message}, "done": False, **more}) + b"\n"

    made = [line({"content": "", "thinking": piece}) for piece in split_text(reply.reasoning, reply.chunk_size)]
    made += [line({"content": piece}) for piece in split_text(reply.text, reply.chunk_size)]
    for call in reply.tool_calls:
        function = {"name": call.name, "arguments": _object(call)}
        made.append(line({"content": "", "tool_calls": [{**({"id": call.id} if call.id else {}), "function": function}]}))
    if reply.picture:
        made.append(line({"content": "", "images": [base64.b64encode(reply.picture).decode()]}))
    if reply.finish is None:
        return made
    totals: Object = {"total_duration": 5_000_000, "load_duration": 1_000_000}
    if reply.usage is not None:
        totals |= {"prompt_eval_count": reply.usage.get("input", 0), "eval_count": reply.usage.get("output", 0)}
    return [*made, line({"content": ""}, done=True, done_reason=reply.finish or "stop", **totals)]


def google(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return one complete response per event. The signature is on the first call, or on an empty text at the end."""
    base = {"modelVersion": reply.model or model, "responseId": f"resp-{next(ids)}"}
    parts: list[Object] = [{"text": piece, "thought": True} for piece in split_text(reply.reasoning, reply.chunk_size)]
    parts += [{"text": piece} for piece in split_text(reply.text, reply.chunk_size)]
    if reply.picture:
        parts.append({"inlineData": {"mimeType": "image/png", "data": base64.b64encode(reply.picture).decode()}})
    calls: list[Object] = [
        {"functionCall": {"name": call.name, "args": _object(call), **({"id": call.id} if call.id else {})}} for call in reply.tool_calls
    ]
    if reply.reasoning:
        signed = calls[0] if calls else {"text": ""}
        signed["thoughtSignature"] = reply.signature
        calls = calls or [signed]
    made = [_data({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], **base}) for part in [*parts, *calls]]
    if reply.finish is None:
        return made
    last: Object = {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": reply.finish or "STOP", "index": 0}]}
    if reply.usage is not None:
        used, output, thoughts = reply.usage.get("input", 0), reply.usage.get("output", 0), reply.usage.get("reasoning", 0)
        counts = {"promptTokenCount": used, "candidatesTokenCount": output - thoughts, "totalTokenCount": used + output}
        cached = {"cachedContentTokenCount": reply.usage["cache_read"]} if "cache_read" in reply.usage else {}
        last["usageMetadata"] = {**counts, **({"thoughtsTokenCount": thoughts} if thoughts else {}), **cached}
    return [*made, _data({**last, **base})]


def responses(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return the events of all items in order, between the start and end of the response."""
    response: Object = {"id": f"resp_{next(ids)}", "object": "response", "created_at": 1_700_000_000, "model": reply.model or model}
    response |= {"status": "in_progress", "error": None, "incomplete_details": None, "output": [], "usage": None}
    events: list[Object] = [{"type": "response.created", "response": response}, {"type": "response.in_progress", "response": response}]
    items: list[Object] = []
    for index, (item, more) in enumerate(_items(reply, ids)):
        items.append(item)
        started: Object = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
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


def _items(reply: Reply, ids: Iterator[str]) -> list[tuple[Object, list[Object]]]:
    """Return each completed item with the events between its start and end."""
    found: list[tuple[Object, list[Object]]] = []
    if reply.reasoning:
        found.append(_thought(reply, next(ids)))
    if reply.text:
        found.append(_message(reply, next(ids)))
    if reply.picture:
        image = {"type": "image_generation_call", "id": f"ig_{next(ids)}", "status": "completed"}
        found.append(({**image, "result": base64.b64encode(reply.picture).decode(), "output_format": "png"}, []))
    for call in reply.tool_calls:
        item = {"type": "function_call", "id": f"fc_{next(ids)}", "call_id": call.id or f"call_{next(ids)}", "name": call.name}
        deltas: list[Object] = [
            {"type": "response.function_call_arguments.delta", "delta": piece} for piece in split_text(call.text, reply.chunk_size)
        ]
        done = {"type": "response.function_call_arguments.done", "arguments": call.text}
        found.append(({**item, "arguments": call.text, "status": "completed"}, [*deltas, done]))
    return found


def _thought(reply: Reply, id: str) -> tuple[Object, list[Object]]:
    summary = {"type": "summary_text", "text": reply.reasoning}
    item = {"type": "reasoning", "id": f"rs_{id}", "summary": [summary], "encrypted_content": reply.signature}
    events: list[Object] = [{"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}}]
    events += [{"type": "response.reasoning_summary_text.delta", "delta": piece} for piece in split_text(reply.reasoning, reply.chunk_size)]
    events.append({"type": "response.reasoning_summary_text.done", "text": reply.reasoning})
    events.append({"type": "response.reasoning_summary_part.done", "part": summary})
    return item, [{**event, "summary_index": 0} for event in events]


def _message(reply: Reply, id: str) -> tuple[Object, list[Object]]:
    content: Object = {"type": "output_text", "text": reply.text, "annotations": []}
    item: Object = {"type": "message", "id": f"msg_{id}", "role": "assistant", "status": "completed", "content": [content]}
    events: list[Object] = [{"type": "response.content_part.added", "part": {**content, "text": ""}}]
    events += [{"type": "response.output_text.delta", "delta": piece} for piece in split_text(reply.text, reply.chunk_size)]
    events.append({"type": "response.output_text.done", "text": reply.text})
    events.append({"type": "response.content_part.done", "part": content})
    return item, [{**event, "content_index": 0} for event in events]


def _responses_usage(usage: Usage | None) -> Object | None:
    if usage is None:
        return None
    counts: Object = {"input_tokens": usage.get("input", 0), "output_tokens": usage.get("output", 0)}
    counts["total_tokens"] = counts["input_tokens"] + counts["output_tokens"]
    counts["input_tokens_details"] = {"cached_tokens": usage.get("cache_read", 0), "cache_write_tokens": usage.get("cache_write", 0)}
    return {**counts, "output_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)}}


def image_response(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return the response to an image request, without an image if the script has none."""
    rows = [{"b64_json": base64.b64encode(reply.picture).decode(), "revised_prompt": reply.text}] if reply.picture else []
    return [json_bytes({"created": 1_700_000_000, "data": rows, "output_format": "png", "usage": _responses_usage(reply.usage)})]


def transcript_response(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    """Return a transcript."""
    return [json_bytes({"text": reply.text, "usage": _responses_usage(reply.usage)})]


def _object(call: ToolCall) -> Any:
    """Return the parsed arguments, for formats without JSON text. Invalid JSON is sent as is."""
    try:
        return json.loads(call.text)
    except ValueError:
        return call.text


def _data(value: Object) -> bytes:
    return b"data: " + json_bytes(value) + b"\n\n"


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

    def frame(delta: Object, finish: str | None = None) -> bytes:
        return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    made = [frame({"role": "assistant", "content": ""})]
    made += [frame({"reasoning_content": piece}) for piece in split_text(reply.reasoning, reply.chunk_size)]
    made += [frame({"content": piece}) for piece in split_text(reply.text, reply.chunk_size)]
    for index, call in enumerate(reply.tool_calls):
        head = {"name": call.name, "arguments": ""}
        made.append(frame({"tool_calls": [{"index": index, "id": call.id or f"call_{next(ids)}", "type": "function", "function": head}]}))
        pieces = split_text(call.text, reply.chunk_size)
        made += [frame({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in pieces]
    if reply.finish is None:
        return made
    made.append(frame({}, reply.finish or ("tool_calls" if reply.tool_calls else "stop")))
    if reply.usage is not None:
        used, output = reply.usage.get("input", 0), reply.usage.get("output", 0)
        counts: Object = {"prompt_tokens": used, "completion_tokens": output, "total_tokens": used + output}
        if "cache_read" in reply.usage:
            counts["prompt_tokens_details"] = {"cached_tokens": reply.usage["cache_read"]}
        if "reasoning" in reply.usage:
            counts["completion_tokens_details"] = {"reasoning_tokens": reply.usage["reasoning"]}
        made.append(_data({**base, "choices": [], "usage": counts}))
    return [*made, b"data: [DONE]\n\n"]


def _messages(reply: Reply, model: str, ids: Iterator[str]) -> list[bytes]:
    message: Object = {"id": f"msg_{next(ids)}", "type": "message", "role": "assistant", "model": reply.model or model, "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": _messages_usage(reply.usage or {}, output=1)}
    made = [_event("message_start", {"message": message}), _event("ping", {})]
    blocks: list[list[bytes]] = []
    if reply.reasoning:
        deltas: list[Object] = [{"type": "thinking_delta", "thinking": piece} for piece in split_text(reply.reasoning, reply.chunk_size)]
        deltas.append({"type": "signature_delta", "signature": reply.signature})
        blocks.append(_block(len(blocks), {"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if reply.text:
        pieces = [{"type": "text_delta", "text": piece} for piece in split_text(reply.text, reply.chunk_size)]
        blocks.append(_block(len(blocks), {"type": "text", "text": ""}, pieces))
    for call in reply.tool_calls:
        head: Object = {"type": "tool_use", "id": call.id or f"toolu_{next(ids)}", "name": call.name, "input": {}}
        inputs = [{"type": "input_json_delta", "partial_json": piece} for piece in split_text(call.text, reply.chunk_size)]
        blocks.append(_block(len(blocks), head, inputs))
    made += [frame for block in blocks for frame in block]
    if reply.finish is None:
        return made
    reason = reply.finish or ("tool_use" if reply.tool_calls else "end_turn")
    delta: Object = {"delta": {"stop_reason": reason, "stop_sequence": None}}
    if reply.usage is not None:
        delta["usage"] = {"output_tokens": reply.usage.get("output", 0)}
    return [*made, _event("message_delta", delta), _event("message_stop", {})]


def _messages_usage(usage: Usage, output: int) -> dict[str, int]:
    read, write = usage.get("cache_read", 0), usage.get("cache_write", 0)
    counts = {"input_tokens": usage.get("input", 0) - read - write, "output_tokens": output}
    if read or write:
        counts |= {"cache_read_input_tokens": read, "cache_creation_input_tokens": write}
    return counts


def _block(index: int, head: Object, deltas: list[Object]) -> list[bytes]:
    made = [_event("content_block_start", {"index": index, "content_block": head})]
    made += [_event("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
    return [*made, _event("content_block_stop", {"index": index})]


def _event(name: str, value: Object) -> bytes:
    return b"event: %s\n%s" % (name.encode(), _data({"type": name, **value}))


_DIALECTS: dict[str, Callable[[Reply, str, Iterator[str]], list[bytes]]] = {
    "anthropic": _messages,
    "google": google,
    "ollama": ollama,
    "pictures": image_response,
    "sounds": transcript_response,
    "openai-responses": responses,
}
"""All other dialects use chat completions."""
