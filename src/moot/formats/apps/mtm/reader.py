"""Conversion of notebooks to conversations. Unversioned notebooks contain messages of OpenAI's API; version 1 has blocks of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats.apps.mtm.attachments import read_snapshots, with_pictures
from moot.formats.kit.answers import Turns
from moot.formats.kit.fields import at, items, milliseconds, money, obj, objects, text
from moot.formats.kit.json import Element, PartialDocument, json_value, load_document
from moot.formats.kit.records import media_type_of, output_value, reasoning
from moot.formats.kit.records import tool_call as call_part
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedMessage, ImportedRecord
from moot.types.message import Part, text_part

ANTHROPIC = "anthropic-messages"
SIGNATURES = ("textSignature", "thinkingSignature", "thoughtSignature")
REASONS = {"stop": "stop", "length": "length", "toolUse": "tool-calls", "error": "error", "aborted": "other"}
_COUNTS = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}


def native_message(turns: Turns, element: Element, value: JsonObject) -> Iterator[ImportedMessage | ImportedRecord]:
    id, role, when = str(element.number - 1), value.get("role"), milliseconds(value, "timestamp")
    blocks = value.get("content")
    match role:
        case "user":
            attached, notes = read_snapshots(obj(value, "mutsumi", "ghostBlock"))
            yield from turns.say("user", id, element.raw, [*_native_content(blocks), *attached], at=when, metadata=notes)
        case "assistant":
            parts = [part for block in objects(blocks) if (part := _block(block, value)) is not None]
            turns.step(id, element.raw, parts, lead=element.lead, at=when, facts=_step_facts(value))
        case "toolResult":
            call, name = str(value.get("toolCallId") or ""), str(value.get("toolName") or "")
            failed = value.get("isError") is True
            pieces = [{key: one for key, one in part.items() if key != "state"} for part in _native_content(blocks)]
            output = blocks if isinstance(blocks, str) else output_value(pieces)
            turns.output(call, id, element.raw, name=name, lead=element.lead, output=output, failed=failed)
        case _:
            yield from turns.end()
            yield turns.broken(element.raw, f"message {element.number} has the unknown role {role!r}", body=value)


def _native_content(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [part for block in objects(content) if (part := _shown(block)) is not None]


def _shown(block: JsonObject) -> Part | None:
    if block.get("type") == "image" and isinstance(data := block.get("data"), str):
        kind = str(block.get("mimeType") or "image/png")
        part: Part = {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{data}"}
        return {**part, "detail": detail} if (detail := text(block, "detail")) else part
    words = block.get("text")
    return text_part(words) if isinstance(words, str) and words else None


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
    """Return the provider's signatures of the reasoning, so that they can be sent back. They are keyed by API dialect if that is known."""
    signed: JsonObject = {key: block[key] for key in (*SIGNATURES, "redacted") if block.get(key)}
    if not signed:
        return {}
    api, provider = message.get("api"), message.get("provider")
    if api == ANTHROPIC and list(signed) == ["thinkingSignature"]:
        return {name: {"anthropic": {"signature": signed["thinkingSignature"], "provider": provider}}}
    return {name: {"mutsumi": {**signed, "api": api, "provider": provider}}}


def _step_facts(value: JsonObject) -> JsonObject:
    facts: JsonObject = {name: value[name] for name in ("model", "provider") if isinstance(value.get(name), str)}
    if reason := REASONS.get(str(value.get("stopReason"))):
        facts["finish_reason"] = reason
    if isinstance(usage := value.get("usage"), dict):
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
            attached, notes = read_snapshots(obj(value, "metadata", "last_ghost_block"))
            if missing:
                turns.tally.lose("pictures", missing)
            yield from turns.say("user", id, element.raw, [*parts, *attached], metadata=notes)
        case "system":
            yield from turns.say("system", id, element.raw, _pieces(content))
        case "assistant":
            thoughts = [reasoning(thought)] if (thought := text(value, "reasoning_content")) else []
            turns.step(id, element.raw, [*thoughts, *_pieces(content), *_calls(value)], lead=element.lead)
        case "tool":
            call, name = str(value.get("tool_call_id") or ""), text(value, "name")
            output = content if isinstance(content, str) else "".join(str(piece.get("text", "")) for piece in _pieces(content))
            turns.output(call, id, element.raw, name=name, lead=element.lead, output=output, failed=False)
        case _:
            yield from turns.end()
            yield turns.broken(element.raw, f"message {element.number} has the unknown role {role!r}", body=value)


