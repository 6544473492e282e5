"""Conversations as notebooks of version 1. Their reader rejects files with messages out of order or calls without output."""

from __future__ import annotations

from moot.formats._steps import Step, data_of, model_calls, output_text, pretty, weaker
from moot.formats._writing import fidelity_of, steps_of
from moot.formats.mtm.attachments import ghost_block
from moot.formats.mtm.native_shape import ANTHROPIC, REASONS, SIGNATURES
from moot.formats.mtm.writing import is_picture, metadata_of
from moot.types.canonical import Json, JsonObject
from moot.types.format import ExportedConversation, Keeping, Written
from moot.types.message import Message
from moot.types.part import Part, is_settled, text_of, tool_name

__all__ = ["HOLDS_ONE", "version_one"]

HOLDS_ONE: dict[str, Keeping] = {
    "messages": "kept",
    "titles": "kept",
    "pictures": "kept",
    "times": "kept",
    "models": "kept",
    "reasoning": "kept",
    "files": "approximated",
    "signatures": "approximated",
    "tool calls": "approximated",
    "usage": "approximated",
    "costs": "approximated",
}
"""Only one provider's signatures are kept. Adjacent model calls are merged and their usage is added up."""
_APIS = {"anthropic": ANTHROPIC, "openai": "openai-responses", "google": "google-generative-ai"}
_OTHER_API = "openai-completions"
_NONE = "no output was stored"


def version_one(exported: ExportedConversation) -> Written:
    book = _Book()
    for message in exported.messages:
        book.take(message)
    value: JsonObject = {"formatVersion": 1, "metadata": metadata_of(exported), "context": list[Json](book.context)}
    if book.notes:
        value["notes"] = list[Json](book.notes)
    fidelity = fidelity_of(exported, HOLDS_ONE, *book.left)
    return Written(pretty(value), weaker(fidelity, "messages", len(book.notes)))


class _Book:
    """Builder of a notebook's messages."""

    def __init__(self) -> None:
        self.context: list[JsonObject] = []
        self.notes: list[JsonObject] = []
        self.left: list[Part] = []
        self._prompts = 0

    def take(self, message: Message) -> None:
        if message.role == "system":
            self.notes.append({"beforeUserIndex": self._prompts, "markdown": text_of(message.parts)})
        elif message.role == "user":
            self._prompt(message)
        else:
            if not self._prompts:
                self._prompt(Message("", "user"))
            self.left += (part for part in message.parts if part.get("type") == "file")
            recorded = steps_of(message)
            for at, step in enumerate(model_calls(message)):
                self._step(message, step, recorded[at] if at < len(recorded) else {})

    def _prompt(self, message: Message) -> None:
        self._prompts += 1
        content: Json = text_of(message.parts)
        if any(map(is_picture, message.parts)):
            content = [block for part in message.parts if (block := self._block(part)) is not None]
        record: JsonObject = {"role": "user", "content": content} | _at(message)
        ghost, others = ghost_block(message.parts, message.metadata)
        self.left += others
        self.context.append({**record, "mutsumi": {"ghostBlock": ghost}} if ghost is not None else record)

    def _block(self, part: Part) -> JsonObject | None:
        if part.get("type") == "text":
            return {"type": "text", "text": part.get("text", "")}
        if not is_picture(part):
            return None
        if data_of(part) is None or ";base64," not in str(part.get("url")):
            self.left.append(part)
            return None
        return {"type": "image", "data": str(part["url"]).partition(",")[2], "mimeType": part["mediaType"]}

    def _step(self, message: Message, step: Step, recorded: JsonObject) -> None:
        model, _, provider = str(recorded.get("model") or "").rpartition("@")
        provider = provider if model else str(message.metadata.get("provider") or "unknown")
        model = model or str(message.metadata.get("model") or "unknown")
        api = _APIS.get(provider, _OTHER_API)
        content = [_thought(part, api, provider) for part in step.reasoning]
        if step.text:
            content.append({"type": "text", "text": step.text})
        content += [_call(call) for call in step.calls]
        last = self.context[-1]
        if last.get("role") == "assistant":  # consecutive assistant messages are rejected
            self._join(last, content, recorded)
        else:
            record: JsonObject = {"role": "assistant", "content": list[Json](content), "api": api, "provider": provider, "model": model}
            record["usage"] = _usage(recorded)
            self.context.append(record | _at(message))
        reasons = {ours: theirs for theirs, ours in REASONS.items()}
        reason = reasons.get(str(recorded.get("finish_reason") or message.metadata.get("finish_reason")), "stop")
        self.context[-1]["stopReason"] = "toolUse" if step.calls else reason
        self.context += [_result(call) | _at(message) for call in step.calls]

    def _join(self, record: JsonObject, content: list[JsonObject], recorded: JsonObject) -> None:
        blocks, usage, more = record["content"], record["usage"], _usage(recorded)
        assert isinstance(blocks, list) and isinstance(usage, dict)
        record["content"] = [*blocks, *content]
        record["usage"] = _sum(usage, more)


def _thought(part: Part, api: str, provider: str) -> JsonObject:
    block: JsonObject = {"type": "thinking", "thinking": part.get("text", "")}
    return block | _signed(part.get("providerMetadata"), api, provider)


def _signed(metadata: Json, api: str, provider: str) -> JsonObject:
    """Return the signatures of this message's provider, and of no other."""
    noted = metadata if isinstance(metadata, dict) else {}
    own, theirs = noted.get("mutsumi"), noted.get("anthropic")
    if isinstance(own, dict) and own.get("provider") == provider:
        return {name: own[name] for name in (*SIGNATURES, "redacted") if name in own}
    if api == ANTHROPIC and isinstance(theirs, dict) and theirs.get("signature"):
        return {"thinkingSignature": theirs["signature"]}
    return {}


def _call(call: Part) -> JsonObject:
    value = call.get("input")
    arguments: JsonObject = value if isinstance(value, dict) else {"value": value}
    return {"type": "toolCall", "id": str(call.get("toolCallId")), "name": tool_name(call), "arguments": arguments}


def _result(call: Part) -> JsonObject:
    text = output_text(call) if is_settled(call) else _NONE
    record: JsonObject = {"role": "toolResult", "toolCallId": str(call.get("toolCallId")), "toolName": tool_name(call)}
    return {**record, "content": [{"type": "text", "text": text}], "isError": call.get("state") != "output-available"}


def _usage(recorded: JsonObject) -> JsonObject:
    usage = recorded.get("usage")
    counts = {name: count for name, count in usage.items() if type(count) is int} if isinstance(usage, dict) else {}
    read, write = counts.get("cache_read", 0), counts.get("cache_write", 0)
    fresh, output, cost = max(0, counts.get("input", 0) - read - write), counts.get("output", 0), recorded.get("cost")
    total = cost / 1e9 if isinstance(cost, int) else 0
    return {
        "input": fresh,
        "output": output,
        "cacheRead": read,
        "cacheWrite": write,
        "totalTokens": fresh + output + read + write,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": total},
    }


def _sum(one: JsonObject, other: JsonObject) -> JsonObject:
    total: JsonObject = {}
    for name, value in one.items():
        more = other.get(name)
        if isinstance(value, dict) and isinstance(more, dict):
            total[name] = _sum(value, more)
        elif isinstance(value, int | float) and isinstance(more, int | float):
            total[name] = value + more
    return total


def _at(message: Message) -> JsonObject:
    return {"timestamp": message.created_at} if message.created_at else {}
