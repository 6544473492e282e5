"""What the items of an OpenAI response say, as parts: one of them open at a time, each named by its item."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert._openai_items import cited, source, texts_of
from moot.convert._vendor import as_list, as_object, as_text
from moot.convert._writer import Parts, Writer
from moot.types.canonical import Json, JsonObject

__all__ = ["METADATA", "Said", "State", "at_of"]

METADATA = "openai"
"""The key of this dialect in providerMetadata."""

_SPOKEN = {"text": "text", "refusal": "text", "summary": "reasoning", "thought": "reasoning"}
"""What an item says → the kind of our part."""


class State(NamedTuple):
    """Everything that a later event may need; made of what JSON can hold."""

    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    """None = no event yet."""
    open: JsonObject | None = None
    """What the open part is of: `at`, `itemId`, `kind`, `index`, `phase`, `annotations`."""
    begun: tuple[str, ...] = ()
    """Items that have begun, by their place."""
    said: tuple[str, ...] = ()
    """Those that have said something."""
    ended: tuple[str, ...] = ()
    phases: JsonObject | None = None
    """Place → the phase of the message there."""
    sources: tuple[str, ...] = ()
    """Sources already named."""
    status: str = ""
    """Of the whole response, once it has ended."""
    reason: str = ""
    """Why it is incomplete."""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    """`Failure.to_json`."""
    refused: bool = False
    unreadable: int = 0
    body: str = ""
    """The begin of what came in place of a stream."""


class Said:
    """One event at work on the state, as far as words go."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.writer = Writer(state.parts)

    @property
    def state(self) -> State:
        parts = self.writer.parts
        return self._state if parts is self._state.parts else self._state._replace(parts=parts)

    def say(self, kind: str, event: JsonObject, text: str) -> None:
        """One more piece of what an item says, or the begin of it."""
        at, id = at_of(event), as_text(event.get("item_id"))
        index = event.get("content_index", event.get("summary_index"))
        self._speak(kind, at, id, index if isinstance(index, int) else 0, text)

    def _speak(self, kind: str, at: str, id: str, index: int, text: str) -> None:
        known = self._state.open
        spoken = _SPOKEN[kind]
        same = known is not None and (known["at"], known["kind"], known["index"]) == (at, kind, index)
        if not same or self.writer.parts.kind != spoken:
            self.end_open()
            now: JsonObject = {"at": at, "itemId": id, "kind": kind, "index": index}
            if phase := as_text((self._state.phases or {}).get(at)):
                now["phase"] = phase
            said = self._state.said if at in self._state.said else (*self._state.said, at)
            self._state = self._state._replace(open=now, said=said, refused=self._state.refused or kind == "refusal")
            self.writer.begin("text" if spoken == "text" else "reasoning", self._made_of(now))
        if text:
            self.writer.say("text" if spoken == "text" else "reasoning", text)

    def end_spoken(self, at: str, item: JsonObject) -> None:
        """The end of a message or a reasoning, with all that goes back of it."""
        if at not in self._state.said:
            for kind, index, text, _ in texts_of(item):
                if text or kind == "summary":
                    self._speak(kind, at, as_text(item.get("id")), index, text)
        for _, _, _, pointers in texts_of(item):
            self.annotate(pointers, at)
        sealed = as_text(item.get("encrypted_content"))
        known = self._state.open
        if sealed and (known is None or known["at"] != at):
            self._speak("summary", at, as_text(item.get("id")), -1, "")
        known = self._state.open
        if known is not None and known["at"] == at:
            named = {"itemId": as_text(item.get("id")) or known["itemId"]}
            more: JsonObject = {"encryptedContent": sealed} if sealed else {}
            self._state = self._state._replace(open={**known, **named, **more})
            self.end_open()

    def annotate(self, annotations: list[Json], at: str) -> None:
        """Notes what a text points to, and names its source once."""
        known: JsonObject | None = self._state.open
        for annotation in [as_object(one) for one in annotations]:
            noted: list[Json] = as_list(known.get("annotations")) if known is not None else []
            if known is not None and known["at"] == at and annotation and annotation not in noted:
                pointers: list[Json] = [*noted, annotation]
                known = {**known, "annotations": pointers}
            name = cited(annotation)
            if name and name not in self._state.sources:
                self._state = self._state._replace(sources=(*self._state.sources, name))
                self.writer.chunks.append(source(annotation, self.writer.part_id()))
        self._state = self._state._replace(open=known)

    def end_open(self) -> None:
        """Closes the open part, with all that its provider wants back."""
        known = self._state.open
        if known is not None:
            extra = known.get("annotations") or known.get("encryptedContent")
            self.writer.end(self._made_of(known) if extra else None)
            self._state = self._state._replace(open=None)

    def _made_of(self, known: JsonObject) -> JsonObject:
        return self.made_by({name: value for name, value in known.items() if name != "at"})

    def made_by(self, fields: JsonObject) -> JsonObject:
        """The providerMetadata that holds these fields, and who made them."""
        return {METADATA: {**fields, "provider": self._state.provider} if self._state.provider else fields}


def at_of(event: JsonObject) -> str:
    """The place of the item that an event speaks of: its index, or its id where a server gives no index."""
    index = event.get("output_index")
    return str(index) if isinstance(index, int) else as_text(event.get("item_id")) or as_text(as_object(event.get("item")).get("id"))
