"""Chats of clai as conversations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats._saying import call as call_part
from moot.formats._saying import media_type_of
from moot.formats._source.documents import Document, Element, document
from moot.formats._source.fields import milliseconds, money, objects, text
from moot.formats._source.pieces import value_in
from moot.formats._source.turns import Turns
from moot.formats.clai.surroundings import COPIES, bound_to, is_copy, sealed_reasoning
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.part import Part, text_part

__all__ = ["read_chat"]

_PREFIXES = {"ollama": "ollama", "or": "openrouter", "hf": "huggingface", "novita": "novita", "berget": "berget"}
"""clai's model prefix → provider."""


def read_chat(path: Path) -> Iterator[ImportedConversation]:
    """Yield the chat of a file, or nothing if it is only a copy of another chat. Raise UsageError if it is not a chat."""
    found = document(path)
    if "messages" not in found or not found.text("id"):
        raise UsageError(f"{str(path)!r} is not a chat of clai.")
    if path.name in COPIES:
        if not is_copy(path, found):
            yield ImportedConversation(f"globalScope:{_first_words(found)}", _Chat(path, found).entries())
        return
    yield ImportedConversation(found.text("id"), _Chat(path, found).entries())


def _first_words(found: Document) -> str:
    """Return a hash that distinguishes latest chats, because the file uses one id for all of them."""
    for element in found.elements("messages"):
        if element.value is not None and element.value.get("role") == "user":
            return hashlib.sha256(element.raw).hexdigest()[:16]
    return "empty"


class _Chat:
    """A reader of one chat."""

    def __init__(self, path: Path, found: Document) -> None:
        self._path = path
        self._found = found
        self._id = found.text("id")
        self._turns = Turns()
        self._queries: dict[int, list[JsonObject]] = {}
        queries = found.value("queries")
        for query in queries if isinstance(queries, list) else []:
            if isinstance(query, dict):
                index = query.get("current_index")
                self._queries.setdefault(index if type(index) is int else -1, []).append(query)
        self._prompt = -1
        """Position of the prompt being answered."""

    def entries(self) -> Iterator[Entry]:
        for element in self._found.elements("messages"):
            if element.value is None:
                yield self._turns.broken(element.raw, element.problem, lead=element.lead)
            else:
                yield from self._message(element, element.value)
        yield from self._turns.end()
        if not self._found.whole:
            yield self._turns.broken(b"", "the file is truncated")
        yield self._facts()

    def _message(self, element: Element, value: JsonObject) -> Iterator[Entry]:
        id, role = str(element.number - 1), value.get("role")
        if role == "system" and (element.number == 1 or self._prompt < 0):
            yield from self._turns.say("system", id, element.raw, _content(value))
        elif role == "user":
            self._prompt = element.number - 1
            yield from self._turns.say("user", id, element.raw, _content(value))
        elif role == "tool":
            call = text(value.get("tool_call_id"))
            self._turns.output(call, id, element.raw, lead=element.lead, output=_plain(value.get("content")), failed=False)
        elif role in ("assistant", "system"):  # older versions stored the answer as `system`
            yield from self._answer(element, value, id)
        else:
            yield from self._turns.end()
            yield self._turns.broken(element.raw, f"message {element.number} has the role {role!r}", body=value)

    def _answer(self, element: Element, value: JsonObject, id: str) -> Iterator[Entry]:
        calls = value.get("tool_calls")
        objects = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        raw, items = sealed_reasoning(self._path, self._id, text(objects[0].get("id"))) if objects else (b"", [])
        thought = text(value.get("reasoning_content"))
        parts = [*(part for item in items if (part := _sealed(item))), *([_reasoning(thought)] if thought else [])]
        queries = self._queries.pop(self._prompt, [])
        at = milliseconds(queries[0].get("created_at")) if queries else 0
        self._turns.step(id, element.raw, [*parts, *_content(value), *(_call(call) for call in objects)], lead=element.lead, at=at)
        for query in queries:
            self._turns.note(_took(query))
        if raw:
            yield ImportedRecord(raw, {"reasoning": list[Json](items), "message": id})
            self._turns.tally.kept["records"] += 1

    def _facts(self) -> ImportedFacts:
        found, tally = self._found, self._turns.tally
        tally.weaken("times")  # a query's time is that of its completed answer
        tally.lose("usage", sum(len(rest) for rest in self._queries.values()))
        tally.lost = +tally.lost
        bound = bound_to(self._path, self._id)
        named = [query.get("model") for query in objects(found.value("queries")) if query.get("model")]
        model, provider = _model(text(named[-1])) if named else ("", "")
        more: JsonObject = {name: value for name in ("source", "source_id", "group_key") if (value := found.value(name))}
        if bound:
            more["bound_to"] = list[Json](bound)
        return ImportedFacts(
            tally.fidelity(),
            directory=found.text("origin_dir") or (bound[0] if bound else ""),
            agent=found.text("profile"),
            model=f"{model}@{provider}" if provider else model,
            created_at=milliseconds(found.text("created")),
            metadata=more,
        )


