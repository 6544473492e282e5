"""Conversion of conversations to chats of clai. To continue a chat, put it into `conversations/` and delete `chat_index.cache`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from moot.formats.kit.fidelity import fidelity_of, is_picture, steps_of
from moot.formats.kit.fields import iso_of
from moot.formats.kit.steps import Step, counts_of, function_call, model_calls, output_text, pretty_bytes
from moot.types.canonical import Json, JsonObject
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel
from moot.types.message import Message, Part, is_settled, text_of, tool_name

HOLDS: dict[str, FidelityLevel] = {
    **dict.fromkeys(("messages", "pictures", "costs"), "kept"),
    **dict.fromkeys(("reasoning", "tool calls", "times", "models", "usage"), "approximated"),
}
"""Fidelity of the items that the format can hold. The reasoning of a model call is joined, tool outputs become text, only answers have
times, and cache writes are omitted.
"""


def write_chat(exported: ExportedConversation) -> ExportFile:
    conversation = exported.conversation
    messages: list[Json] = []
    queries: list[Json] = []
    prompt = 0
    for message in exported.messages:
        if message.role == "user":
            prompt = len(messages)
        if message.role != "assistant":
            messages.append({"role": message.role, "content": _content(message)})
        else:
            messages += (record for step in model_calls(message) for record in _step(step))
        queries += (_query(message, step, prompt) for step in steps_of(message))
    value: JsonObject = {"created": iso_of(conversation.created_at), "id": conversation.id, "source": "moot", "source_id": conversation.id}
    value |= {"profile": conversation.agent} if conversation.agent not in ("", "default") else {}
    value |= {"origin_dir": conversation.directory} if conversation.directory else {}
    first = next((text_of(message.parts) for message in exported.messages if message.role == "user"), "")
    value |= {"group_key": hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()} if first else {}
    value |= {"messages": messages} | ({"queries": queries} if queries else {})
    # clai can't store pictures of an answer
    lost = [part for message in exported.messages if message.role == "assistant" for part in message.parts if is_picture(part)]
    return ExportFile(pretty_bytes(value) + b"\n", fidelity_of(exported, HOLDS, *lost))


def _step(step: Step) -> Iterator[JsonObject]:
    record: JsonObject = {"role": "assistant", "content": step.text}
    if step.thought:
        record["reasoning_content"] = step.thought
    if step.calls:
        record["tool_calls"] = [_call(call) for call in step.calls]
    yield record
    for call in step.calls:
        if is_settled(call):
            yield {"role": "tool", "tool_call_id": str(call.get("toolCallId")), "content": output_text(call)}


def _call(call: Part) -> JsonObject:
    inputs: JsonObject = {"inputs": call["input"]} if isinstance(call.get("input"), dict) else {}
    return {"id": str(call.get("toolCallId")), "name": tool_name(call), "type": "function", **inputs, **function_call(call)}


def _content(message: Message) -> Json:
    """Return plain text, or parts if there is a picture."""
    if not any(map(is_picture, message.parts)):
        return text_of(message.parts)
    content: list[Json] = []
    for part in message.parts:
        if part.get("type") == "text":
            content.append({"type": "text", "text": part.get("text", "")})
        elif is_picture(part):
            content.append({"type": "image_url", "image_url": {"url": part.get("url", ""), "detail": part.get("detail") or "auto"}})
    return content


def _query(message: Message, step: JsonObject, prompt: int) -> JsonObject:
    model, _, provider = str(step.get("model") or message.metadata.get("model") or "").rpartition("@")
    cost = step.get("cost")
    return {
        "created_at": iso_of(message.created_at),
        **({"cost_usd": cost / 1e9} if isinstance(cost, int) else {}),
        "current_index": prompt,
        "model": (f"{provider}:{model}" if provider == "ollama" else model) or provider,
        "usage": _usage(counts_of(step)),
    }


def _usage(counts: dict[str, int]) -> JsonObject:
    input_tokens, output_tokens = counts.get("input", 0), counts.get("output", 0)
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        "prompt_tokens_details": {"cached_tokens": counts.get("cache_read", 0), "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counts.get("reasoning", 0),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
