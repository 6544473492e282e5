"""Builders of assistant messages that consist of several records: `Turns` for linear sessions, `Drafts` for sessions with branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from moot.formats.kit.fidelity import Tally, things_in
from moot.formats.kit.records import tool_call as call_part
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import Fidelity, ImportedMessage, ImportedRecord
from moot.types.message import Part, Role

_FACTS = ("model", "provider", "finish_reason")


@dataclass(slots=True)
class _OpenAnswer:
    """An assistant message whose records are still being read."""

    id: str
    at: int = 0
    raws: list[bytes] = field(default_factory=list[bytes])
    parts: list[Part] = field(default_factory=list[Part])
    metadata: JsonObject = field(default_factory=dict[str, Json])
    steps: list[Json] = field(default_factory=list[Json])
    calls: int = 0
    """Number of model calls."""
    waiting: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Tool call id in the source → positions in `parts` of those calls with this id that have no output yet."""
    ids: set[str] = field(default_factory=set[str])
    made_up: int = 0
    """Number of tool calls that were created because the source contains only their output."""

    def take(self, part: Part) -> None:
        """Append a part. Tool call ids are made unique within the message, because some vendors reuse them."""
        id = part.get("toolCallId")
        if isinstance(id, str):
            unique = id if id not in self.ids else f"{id}#{self.calls}.{len(self.parts)}"
            self.ids.add(unique)
            part = {**part, "toolCallId": unique}
            if part.get("state") == "input-available":
                self.waiting.setdefault(id, []).append(len(self.parts))
        self.parts.append(part)


class Turns:
    """Builder of a conversation's messages and fidelity counts. Each message is the child of the message before it."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._draft: _OpenAnswer | None = None
        self._last: str | None = None
        self._ids: dict[str, int] = {}

    def say(
        self, role: Role, id: str, raw: bytes, parts: Iterable[Part], *, at: int = 0, metadata: JsonObject | None = None
    ) -> Iterator[ImportedMessage]:
        """Yield the open assistant message, if any, followed by a complete message with the given content."""
        yield from self.end()
        yield self._message(role, self._unique(id), raw, tuple(parts), at, metadata or {})

    def step(self, id: str, raw: bytes, parts: Iterable[Part], *, lead: bytes = b"", at: int = 0, facts: JsonObject | None = None) -> None:
        """Add a model call to the open assistant message, or start one. `lead` is the raw data between the previous record and `raw`.

        `facts` may contain `model`, `provider`, `finish_reason`, `usage` and `cost`.
        """
        draft = self._taken(id, raw, lead, at)
        draft.calls += 1
        draft.parts.append({"type": "step-start"})
        for part in parts:
            draft.take(part)
        if facts:
            self._note(draft, facts)

    def add(self, id: str, raw: bytes, parts: Iterable[Part] = (), *, lead: bytes = b"", at: int = 0) -> None:
        """Add parts to the current model call. If there are no parts, add only the raw bytes of the record."""
        draft = self._taken(id, raw, lead, at)
        for part in parts:
            draft.take(part)

    def note(self, facts: JsonObject) -> None:
        """Add a model call to the metadata of the open assistant message, if there is one."""
        if self._draft is not None:
            self._note(self._draft, facts)

    def output(self, call: str, id: str, raw: bytes, *, name: str = "", lead: bytes = b"", at: int = 0, output: Json, failed: bool) -> None:
        """Add the output of the tool call with the id `call`. If there is no such call without an output, create it."""
        draft = self._taken(id, raw, lead, at)
        if not draft.waiting.get(call):
            draft.take(call_part(call, name, None))
            draft.made_up += 1
        place = draft.waiting[call].pop(0)
        text = output if isinstance(output, str) else dumps(output).decode()
        done: JsonObject = {"state": "output-error", "errorText": text} if failed else {"state": "output-available", "output": output}
        draft.parts[place] = {**draft.parts[place], **done}

    def broken(self, raw: bytes, problem: str, *, lead: bytes = b"", body: Json = None) -> ImportedRecord:
        """Return an unreadable record, and count it as lost.

        Its bytes are also added to the open assistant message, so that the raw data of the message stays contiguous.
        """
        self.tally.lose("records")
        if self._draft is not None:
            self._draft.raws.append(lead + raw)
        return ImportedRecord(raw, body, problem)

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

    def _taken(self, id: str, raw: bytes, lead: bytes, at: int) -> _OpenAnswer:
        if self._draft is None:
            self._draft = _OpenAnswer(self._unique(id), at)
            lead = b""
        self._draft.raws.append(lead + raw)
        self._draft.at = self._draft.at or at
        return self._draft

    def _note(self, draft: _OpenAnswer, facts: JsonObject) -> None:
        draft.metadata |= {name: facts[name] for name in _FACTS if facts.get(name)}
        step: JsonObject = {"step": len(draft.steps) + 1}
        if model := facts.get("model"):
            step["model"] = f"{model}@{facts['provider']}" if facts.get("provider") else model
        step |= {name: facts[name] for name in ("finish_reason", "usage", "ms") if facts.get(name)}
        draft.steps.append({**step, "cost": facts.get("cost")})

    def _message(self, role: Role, id: str, raw: bytes, parts: tuple[Part, ...], at: int, metadata: JsonObject) -> ImportedMessage:
        parent, self._last = self._last, id
        message = ImportedMessage(role, parts, id, raw, parent, at, metadata)
        self.tally.kept.update(things_in(message))
        return message

    def _unique(self, id: str) -> str:
        """Return the source's id, modified if it has already been used."""
        unique = id
        while unique in self._ids:
            self._ids[id] += 1
            unique = f"{id}#{self._ids[id]}"
        self._ids[unique] = 1
        return unique


