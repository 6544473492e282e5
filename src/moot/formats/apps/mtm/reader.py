"""Notebooks as conversations: unversioned ones with OpenAI's messages, and version 1 with native blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats.apps.mtm.attachments import read_snapshots, with_pictures
from moot.formats.kit.answers import Turns
from moot.formats.kit.fields import milliseconds, money, objects, text
from moot.formats.kit.json import Element, PartialDocument, json_value, load_document
from moot.formats.kit.records import media_type_of, output_value
from moot.formats.kit.records import tool_call as call_part
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedMessage, ImportedRecord
from moot.types.message import Part, text_part

__all__ = ["ANTHROPIC", "REASONS", "SIGNATURES", "VERSION", "native_message", "openai_message", "read_file"]


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
            attached, notes = read_snapshots(extension.get("ghostBlock") if isinstance(extension, dict) else None)
            yield from turns.say("user", id, element.raw, [*_native_content(blocks), *attached], at=at, metadata=notes)
        case "assistant":
            parts = [part for block in objects(blocks) if (part := _block(block, value)) is not None]
            turns.step(id, element.raw, parts, lead=element.lead, at=at, facts=_step_facts(value))
        case "toolResult":
            call, name = str(value.get("toolCallId") or ""), str(value.get("toolName") or "")
            failed = value.get("isError") is True
            turns.output(call, id, element.raw, name=name, lead=element.lead, output=_output(blocks), failed=failed)
        case _:
            yield from turns.end()
            yield turns.broken(element.raw, f"message {element.number} has the role {role!r}", body=value)


def _native_content(content: Json) -> list[Part]:
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
            return part | _signatures(block, message, "providerMetadata")
        case "toolCall":
            call = call_part(str(block.get("id") or ""), str(block.get("name") or ""), block.get("arguments"))
            return call | _signatures(block, message, "callProviderMetadata")
        case _:
            shown = _shown(block)
            return shown | _signatures(block, message, "providerMetadata") if shown is not None else None


def _signatures(block: JsonObject, message: JsonObject, name: str) -> JsonObject:
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
    return output_value([{name: value for name, value in part.items() if name != "state"} for part in _native_content(content)])


def _step_facts(value: JsonObject) -> JsonObject:
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


def openai_message(turns: Turns, element: Element, value: JsonObject, path: Path) -> Iterator[ImportedMessage | ImportedRecord]:
    id, role, content = str(element.number - 1), value.get("role"), value.get("content")
    match role:
        case "user":
            parts, missing = with_pictures(_pieces(content), path)
            attached, notes = read_snapshots(_ghost(value.get("metadata")))
            if missing:
                turns.tally.lose("pictures", missing)
            yield from turns.say("user", id, element.raw, [*parts, *attached], metadata=notes)
        case "system":
            yield from turns.say("system", id, element.raw, _pieces(content))
        case "assistant":
            thought = value.get("reasoning_content")
            thoughts: list[Part] = [{"type": "reasoning", "text": thought, "state": "done"}] if isinstance(thought, str) and thought else []
            turns.step(id, element.raw, [*thoughts, *_pieces(content), *_calls(value.get("tool_calls"))], lead=element.lead)
        case "tool":
            call, name = value.get("tool_call_id"), value.get("name")
            output = content if isinstance(content, str) else "".join(str(piece.get("text", "")) for piece in _pieces(content))
            turns.output(
                str(call or ""), id, element.raw, name=name if isinstance(name, str) else "", lead=element.lead, output=output, failed=False
            )
        case _:
            yield from turns.end()
            yield turns.broken(element.raw, f"message {element.number} has the role {role!r}", body=value)


def _pieces(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    parts: list[Part] = []
    for piece in content if isinstance(content, list) else []:
        if not isinstance(piece, dict):
            continue
        image, text = piece.get("image_url"), piece.get("text")
        if isinstance(image, dict) and isinstance(url := image.get("url"), str):
            parts.append({"type": "file", "mediaType": media_type_of(url, "image/*"), "url": url})
        elif isinstance(text, str) and text:
            parts.append(text_part(text))
    return parts


def _calls(calls: Json) -> Iterator[Part]:
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            yield call_part(str(call.get("id") or ""), str(function.get("name") or ""), _arguments(function.get("arguments")))


def _arguments(arguments: Json) -> Json:
    """Return the arguments as JSON, or as text if they are not JSON."""
    return {} if isinstance(arguments, str) and not arguments.strip() else json_value(arguments)


def _ghost(metadata: Json) -> Json:
    return metadata.get("last_ghost_block") if isinstance(metadata, dict) else None


VERSION = "formatVersion"
_KNOWN = 1
_PLAIN = ("allowed_uris", "is_task_finished", "reasoning_effort", "activeRules", "activeSkills", "enabledMcpTools", "sub_agents_list")


def read_file(path: Path) -> ImportedConversation:
    """Read a notebook. Raise UsageError if it is not a notebook or has an unknown version."""
    found = load_document(path)
    metadata = found.value("metadata")
    facts = metadata if isinstance(metadata, dict) else {}
    if not isinstance(facts.get("uuid"), str) and "context" not in found:
        raise UsageError(f"{str(path)!r} is not a notebook of Mutsumi.")
    version = found.value(VERSION)
    if VERSION in found and version != _KNOWN:
        raise UsageError(f"{str(path)!r} has the unsupported notebook version {version!r}. Supported: {_KNOWN} and unversioned notebooks.")
    parent = facts.get("parent_agent_id")
    id = facts.get("uuid")
    entries = _entries(path, found, facts)
    return ImportedConversation(id if isinstance(id, str) and id else path.stem, entries, parent if isinstance(parent, str) else None)


def _entries(path: Path, found: PartialDocument, facts: JsonObject) -> Iterator[Entry]:
    if raw := found.raw("metadata"):
        yield ImportedRecord(raw, facts)
    turns = Turns()
    turns.tally.kept["records"] += bool(raw)
    for element in found.elements("context"):
        if element.value is None:
            yield turns.broken(element.raw, element.problem, lead=element.lead)
        elif VERSION in found:
            yield from native_message(turns, element, element.value)
        else:
            yield from openai_message(turns, element, element.value, path)
    yield from turns.end()
    for note in found.elements("notes"):
        yield _note(turns, note)
    if not found.whole:
        yield turns.broken(b"", "the file is truncated")
    yield _facts(turns, facts, path)


def _note(turns: Turns, note: Element) -> Entry:
    """Return a note between prompts, which is never sent to a model."""
    if note.value is None:
        return turns.broken(note.raw, note.problem)
    turns.tally.kept["records"] += 1
    return ImportedRecord(note.raw, {"note": note.value})


def _facts(turns: Turns, facts: JsonObject, path: Path) -> ImportedFacts:
    title, model, provider, agent = (text(facts.get(name)) for name in ("name", "model", "provider", "agentType"))
    turns.tally.kept["titles"] += bool(title)
    turns.tally.kept = +turns.tally.kept
    more: JsonObject = {name: facts[name] for name in _PLAIN if name in facts}
    return ImportedFacts(
        turns.tally.fidelity(),
        title=title,
        directory=str(path.absolute().parent.parent) if path.absolute().parent.name == ".mutsumi" else "",
        agent=agent,
        model=f"{model}@{provider}" if model and provider else model,
        created_at=milliseconds(facts.get("created_at")),
        metadata=more,
    )
