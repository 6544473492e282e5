"""Rows as messages: parts of version 2 or blocks of version 1, with model and usage."""

from __future__ import annotations

from moot.formats._source.fields import milliseconds, money
from moot.formats._source.pieces import object_in
from moot.formats.cherry.blocks import parts_of_blocks
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedMessage, ImportedRecord
from moot.types.part import Part

__all__ = ["message_of", "model_of"]

_ROLES = ("user", "assistant", "system")
_COUNTS = {
    "input": ("inputTokens", "promptTokens", "prompt_tokens"),
    "output": ("outputTokens", "completionTokens", "completion_tokens"),
    "reasoning": ("reasoningTokens", "thoughtsTokens", "thoughts_tokens"),
}


def message_of(row: JsonObject, raw: bytes, parent: str | None) -> ImportedMessage | ImportedRecord:
    """Return the message of a row, or the row as a record with its problem."""
    content = object_in(row.get("data")) or object_in(row.get("content"))
    if not content:
        return ImportedRecord(raw, row, f"row {row.get('id')!r} has no readable content")
    inner = content.get("message")
    message = inner if isinstance(inner, dict) else {}
    role = message.get("role") or row.get("role")
    if role not in _ROLES:
        return ImportedRecord(raw, row, f"row {row.get('id')!r} has the role {role!r}")
    data = message.get("data")
    blocks = content.get("blocks") or (data.get("blocks") if isinstance(data, dict) else None)
    parts = _parts(content, message) or parts_of_blocks(blocks)
    if row.get("status") == "pending" and not parts:
        return ImportedRecord(raw, row, f"row {row.get('id')!r} is a pending answer without content")
    id = message.get("id") or row.get("id")
    at = milliseconds(message.get("createdAt")) or milliseconds(row.get("created_at"))
    return ImportedMessage(role, tuple(parts), str(id), raw, parent, at, _metadata(row, message) if role == "assistant" else {})


def model_of(value: Json) -> tuple[str, str]:
    """Split `provider::model`, or `provider:model` of version 1, into (model, provider)."""
    text = value if isinstance(value, str) else ""
    sign = "::" if "::" in text else ":"
    provider, found, model = text.partition(sign)
    return (model, provider) if found else (text, "")


def _parts(content: JsonObject, message: JsonObject) -> list[Part]:
    data = message.get("data")
    for holder in (content, data, message):
        parts = holder.get("parts") if isinstance(holder, dict) else None
        if isinstance(parts, list) and parts:
            return [part for part in parts if isinstance(part, dict) and isinstance(part.get("type"), str)]
    return []


def _metadata(row: JsonObject, message: JsonObject) -> JsonObject:
    named = row.get("model_id") or message.get("modelId")
    model, provider = model_of(named)
    snapshot = object_in(row.get("message_snapshot")) or object_in(row.get("model_snapshot")) or object_in(row.get("model_meta")) or message
    about = snapshot.get("model")
    if isinstance(about, dict):
        model, provider = str(about.get("id") or model), str(about.get("provider") or provider)
    metadata: JsonObject = {name: value for name, value in (("model", model), ("provider", provider)) if value}
    stats = object_in(row.get("stats")) or object_in(message.get("usage"))
    step: JsonObject = {"step": 1, "usage": _usage(stats), "cost": _cost(stats)}
    if model:
        step["model"] = f"{model}@{provider}" if provider else model
    if isinstance(ms := stats.get("timeCompletionMs"), int | float):
        step["ms"] = int(ms)
    status = row.get("status") or message.get("status")
    more: JsonObject = {"steps": [step]} if step["usage"] or step["cost"] is not None else {}
    more |= {"finish_reason": "error"} if status == "error" else {}
    return {**metadata, **more}


def _usage(stats: JsonObject) -> JsonObject:
    inputs, outputs = object_in(stats.get("inputTokenDetails")), object_in(stats.get("outputTokenDetails"))
    found: JsonObject = {}
    for name, keys in _COUNTS.items():
        count = next((value for key in keys if type(value := stats.get(key, outputs.get(key))) is int), None)
        if count is not None:
            found[name] = count
    for name, key in (("cache_read", "cacheReadTokens"), ("cache_write", "cacheWriteTokens")):
        if type(count := inputs.get(key)) is int:
            found[name] = count
    return found


def _cost(stats: JsonObject) -> int | None:
    """Return the cost if all amounts are in dollars. Other currencies are ignored."""
    costs = stats.get("costs")
    if isinstance(costs, list):
        dollars = [one.get("amount") for one in costs if isinstance(one, dict) and one.get("currency") in ("USD", "$")]
        amounts = [amount for amount in dollars if isinstance(amount, int | float)]
        return round(sum(amounts) * 1e9) if amounts and len(amounts) == len(costs) else None
    return money(stats, "cost")