def _content(value: JsonObject) -> list[Part]:
    content = value.get("content")
    if isinstance(content, str):
        return [text_part(content)] if content else []
    parts: list[Part] = []
    for piece in objects(content):
        image = piece.get("image_url")
        if isinstance(image, dict) and isinstance(url := image.get("url"), str) and url:
            part: Part = {"type": "file", "mediaType": media_type_of(url, "image/*") or "image/png", "url": url}
            parts.append({**part, "providerMetadata": {"openai": {"imageDetail": image["detail"]}}} if image.get("detail") else part)
        elif isinstance(text := piece.get("text"), str) and text:
            parts.append(text_part(text))
    return parts


def _plain(content: Json) -> str:
    return content if isinstance(content, str) else "".join(text(piece.get("text")) for piece in objects(content))


def _call(call: JsonObject) -> Part:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = call.get("inputs")
    if not isinstance(arguments, dict):
        arguments = value_in(text(function.get("arguments"))) or {}
    part = call_part(text(call.get("id")), text(call.get("name")) or text(function.get("name")), arguments)
    return {**part, "callProviderMetadata": {"clai": {"extra_content": call["extra_content"]}}} if call.get("extra_content") else part


def _reasoning(text: str) -> Part:
    return {"type": "reasoning", "text": text, "state": "done"}


def _sealed(item: Json) -> Part | None:
    if not isinstance(item, dict) or not text(item.get("encrypted_content")):
        return None
    summary = item.get("summary")
    summary_text = "\n\n".join(str(line) for line in summary) if isinstance(summary, list) else ""
    noted: JsonObject = {"itemId": text(item.get("id")), "encryptedContent": item["encrypted_content"], "provider": "openai"}
    return {**_reasoning(summary_text), "providerMetadata": {"openai": noted}}


def _took(query: JsonObject) -> JsonObject:
    """Return a query as the facts of a model call."""
    model, provider = _model(text(query.get("model")))
    usage = query.get("usage")
    facts: JsonObject = {"model": model, "provider": provider, "usage": _usage(usage) if isinstance(usage, dict) else {}}
    return {**facts, "cost": money(query, "cost_usd")}


def _usage(usage: JsonObject) -> JsonObject:
    inputs, outputs = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    counts: JsonObject = {"input": usage.get("prompt_tokens"), "output": usage.get("completion_tokens")}
    counts["cache_read"] = inputs.get("cached_tokens") if isinstance(inputs, dict) else None
    counts["reasoning"] = outputs.get("reasoning_tokens") if isinstance(outputs, dict) else None
    return {name: count for name, count in counts.items() if type(count) is int and (count > 0 or name in ("input", "output"))}


def _model(name: str) -> tuple[str, str]:
    """Return the model, and its provider if the name contains it."""
    prefix, colon, rest = name.partition(":")
    return (rest, _PREFIXES[prefix]) if colon and prefix in _PREFIXES else (name, "")
