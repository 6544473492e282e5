"""Conversion of conversations to notebooks. The fork's reader rejects files with messages out of order or calls without output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.convert.files.attachments import decode_data_url
from moot.formats.apps.mtm.attachments import write_snapshots
from moot.formats.apps.mtm.reader import ANTHROPIC, FORMATS, OWN, REASONS, SIGNATURES
from moot.formats.kit.fidelity import fidelity_of, is_picture, steps_of
from moot.formats.kit.fields import iso_of, items, obj
from moot.formats.kit.steps import Step, approximate, counts_of, function_call, model_calls, output_text, pretty_bytes
from moot.types.canonical import Json, JsonObject, empty
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel
from moot.types.message import Message, Part, is_settled, text_of, tool_name

HOLDS: dict[str, FidelityLevel] = {
    **dict.fromkeys(("messages", "titles", "pictures"), "kept"),
    **dict.fromkeys(("files", "reasoning", "tool calls"), "approximated"),
}
"""Fidelity of the items that the format can hold.
Text files become context snapshots, the reasoning of a model call is joined, and tool outputs become text.
"""


def unversioned(exported: ExportedConversation) -> ExportFile:
    context: list[Json] = []
    left: list[Part] = []
    for message in exported.messages:
        context += _user(message, left) if message.role == "user" else _others(message, left)
    return ExportFile(pretty_bytes({"metadata": metadata_of(exported), "context": context}), fidelity_of(exported, HOLDS, *left))


def metadata_of(exported: ExportedConversation) -> JsonObject:
    """Return the notebook's metadata, which grants access only to the conversation's folders. If the conversation was imported from a
    notebook, its metadata is kept.
    """
    conversation = exported.conversation
    origin = conversation.origin if conversation.origin is not None and conversation.origin.get("format") in FORMATS else empty()
    kept: JsonObject = {name: value for name, value in obj(origin, "metadata").items() if name not in OWN}
    allowed = conversation.allowed_uris or (conversation.directory,)
    facts: JsonObject = {
        "uuid": str(origin.get("source_id") or conversation.id),
        "name": conversation.title or "moot",
        "created_at": iso_of(conversation.created_at),
        "parent_agent_id": conversation.parent,
        "allowed_uris": [uri if uri.startswith("file:") else Path(uri).as_uri() for uri in allowed if uri.startswith(("file:", "/"))],
    }
    facts |= {"agentType": origin["agent"]} if "agent" in origin else {}
    facts |= {"is_task_finished": True} if conversation.is_task_finished else {}
    model, at, provider = conversation.model.rpartition("@")
    if at:
        facts |= {"model": model, "provider": provider}
    return {**facts, "contextItems": [], "activeRules": [], **kept}


def _user(message: Message, left: list[Part]) -> Iterator[JsonObject]:
    shown = [part for part in message.parts if part.get("type") == "text" or is_picture(part)]
    linked = "".join(f"![image]({part.get('url', '')})" if is_picture(part) else str(part.get("text", "")) for part in shown)
    # a Markdown link can't contain a picture's level of detail
    content: Json = [_piece(part) for part in shown] if any(part.get("detail") for part in shown) else linked
    record: JsonObject = {"role": "user", "content": content}
    ghost, others = write_snapshots(message.parts, message.metadata)
    left += others
    yield {**record, "metadata": {"last_ghost_block": ghost}} if ghost is not None else record


def _piece(part: Part) -> JsonObject:
    if not is_picture(part):
        return {"type": "text", "text": part.get("text", "")}
    detail: JsonObject = {"detail": part["detail"]} if part.get("detail") else {}
    return {"type": "image_url", "image_url": {"url": part.get("url"), **detail}}


def _others(message: Message, left: list[Part]) -> Iterator[JsonObject]:
    left += (part for part in message.parts if part.get("type") == "file")
    if message.role == "system":
        yield {"role": "system", "content": text_of(message.parts)}
        return
    for step in model_calls(message):
        record: JsonObject = {"role": "assistant", "content": step.text or (None if step.calls else "")}
        if step.calls:
            record["tool_calls"] = [function_call(call) for call in step.calls]
        if step.thought:
            record["reasoning_content"] = step.thought
        yield record
        for call in step.calls:
            if is_settled(call):
                yield {"role": "tool", "tool_call_id": str(call.get("toolCallId")), "name": tool_name(call), "content": output_text(call)}


HOLDS_ONE: dict[str, FidelityLevel] = {
    **dict.fromkeys(("messages", "titles", "pictures", "times", "models", "reasoning"), "kept"),
    **dict.fromkeys(("files", "signatures", "tool calls", "usage", "costs"), "approximated"),
}
"""Fidelity of the items that version 1 can hold. Only the signatures of one provider are kept.
Adjacent model calls are merged and their usage is added up.
"""
_APIS = {"anthropic": ANTHROPIC, "openai": "openai-responses", "google": "google-generative-ai"}
_OTHER_API = "openai-completions"
_NONE = "no output was stored"


def version_one(exported: ExportedConversation) -> ExportFile:
    book = _Book()
    for message in exported.messages:
        book.take(message)
    value: JsonObject = {"formatVersion": 1, "metadata": metadata_of(exported), "context": list[Json](book.context)}
    if book.notes:
        value["notes"] = list[Json](book.notes)
    fidelity = fidelity_of(exported, HOLDS_ONE, *book.left)
    return ExportFile(pretty_bytes(value), approximate(fidelity, "messages", len(book.notes)))


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
        ghost, others = write_snapshots(message.parts, message.metadata)
        self.left += others
        self.context.append({**record, "mutsumi": {"ghostBlock": ghost}} if ghost is not None else record)

    def _block(self, part: Part) -> JsonObject | None:
        if part.get("type") == "text":
            return {"type": "text", "text": part.get("text", "")}
        if not is_picture(part):
            return None
        if decode_data_url(part) is None or ";base64," not in str(part.get("url")):
            self.left.append(part)
            return None
        detail: JsonObject = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image", "data": str(part["url"]).partition(",")[2], "mimeType": part["mediaType"], **detail}

    def _step(self, message: Message, step: Step, recorded: JsonObject) -> None:
        model, _, provider = str(recorded.get("model") or "").rpartition("@")
        provider = provider if model else str(message.metadata.get("provider") or "unknown")
        model = model or str(message.metadata.get("model") or "unknown")
        api = _APIS.get(provider, _OTHER_API)
        content = [_thought(part, api, provider) for part in step.reasoning]
        if step.text:
            content.append({"type": "text", "text": step.text})
        for call in step.calls:
            value = call.get("input")
            block: JsonObject = {"type": "toolCall", "id": str(call.get("toolCallId")), "name": tool_name(call)}
            content.append({**block, "arguments": value if isinstance(value, dict) else {"value": value}})
        last = self.context[-1]
        if last.get("role") == "assistant":  # consecutive assistant messages are rejected
            last["content"] = [*items(last, "content"), *content]
            last["usage"] = _sum(obj(last, "usage"), _usage(recorded))
        else:
            record: JsonObject = {"role": "assistant", "content": list[Json](content), "api": api, "provider": provider, "model": model}
            record["usage"] = _usage(recorded)
            self.context.append(record | _at(message))
        reasons = {ours: theirs for theirs, ours in REASONS.items()}
        reason = reasons.get(str(recorded.get("finish_reason") or message.metadata.get("finish_reason")), "stop")
        self.context[-1]["stopReason"] = "toolUse" if step.calls else reason
        for call in step.calls:
            output: JsonObject = {"type": "text", "text": output_text(call) if is_settled(call) else _NONE}
            result: JsonObject = {"role": "toolResult", "toolCallId": str(call.get("toolCallId")), "toolName": tool_name(call)}
            result |= {"content": [output], "isError": call.get("state") != "output-available"}
            self.context.append(result | _at(message))


def _thought(part: Part, api: str, provider: str) -> JsonObject:
    """Return a reasoning block with only the signatures of the provider that wrote the message."""
    block: JsonObject = {"type": "thinking", "thinking": part.get("text", "")}
    own, theirs = obj(part, "providerMetadata", "mutsumi"), obj(part, "providerMetadata", "anthropic")
    if own and own.get("provider") == provider:
        return block | {name: own[name] for name in (*SIGNATURES, "redacted") if name in own}
    if api == ANTHROPIC and theirs.get("signature"):
        block["thinkingSignature"] = theirs["signature"]
    return block


def _usage(recorded: JsonObject) -> JsonObject:
    counts = counts_of(recorded)
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
