"""Items of OpenAI responses: their facts, and their texts as parts, one of which is open at a time."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert.vendor import as_list, as_object, as_text, count
from moot.convert.writer import Parts, Writer
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.usage import Usage

OWN_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that need an output from moot, and the field that holds their input."""

REASONS = {"max_output_tokens": "length", "content_filter": "content-filter"}
"""Reasons why a response is incomplete."""

_GIVEN = ("action", "actions", "queries", "operation", "arguments", "code", "container_id")
_PICTURES = {"jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif", "svg": "image/svg+xml"}
_FACTS = {"id": "response_id", "model": "model", "service_tier": "service_tier"}


def is_call(item: JsonObject) -> bool:
    """Return True if the item is a call of a tool that the vendor runs."""
    kind = as_text(item.get("type"))
    return kind not in OWN_CALLS and (kind.endswith("_call") or kind == "program")


def is_output(item: JsonObject) -> bool:
    """Return True if the item is the output of a call in another item."""
    return as_text(item.get("type")).endswith("_output")


def tool_of(item: JsonObject) -> str:
    """Return the name of the vendor's tool."""
    return as_text(item.get("name")) or as_text(item.get("type")).removesuffix("_call")


def input_of(item: JsonObject) -> JsonObject:
    """Return the input of a vendor tool's call."""
    return {name: item[name] for name in _GIVEN if item.get(name) is not None}


def rest_of(item: JsonObject, *without: str) -> JsonObject:
    """Return the item without its type, id and the named fields."""
    return {name: value for name, value in item.items() if name not in ("type", "id", *without)}


def picture(item: JsonObject) -> Chunk | None:
    """Return the image that a call generated, or None."""
    data = as_text(item.get("result"))
    if not data:
        return None
    media_type = _PICTURES.get(as_text(item.get("output_format")), "image/png")
    return {"type": "file", "url": f"data:{media_type};base64,{data}", "mediaType": media_type}


def error_of(item: JsonObject) -> str:
    """Return why a vendor tool's call failed; empty if it did not."""
    error = item.get("error")
    text = as_text(error) or as_text(as_object(error).get("message"))
    if not text and isinstance(error, dict):
        text = "\n".join(as_text(as_object(piece).get("text")) for piece in as_list(error.get("content"))) or as_text(error.get("type"))
    return text or ("the tool failed" if item.get("status") == "failed" else "")


def annotation_key(annotation: JsonObject) -> str:
    """Return a key that identifies the target of an annotation; empty if it has none."""
    return as_text(annotation.get("url")) or as_text(annotation.get("file_id"))


def source(annotation: JsonObject, id: str) -> Chunk:
    """Return the chunk of an annotation's source."""
    url, name = as_text(annotation.get("url")), as_text(annotation.get("filename"))
    if url:
        found: Chunk = {"type": "source-url", "sourceId": id, "url": url}
        title = as_text(annotation.get("title"))
        return {**found, "title": title} if title else found
    document: Chunk = {"type": "source-document", "sourceId": id, "mediaType": "text/plain", "title": name or annotation_key(annotation)}
    return {**document, "filename": name} if name else document


def facts_of(response: JsonObject) -> JsonObject:
    """Return the facts about a response as a whole."""
    return {ours: response[theirs] for theirs, ours in _FACTS.items() if response.get(theirs) is not None}


def usage_of(usage: JsonObject) -> Usage:
    into, out = as_object(usage.get("input_tokens_details")), as_object(usage.get("output_tokens_details"))
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(into.get("cached_tokens")),
        count(into.get("cache_write_tokens")),
        count(out.get("reasoning_tokens")),
    )


def texts_of(item: JsonObject) -> list[tuple[str, int, str, list[Json]]]:
    """Return the text pieces of a message or reasoning item: kind, index, text, annotations."""
    found: list[tuple[str, int, str, list[Json]]] = []
    for field, kinds in (("summary", _THOUGHTS), ("content", _WORDS)):
        for index, piece in enumerate(as_list(item.get(field))):
            one = as_object(piece)
            kind = kinds.get(as_text(one.get("type")))
            if kind:
                found.append((kind, index, as_text(one.get("text")) or as_text(one.get("refusal")), as_list(one.get("annotations"))))
    return found


_THOUGHTS = {"summary_text": "summary"}
_WORDS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "thought"}


METADATA = "openai"

_SPOKEN = {"text": "text", "refusal": "text", "summary": "reasoning", "thought": "reasoning"}
"""Kind of text in an item → kind of our part."""