_HELD = 4
_LARGEST = 16 << 20
"""Size in bytes above which an assistant message is continued in another message."""
_TIMES = 3
"""Memory that a record needs with its value and parts, in multiples of its bytes."""
NO_PARENT = -1
"""Parent index of a message without a parent."""


class Growing(Protocol):
    """The content of an assistant message, accumulated while its records are read."""

    @property
    def waits(self) -> bool:
        """True while a tool call has no output."""
        ...

    def parts(self, *, over: bool) -> tuple[Part, ...]:
        """Return the current parts. If `over` is True, no more records follow."""
        ...

    def metadata(self) -> JsonObject:
        """Return the message's metadata."""
        ...

    def identities(self) -> tuple[str, ...]:
        """Return the identity of each model call, as in `ImportedMessage.identities`."""
        ...


A = TypeVar("A", bound=Growing)


@dataclass(slots=True)
class Draft(Generic[A]):
    """A message to which later records may still be added."""

    id: str
    place: int
    parent: str | None
    at: int
    prompt: tuple[Part, ...] | None
    """The parts of a prompt; None for an assistant message."""
    answer: A
    last: int = 0
    """Hash of the id of the newest line that belongs to the message, in sessions whose lines form a tree."""
    raws: list[bytes] = field(default_factory=list[bytes])
    records: list[Json] = field(default_factory=list[Json])
    """The values of the records in `raws`."""
    size: int = 0
    role: Role = "user"
    """Role of a message that is not an assistant message."""
    identity: str = ""
    """Identity of a prompt."""

    def grow(self, raw: bytes, record: Json) -> None:
        """Append a record of the source: its bytes and its value."""
        self.raws.append(raw)
        self.records.append(record)
        self.size += len(raw)

    def is_full(self) -> bool:
        """Return whether the message is so large that the next model call must start a new message."""
        return self.size > _LARGEST and not self.answer.waits


