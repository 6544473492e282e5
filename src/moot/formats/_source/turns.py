"""Messages from sequential records: each prompt is one message, and everything the agent does until the next prompt is another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moot.formats._saying import call as call_part
from moot.formats._source.tally import Tally
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ImportedMessage, ImportedRecord
from moot.types.message import Role
from moot.types.part import Part

__all__ = ["Turns"]

_FACTS = ("model", "provider", "finish_reason")


@dataclass(slots=True)
class _Draft:
    """An assistant message that may still grow."""

    id: str
    at: int = 0
    raws: list[bytes] = field(default_factory=list[bytes])
    parts: list[Part] = field(default_factory=list[Part])
    metadata: JsonObject = field(default_factory=dict[str, Json])
    steps: list[Json] = field(default_factory=list[Json])
    calls: int = 0
    """Number of model calls."""
    waiting: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Call id in the source → positions of its calls without an output."""
    ids: set[str] = field(default_factory=set[str])
    made_up: int = 0
    """Number of calls that were created because only their output exists."""

    def take(self, part: Part) -> None:
        """Append a part. Tool call ids are made unique in the message because some vendors reuse them."""
        id = part.get("toolCallId")
        if isinstance(id, str):
            unique = id if id not in self.ids else f"{id}#{self.calls}.{len(self.parts)}"
            self.ids.add(unique)
            part = {**part, "toolCallId": unique}
            if part.get("state") == "input-available":
                self.waiting.setdefault(id, []).append(len(self.parts))
        self.parts.append(part)


class Turns:
    """A builder of one conversation's messages and counts. Each message is the child of the one before it."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._draft: _Draft | None = None
        self._last: str | None = None
        self._ids: dict[str, int] = {}

    def say(
        self, role: Role, id: str, raw: bytes, parts: Iterable[Part], *, at: int = 0, metadata: JsonObject | None = None
    ) -> Iterator[ImportedMessage]:
        """End the open assistant message and yield it, then yield a complete message."""
        yield from self.end()
        yield self._message(role, self._unique(id), raw, tuple(parts), at, metadata or {})

    def step(self, id: str, raw: bytes, parts: Iterable[Part], *, lead: bytes = b"", at: int = 0, facts: JsonObject | None = None) -> None:
        """Add a model call. `facts` may contain model, provider, finish_reason, usage and cost."""
        draft = self._taken(id, raw, lead, at)
        draft.calls += 1
        draft.parts.append({"type": "step-start"})
        for part in parts:
            draft.take(part)
        if facts:
            self._note(draft, facts)

    def add(self, id: str, raw: bytes, parts: Iterable[Part] = (), *, lead: bytes = b"", at: int = 0) -> None:
        """Add parts to the current model call, or only its raw bytes."""
        draft = self._taken(id, raw, lead, at)
        for part in parts:
            draft.take(part)

    def note(self, facts: JsonObject) -> None:
        """Record facts about another model call of the open assistant message."""
        if self._draft is not None:
            self._note(self._draft, facts)

    def output(self, call: str, id: str, raw: bytes, *, name: str = "", lead: bytes = b"", at: int = 0, output: Json, failed: bool) -> None:
        """Add the output of a tool call. If the call does not exist, create it."""
        draft = self._taken(id, raw, lead, at)
        if not draft.waiting.get(call):
            draft.take(call_part(call, name, None))
            draft.made_up += 1
        place = draft.waiting[call].pop(0)
        text = output if isinstance(output, str) else dumps(output).decode()
        done: JsonObject = {"state": "output-error", "errorText": text} if failed else {"state": "output-available", "output": output}
        draft.parts[place] = {**draft.parts[place], **done}

    def broken(self, raw: bytes, problem: str, *, lead: bytes = b"", body: Json = None) -> ImportedRecord:
        """Return an unreadable record. Its bytes are also added to the open assistant message, so that the message's raw stays
        contiguous.
        """
        self.tally.lose("records")
        if self._draft is not None:
            self._draft.raws.append(lead + raw)
        return ImportedRecord(raw, body, problem)

    def waits(self) -> bool:
        """Return whether a call of the open assistant message has no output yet."""
        return self._draft is not None and any(self._draft.waiting.values())

    def is_open(self) -> bool:
        """Return whether an assistant message is open."""
        return self._draft is not None

    def end(self) -> Iterator[ImportedMessage]:
        """Yield the open assistant message, if any."""
        draft, self._draft = self._draft, None
        if draft is not None:
            metadata: JsonObject = {**draft.metadata, "steps": draft.steps} if draft.steps else draft.metadata
            yield self._message("assistant", draft.id, b"".join(draft.raws), tuple(draft.parts), draft.at, metadata)
            if draft.made_up:
                self.tally.weaken("tool calls", draft.made_up)

    def _taken(self, id: str, raw: bytes, lead: bytes, at: int) -> _Draft:
        if self._draft is None:
            self._draft = _Draft(self._unique(id), at)
            lead = b""
        self._draft.raws.append(lead + raw)
        self._draft.at = self._draft.at or at
        return self._draft

    def _note(self, draft: _Draft, facts: JsonObject) -> None:
        draft.metadata |= {name: facts[name] for name in _FACTS if facts.get(name)}
        step: JsonObject = {"step": len(draft.steps) + 1}
        if model := facts.get("model"):
            step["model"] = f"{model}@{facts['provider']}" if facts.get("provider") else model
        step |= {name: facts[name] for name in ("finish_reason", "usage", "ms") if facts.get(name)}
        draft.steps.append({**step, "cost": facts.get("cost")})

    def _message(self, role: Role, id: str, raw: bytes, parts: tuple[Part, ...], at: int, metadata: JsonObject) -> ImportedMessage:
        parent, self._last = self._last, id
        message = ImportedMessage(role, parts, id, raw, parent, at, metadata)
        self.tally.keep(message)
        return message

    def _unique(self, id: str) -> str:
        """Return the source's id, changed if it was used before."""
        unique = id
        while unique in self._ids:
            self._ids[id] += 1
            unique = f"{id}#{self._ids[id]}"
        self._ids[unique] = 1
        return unique