class State(NamedTuple):
    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    open: JsonObject | None = None
    """The origin of the open part: `at`, `itemId`, `kind`, `index`, `phase`, `annotations`."""
    begun: tuple[str, ...] = ()
    """Items that have started, by position."""
    said: tuple[str, ...] = ()
    """Items that have produced text."""
    ended: tuple[str, ...] = ()
    phases: JsonObject | None = None
    """Position → the phase of the message there."""
    sources: tuple[str, ...] = ()
    status: str = ""
    """The status of the whole response, once it has ended."""
    reason: str = ""
    """The reason why it is incomplete."""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    refused: bool = False
    unreadable: int = 0
    body: str = ""


class ItemWriter:
    """Handler of one event, for texts and reasoning."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.writer = Writer(state.parts)

    @property
    def state(self) -> State:
        parts = self.writer.parts
        return self._state if parts is self._state.parts else self._state._replace(parts=parts)

    def say(self, kind: str, event: JsonObject, text: str) -> None:
        """Append a piece of text to an item, starting its part if needed."""
        at, id = at_of(event), as_text(event.get("item_id"))
        index = event.get("content_index", event.get("summary_index"))
        self._append_text(kind, at, id, index if isinstance(index, int) else 0, text)

    def _append_text(self, kind: str, at: str, id: str, index: int, text: str) -> None:
        known = self._state.open
        part_kind = _SPOKEN[kind]
        same = known is not None and (known["at"], known["kind"], known["index"]) == (at, kind, index)
        if not same or self.writer.parts.kind != part_kind:
            self.end_open()
            now: JsonObject = {"at": at, "itemId": id, "kind": kind, "index": index}
            if phase := as_text((self._state.phases or {}).get(at)):
                now["phase"] = phase
            with_text = self._state.said if at in self._state.said else (*self._state.said, at)
            self._state = self._state._replace(open=now, said=with_text, refused=self._state.refused or kind == "refusal")
            self.writer.begin("text" if part_kind == "text" else "reasoning", self._made_of(now))
        if text:
            self.writer.say("text" if part_kind == "text" else "reasoning", text)

    def end_spoken(self, at: str, item: JsonObject) -> None:
        """End a message or reasoning item, with all metadata that must be sent back."""
        if at not in self._state.said:
            for kind, index, text, _ in texts_of(item):
                if text or kind == "summary":
                    self._append_text(kind, at, as_text(item.get("id")), index, text)
        for _, _, _, pointers in texts_of(item):
            self.annotate(pointers, at)
        sealed = as_text(item.get("encrypted_content"))
        known = self._state.open
        if sealed and (known is None or known["at"] != at):
            self._append_text("summary", at, as_text(item.get("id")), -1, "")
        known = self._state.open
        if known is not None and known["at"] == at:
            named = {"itemId": as_text(item.get("id")) or known["itemId"]}
            more: JsonObject = {"encryptedContent": sealed} if sealed else {}
            self._state = self._state._replace(open={**known, **named, **more})
            self.end_open()

    def annotate(self, annotations: list[Json], at: str) -> None:
        """Record the annotations of a text, and emit each source once."""
        known: JsonObject | None = self._state.open
        for annotation in [as_object(one) for one in annotations]:
            recorded: list[Json] = as_list(known.get("annotations")) if known is not None else []
            if known is not None and known["at"] == at and annotation and annotation not in recorded:
                pointers: list[Json] = [*recorded, annotation]
                known = {**known, "annotations": pointers}
            name = annotation_key(annotation)
            if name and name not in self._state.sources:
                self._state = self._state._replace(sources=(*self._state.sources, name))
                self.writer.chunks.append(source(annotation, self.writer.part_id()))
        self._state = self._state._replace(open=known)

    def end_open(self) -> None:
        """Close the open part, with all metadata that its provider needs back."""
        known = self._state.open
        if known is not None:
            extra = known.get("annotations") or known.get("encryptedContent")
            self.writer.end(self._made_of(known) if extra else None)
            self._state = self._state._replace(open=None)

    def _made_of(self, known: JsonObject) -> JsonObject:
        return self.made_by({name: value for name, value in known.items() if name != "at"})

    def made_by(self, fields: JsonObject) -> JsonObject:
        """Return providerMetadata with these fields and the provider that made them."""
        return {METADATA: {**fields, "provider": self._state.provider} if self._state.provider else fields}


def at_of(event: JsonObject) -> str:
    """Return the position of the event's item: its index, or its id for servers that send no index."""
    index = event.get("output_index")
    return str(index) if isinstance(index, int) else as_text(event.get("item_id")) or as_text(as_object(event.get("item")).get("id"))
