"""Messages of notebooks of version 1: native blocks with the usage of each model call."""

from __future__ import annotations

from collections.abc import Iterator

from moot.formats._saying import call as call_part
from moot.formats._saying import output_value
from moot.formats._source.documents import Element
from moot.formats._source.fields import milliseconds, money, objects
from moot.formats._source.turns import Turns
from moot.formats.mtm.attachments import ghosts
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedMessage, ImportedRecord
from moot.types.part import Part, text_part

__all__ = ["ANTHROPIC", "REASONS", "SIGNATURES", "native_message"]

ANTHROPIC = "anthropic-messages"
SIGNATURES = ("textSignature", "thinkingSignature", "thoughtSignature")
REASONS = {"stop": "stop", "length": "length", "toolUse": "tool-calls", "error": "error", "aborted": "other"}
_COUNTS = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}


def native_message(turns: Turns, element: Element, value: JsonObject) -> Iterator[ImportedMessage | ImportedRecord]:
    id, role, at = str(element.number - 1), value.get("role"), milliseconds(value.get("timestamp"))
    blocks = value.get("content")
    match role:
        case "user":
            extension = value.get("mutsumi")
            attached, notes = ghosts(extension.get("ghostBlock") if isinstance(extension, dict) else None)
            yield from turns.say("user", id, element.raw, [*_given(blocks), *attached], at=at, metadata=notes)
        case "assistant":
            parts = [part for block in objects(blocks) if (part := _block(block, value)) is not None]
            turns.step(id, element.raw, parts, lead=element.lead, at=at, facts=_facts(value))
        case "toolResult":
            call, name = str(value.get("toolCallId") or ""), str(value.get("toolName") or "")
            failed = value.get("isError") is True
            turns.output(call, id, element.raw, name=name, lead=element.lead, output=_output(blocks), failed=failed)
        case _:
            yield from turns.end()
            yield turns.broken(element.raw, f"message {element.number} has the role {role!r}", body=value)


def _given(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [part for block in objects(content) if (part := _shown(block)) is not None]


def _shown(block: JsonObject) -> Part | None:
    if block.get("type") == "image" and isinstance(data := block.get("data"), str):
        kind = str(block.get("mimeType") or "image/png")
        return {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{data}"}
    text = block.get("text")
    return text_part(text) if isinstance(text, str) and text else None


def _block(block: JsonObject, message: JsonObject) -> Part | None:
    match block.get("type"):
        case "thinking":
            part: Part = {"type": "reasoning", "text": str(block.get("thinking") or ""), "state": "done"}
            return part | _sealed(block, message, "providerMetadata")
        case "toolCall":
            call = call_part(str(block.get("id") or ""), str(block.get("name") or ""), block.get("arguments"))
            return call | _sealed(block, message, "callProviderMetadata")
        case _:
            shown = _shown(block)
            return shown | _sealed(block, message, "providerMetadata") if shown is not None else None


def _sealed(block: JsonObject, message: JsonObject, name: str) -> JsonObject:
    """Return the provider's signatures, under its dialect if known, so that they can be sent back."""
    signed: JsonObject = {key: block[key] for key in (*SIGNATURES, "redacted") if block.get(key)}
    if not signed:
        return {}
    api, provider = message.get("api"), message.get("provider")
    if api == ANTHROPIC and list(signed) == ["thinkingSignature"]:
        return {name: {"anthropic": {"signature": signed["thinkingSignature"], "provider": provider}}}
    return {name: {"mutsumi": {**signed, "api": api, "provider": provider}}}


def _output(content: Json) -> Json:
    if isinstance(content, str):
        return content
    return output_value([{name: value for name, value in part.items() if name != "state"} for part in _given(content)])


def _facts(value: JsonObject) -> JsonObject:
    facts: JsonObject = {name: value[name] for name in ("model", "provider") if isinstance(value.get(name), str)}
    if reason := REASONS.get(str(value.get("stopReason"))):
        facts["finish_reason"] = reason
    usage = value.get("usage")
    if isinstance(usage, dict):
        counts = {ours: count for theirs, ours in _COUNTS.items() if type(count := usage.get(theirs)) is int}
        cached = counts.get("cache_read", 0) + counts.get("cache_write", 0)
        if "input" in counts:
            counts["input"] += cached  # Mutsumi's count excludes cached tokens
        facts["usage"] = {name: count for name, count in counts.items() if count or name in ("input", "output")}
        if (cost := money(usage, "cost", "total")) is not None:
            facts["cost"] = cost
    return facts
