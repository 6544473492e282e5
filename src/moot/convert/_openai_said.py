"""Texts and reasoning of OpenAI response items, as parts. One part is open at a time, identified by its item."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert._openai_items import cited, source, texts_of
from moot.convert._vendor import as_list, as_object, as_text
from moot.convert._writer import Parts, Writer
from moot.types.canonical import Json, JsonObject

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


class Said:
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
            name = cited(annotation)
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