class Drafts(Generic[A]):
    """The messages of a session, identified by their index in the order in which they start.
    Only the newest few messages can still grow.
    """

    def __init__(self, answer: Callable[[int], A]) -> None:
        """`answer` creates the empty content of an assistant message, given the time of the message that it answers."""
        self._new = answer
        self.kept: Counter[str] = Counter()
        self.approximated: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.model = ""
        self._started: list[tuple[str, bool]] = []
        self._parents = set[int]()
        self._open: dict[int, Draft[A]] = {}
        self._answers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._started)

    def get(self, place: int | None) -> Draft[A] | None:
        """Return the message at an index if it may still grow."""
        return self._open.get(place) if place is not None else None

    def answer(self, place: int) -> Draft[A] | None:
        """Return the assistant message at an index if it may still grow."""
        draft = self._open.get(place)
        return draft if draft is not None and draft.prompt is None else None

    def answer_to(self, place: int) -> Draft[A] | None:
        """Return the newest answer to a prompt if it may still grow."""
        is_prompt = place == NO_PARENT or not self._started[place][1]
        return self._open.get(self._answers.get(place, NO_PARENT)) if is_prompt else None

    def begin(self, id: str, parent: int, at: int, prompt: tuple[Part, ...] | None, line: int) -> Draft[A]:
        """Start a message as a child of the message at index `parent`. `line` is the hash of the id of the line before it."""
        if parent in self._parents or (parent == NO_PARENT and self._started):
            above = self._open.get(parent)
            (self.kept if above is None or above.last == line else self.approximated)["branches"] += 1
        self._parents.add(parent)
        place = len(self._started)
        above = self._open.get(parent)
        above_id = self._started[parent][0] if parent != NO_PARENT else None
        draft = Draft(id, place, above_id, at, prompt, self._new(above.at if above else at))
        self._started.append((id, prompt is None))
        self._open[place] = draft
        if prompt is None:
            self._answers[parent] = place
        return draft

    @property
    def size(self) -> int:
        """Number of bytes that the messages that can still grow need in memory, approximately."""
        return sum(_TIMES * draft.size for draft in self._open.values())

    def finished(self) -> Iterator[ImportedMessage]:
        """Yield the messages that can no longer grow."""
        while len(self._open) > _HELD:
            yield self._message(self._open.pop(next(iter(self._open))), over=True)

    def growing(self) -> Iterator[ImportedMessage]:
        """Yield the messages that can still grow, as they are if no more lines follow."""
        for count, draft in enumerate(self._open.values(), 1):
            yield self._message(draft, over=count < len(self._open))

    def counts(self) -> tuple[Counter[str], Counter[str], Counter[str], str]:
        """Return the fidelity counts and the model so far, for `reset`."""
        return self.kept.copy(), self.approximated.copy(), self.lost.copy(), self.model

    def reset(self, counts: tuple[Counter[str], Counter[str], Counter[str], str]) -> None:
        """Set the fidelity counts and the model to earlier ones."""
        self.kept, self.approximated, self.lost, self.model = counts

    def _message(self, draft: Draft[A], *, over: bool) -> ImportedMessage:
        raw = b"".join(draft.raws)
        parts = draft.answer.parts(over=over) if draft.prompt is None else draft.prompt
        role, metadata = (draft.role, {}) if draft.prompt is not None else ("assistant", draft.answer.metadata())
        identities = (draft.identity,) if draft.prompt is not None else draft.answer.identities()
        identities = identities if any(identities) else ()
        records = tuple(draft.records)
        message = ImportedMessage(role, parts, draft.id, raw, draft.parent, draft.at, metadata, identities, records)
        self.kept.update(things_in(message))
        self.model = str(metadata.get("model") or self.model)
        return message

    def fidelity(self) -> Fidelity:
        """Return the fidelity counts since the previous call to this method, and reset them."""
        counts = Fidelity(+self.kept, +self.approximated, +self.lost)
        for counter in (self.kept, self.approximated, self.lost):
            counter.clear()
        return counts