def _pieces(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    parts: list[Part] = []
    for piece in objects(content):
        if isinstance(url := at(piece, "image_url", "url"), str):
            part: Part = {"type": "file", "mediaType": media_type_of(url, "image/*"), "url": url}
            parts.append({**part, "detail": detail} if (detail := text(piece, "image_url", "detail")) else part)
        elif words := text(piece, "text"):
            parts.append(text_part(words))
    return parts


def _calls(value: JsonObject) -> Iterator[Part]:
    """Yield the tool calls of a message. Arguments that are not JSON are kept as text."""
    for call in objects(value, "tool_calls"):
        function = call.get("function")
        if isinstance(function, dict):
            arguments = function.get("arguments")
            arguments = {} if isinstance(arguments, str) and not arguments.strip() else json_value(arguments)
            yield call_part(str(call.get("id") or ""), str(function.get("name") or ""), arguments)


VERSION = "formatVersion"
_KNOWN = 1
FORMATS = ("mtm", "mtm-1")
OWN = ("uuid", "name", "created_at", "agentType", "model", "provider")
"""Metadata of notebooks for which moot has a field. All other metadata is stored unchanged and written back on export."""
_LONGEST = 10_000
"""Maximum length of one value of such metadata, as text. Longer values, such as copies of files, are only in the raw record."""


def read_file(path: Path) -> ImportedConversation:
    """Read a notebook. Raise UsageError if the file is not a notebook or has an unknown version."""
    found = load_document(path)
    facts = obj(found.value("metadata"))
    if not isinstance(facts.get("uuid"), str) and "context" not in found:
        raise UsageError(f"{str(path)!r} is not a Mutsumi notebook.")
    version = found.value(VERSION)
    if VERSION in found and version != _KNOWN:
        raise UsageError(f"{str(path)!r} has the unsupported notebook version {version!r}. Supported: {_KNOWN} and unversioned notebooks.")
    parent = facts.get("parent_agent_id")
    entries = _entries(path, found, facts)
    return ImportedConversation(text(facts, "uuid") or path.stem, entries, parent if isinstance(parent, str) else None)


def _entries(path: Path, found: PartialDocument, facts: JsonObject) -> Iterator[Entry]:
    if raw := found.raw("metadata"):
        yield ImportedRecord(raw, facts)
    turns = Turns()
    turns.tally.kept["records"] += bool(raw)
    if "context" not in found:
        yield turns.broken(b"", "'context' contains no messages")
    for element in found.elements("context"):
        if element.value is None:
            yield turns.broken(element.raw, element.problem, lead=element.lead)
        elif VERSION in found:
            yield from native_message(turns, element, element.value)
        else:
            yield from openai_message(turns, element, element.value, path)
    yield from turns.end()
    for note in found.elements("notes"):  # notes between prompts are never sent to a model
        turns.tally.kept["records"] += note.value is not None
        yield ImportedRecord(note.raw, {"note": note.value}) if note.value is not None else turns.broken(note.raw, note.problem)
    if not found.whole:
        yield turns.broken(b"", "the file is truncated")
    yield _facts(turns, facts, path)


def _facts(turns: Turns, facts: JsonObject, path: Path) -> ImportedFacts:
    title, model, provider, agent = (text(facts.get(name)) for name in ("name", "model", "provider", "agentType"))
    turns.tally.kept["titles"] += bool(title)
    more: JsonObject = {name: one for name, one in facts.items() if name not in OWN and len(str(one)) <= _LONGEST}
    return ImportedFacts(
        turns.tally.fidelity(),
        title=title,
        directory=str(path.absolute().parent.parent) if path.absolute().parent.name == ".mutsumi" else "",
        agent=agent,
        model=f"{model}@{provider}" if model and provider else model,
        created_at=milliseconds(facts.get("created_at")),
        allowed_uris=tuple(uri for uri in items(facts, "allowed_uris") if isinstance(uri, str)),
        is_finished=facts.get("is_task_finished") is True,
        metadata=more,
    )
