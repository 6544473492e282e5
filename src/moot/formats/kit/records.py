"""Conversion of the records of other programs' sessions to messages.

A prompt becomes a user message. Everything that follows until the next prompt becomes one assistant message: a `step-start` before each
model call, and tool calls with their outputs. If a branch starts in the middle of an assistant message, the first message of the
branch repeats the records before that point, so that each branch can be read on its own.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from moot.formats.kit.exact import marked, restored
from moot.formats.kit.fidelity import things_in
from moot.formats.kit.fields import at, objects, text
from moot.formats.kit.trees import Branches
from moot.types.canonical import Json, JsonObject, empty
from moot.types.format import Entry, Fidelity, ImportedFacts, ImportedMessage, ImportedRecord
from moot.types.message import Message, Part, Role, is_settled, is_tool
from moot.types.usage import Usage

_MAGIC = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp", b"%PDF": "application/pdf"}


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a tool call, stored in a later record than the call."""

    call: str
    value: Json
    error: bool = False
    name: str = ""
    """Name of the tool, if the record contains it."""
    denied: bool = False


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One record of a session."""

    id: str
    """Id of the record, unique within the source. If the source repeats an id, a number is appended."""
    role: Role
    """`user`: a prompt · `assistant`: a model call or tool outputs · `system`: instructions."""
    raw: bytes
    parts: tuple[Part, ...] = ()
    outputs: tuple[Output, ...] = ()
    parent: str | None = None
    """Id of the preceding record, in sessions with branches."""
    at: int = 0
    step: JsonObject | None = None
    """Model, usage and cost of the model call, as returned by the function `step`. None if the record is not a model call."""
    further_steps: tuple[JsonObject, ...] = ()
    """Facts, as in `step`, about model calls without any content, such as a call for a title. They have no `step-start`, so that they can
    be moved to a different message when the session grows.
    """
    metadata: JsonObject | None = None
    identity: str = ""
    """Identity of the model call or prompt, as in `ImportedMessage.identities`."""
    mark: JsonObject = field(default_factory=empty)
    """The field that moot added to the record (`mark_of`). Records with the same `messageId` in it form one message."""


Records: TypeAlias = Iterator[SessionRecord | ImportedRecord | ImportedFacts]
"""The contents of a session, in the order of the source."""


def reasoning(text: str, metadata: JsonObject | None = None) -> Part:
    """Return a reasoning part. `metadata` maps a dialect to its signature."""
    part: Part = {"type": "reasoning", "text": text, "state": "done"}
    return {**part, "providerMetadata": metadata} if metadata else part


def tool_call(id: str, name: str, arguments: Json, *, title: str = "") -> Part:
    """Return a tool call without an output."""
    part: Part = {"type": "dynamic-tool", "toolName": name or "unknown", "toolCallId": id}
    if title:
        part["title"] = title
    return {**part, "state": "input-available", "input": arguments}


def file(url: str, media_type: str, name: str = "") -> Part:
    """Return a file part. Its URL may work only in the program that it comes from."""
    part: Part = {"type": "file", "mediaType": media_type or media_type_of(url), "url": url}
    return {**part, "filename": name} if name else part


def file_of(data: bytes, media_type: str, name: str = "") -> Part:
    """Return a file part that contains the data."""
    return file(f"data:{media_type};base64,{base64.b64encode(data).decode()}", media_type, name)


def step(model: str, provider: str = "", **facts: Json) -> JsonObject:
    """Return the known facts about a model call: `finish_reason`, `usage`, `cost` and `ms`. Values that are None are omitted."""
    result: JsonObject = {"model": f"{model}@{provider}" if provider else model} if model else {}
    return result | {name: value for name, value in facts.items() if value is not None and value != {}}


def routed_step(model: str, **facts: Json) -> JsonObject:
    """Return the facts about a model call as `step` does, for a model whose name is `PROVIDER/MODEL`, as in LiteLLM, or just `MODEL`."""
    provider, _, name = model.partition("/")
    return step(name, provider, **facts) if name else step(model, "", **facts)


def usage_without_cache(fresh: int | None, output: int | None, cache_read: int | None, cache_write: int | None) -> Usage:
    """Return the usage of a model call. `fresh` is the input count without cached tokens; these are added to it."""
    return Usage(None if fresh is None else fresh + (cache_read or 0) + (cache_write or 0), output, cache_read, cache_write)


def entries_of(records: Records, tree: Branches | None = None, head: str | None = None) -> Iterator[Entry]:
    """Yield the entries of a conversation, followed by their fidelity counts.

    If there is no `tree`, each record follows the one before it. `head` is the last record of the active branch.
    """
    converter = Converter(tree)
    for one in records:
        yield from converter.take(one)
    yield from converter.close(head)


def exact_records(message: Message, records: list[JsonObject], read: Callable[[JsonObject], SessionRecord]) -> list[JsonObject]:
    """Return the records of a message with the field from which moot restores the message exactly. `read` converts a record."""
    return marked(message, records, _Group("", None, own=[read(one) for one in records]).message())


def with_counts(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries unchanged, followed by the counts of kept and lost items."""
    counts = _Counts()
    for entry in entries:
        yield counts.take(entry)
    yield counts.facts()


@dataclass(slots=True)
class _Counts:
    """The counts of kept and lost items in entries."""

    kept: Counter[str] = field(default_factory=Counter[str])
    lost: Counter[str] = field(default_factory=Counter[str])
    titled: bool = False

    def take(self, entry: Entry) -> Entry:
        """Count an entry and return it."""
        if isinstance(entry, ImportedMessage):
            self.kept.update(things_in(entry))
        elif isinstance(entry, ImportedRecord):
            (self.lost if entry.problem else self.kept)["records"] += 1
        elif entry.title and not self.titled:
            self.kept["titles"] += 1
            self.titled = True
        return entry

    def facts(self) -> ImportedFacts:
        return ImportedFacts(Fidelity(self.kept, {}, self.lost))

    def copy(self) -> _Counts:
        return _Counts(self.kept.copy(), self.lost.copy(), self.titled)


class Converter:
    """Converter of a session's records to entries. Entries that are not records are passed on.

    If a record repeats an earlier record with the same id and bytes, only its bytes are kept.
    """

    def __init__(self, tree: Branches | None = None) -> None:
        """If there is no `tree`, each record follows the one before it."""
        self._messages = _Linear() if tree is None else _Branching(tree)
        self._seen: dict[str, int] = {}
        self._counts = _Counts()

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self._seen)

    @property
    def held(self) -> int:
        """Number of bytes of the records that are kept in memory."""
        return sum(len(one.raw) for group in self._messages.groups() for one in group.records)

    def take(self, one: SessionRecord | ImportedRecord | ImportedFacts) -> Iterator[Entry]:
        """Yield the entries that are complete after the next record."""
        if not isinstance(one, SessionRecord):
            yield self._counts.take(one)
        elif self._seen.get(one.id) == (mark := hash(one.raw)):
            yield self._counts.take(ImportedRecord(one.raw))
        else:
            self._seen[one.id] = mark
            yield from map(self._counts.take, self._messages.take(one))

    def close(self, head: str | None = None) -> Iterator[Entry]:
        """Yield the last message and the fidelity counts. `head` is the last record of the active branch."""
        yield from map(self._counts.take, self._messages.close())
        if head is not None and (shown := self._messages.message_of(head)) is not None:
            yield ImportedFacts(head=shown)
        yield self._counts.facts()

    def copy(self) -> Converter:
        """Return a converter that continues independently of this one."""
        other = Converter()
        other._messages, other._seen, other._counts = self._messages.copy(), self._seen.copy(), self._counts.copy()
        return other


@dataclass(slots=True)
class _Group:
    """The records that form one message."""

    id: str
    parent: str | None
    inherited: tuple[SessionRecord, ...] = ()
    """The records that are repeated from the message in which this message's branch starts."""
    own: list[SessionRecord] = field(default_factory=list[SessionRecord])

    @property
    def records(self) -> tuple[SessionRecord, ...]:
        return (*self.inherited, *self.own)

    def message(self) -> ImportedMessage:
        records = self.records
        role = records[0].role
        parts, steps = _parts(records, role)
        own = steps[sum(len(one.further_steps) + bool(one.step) for one in self.inherited) :]
        raw = b"".join(one.raw for one in records)
        at = next((one.at for one in (self.own or records) if one.at), 0)
        read = ImportedMessage(role, parts, self.id, raw, self.parent, at, _metadata(records, own), self._identities())
        return restored(read, records[0].mark, len(records)) if records[0].mark else read

    def copy(self) -> _Group:
        return replace(self, own=[*self.own])

    def joins(self, one: SessionRecord) -> bool:
        """Return whether the record continues this message."""
        first, message = self.records[0], text(one.mark, "messageId")
        if message or first.mark:
            return message == text(first.mark, "messageId")
        return one.role == "assistant" == first.role

    def _identities(self) -> tuple[str, ...]:
        found = tuple([one.identity for one in self.own if one.step])
        found = found or tuple([one.identity for one in self.own[:1]])
        return found if any(found) else ()


def _parts(records: tuple[SessionRecord, ...], role: Role) -> tuple[tuple[Part, ...], list[JsonObject]]:
    parts: list[Part] = []
    steps: list[JsonObject] = []
    used_ids: set[str] = set()
    number = 0
    for one in records:
        if role == "assistant" and (one.parts or one.step is not None):
            number += 1
            parts.append({"type": "step-start"})
        parts += [_unique(part, used_ids, number, at) if is_tool(part) else part for at, part in enumerate(one.parts)]
        for output in one.outputs:
            _settle(parts, output, used_ids, number)
        steps += [{"step": number, **facts} for facts in (*one.further_steps, one.step) if facts]
    return tuple(parts), steps


def _unique(part: Part, used_ids: set[str], step: int, at: int) -> Part:
    """Return the call with an id that is unique within the message. Some programs and vendors reuse ids."""
    id = str(part.get("toolCallId") or "")
    own = id if id and id not in used_ids else f"{id}#{step}.{at}"
    used_ids.add(own)
    return part if own == id else {**part, "toolCallId": own, "toolMetadata": {"vendorId": id}}


def _settle(parts: list[Part], output: Output, used_ids: set[str], step: int) -> None:
    """Attach an output to the oldest call with its id that has no output. If there is no such call, create it."""
    for index, part in enumerate(parts):
        if is_tool(part) and not is_settled(part) and output.call in (part.get("toolCallId"), at(part, "toolMetadata", "vendorId")):
            parts[index] = _with_output(part, output)
            return
    created = _unique(tool_call(output.call, output.name, None), used_ids, step, len(parts))
    parts.append(_with_output(created, output))


def _with_output(part: Part, output: Output) -> Part:
    if output.denied:
        return {**part, "state": "output-denied", "approval": {"id": output.call, "approved": False, "reason": _words(output.value)}}
    if output.error:
        return {**part, "state": "output-error", "errorText": _words(output.value)}
    return {**part, "state": "output-available", "output": output.value}


def _words(value: Json) -> str:
    if text(value, "type") == "content":
        return "\n".join(str(one.get("text", "")) for one in objects(value, "value"))
    return value if isinstance(value, str) else "failed" if value is None else str(value)


def _metadata(records: tuple[SessionRecord, ...], steps: list[JsonObject]) -> JsonObject:
    metadata: JsonObject = {}
    for one in records:
        metadata |= one.metadata or {}
    if not steps:
        return metadata
    last = next((one for one in reversed(steps) if one.get("model")), steps[-1])
    model, _, provider = str(last.get("model", "")).rpartition("@")
    metadata |= {"model": model or provider} if last.get("model") else {}
    metadata |= {"provider": provider} if model else {}
    if reason := steps[-1].get("finish_reason"):
        metadata["finish_reason"] = reason
    return {**metadata, "steps": list[Json](steps)}


class _Linear:
    """Converter for sessions without branches."""

    def __init__(self) -> None:
        self._open: _Group | None = None
        self._seen: dict[str, int] = {}
        self._last: str | None = None

    def take(self, one: SessionRecord) -> Iterator[Entry]:
        group = self._open
        if group is not None and group.joins(one):
            group.own.append(one)
            return
        yield from self.close()
        self._open = _Group(_fresh(self._seen, one.id), self._last)
        self._open.own.append(one)

    def copy(self) -> _Linear:
        other = _Linear()
        other._open, other._seen, other._last = self._open and self._open.copy(), self._seen.copy(), self._last
        return other

    def groups(self) -> list[_Group]:
        """Return the groups that are kept in memory."""
        return [self._open] if self._open is not None else []

    def message_of(self, record: str) -> str | None:
        """Return None, because a session without branches always shows its last message."""
        return None

    def close(self) -> Iterator[Entry]:
        if self._open is not None:
            message, self._open = self._open.message(), None
            self._last = message.source_id
            yield message


class _Branching:
    """Converter for sessions in which each record refers to its predecessor, so that the records form a tree."""

    def __init__(self, tree: Branches) -> None:
        self._tree = tree
        self._open: _Group | None = None
        self._seen: dict[str, int] = {}
        self._message_by_record: dict[str, tuple[str, bool]] = {}
        """Record id → id of its message, and whether it is an assistant message."""
        self._forked: dict[str, _Group] = {}
        """Message id → message, for messages with a record that has several successors."""
        self._last_records: dict[str, str] = {}
        """Message id → id of its last record."""

    def take(self, one: SessionRecord) -> Iterator[Entry]:
        parent = self._tree.nearest.get(one.parent, one.parent) if one.parent is not None else None
        one = replace(one, id=_fresh(self._seen, one.id), parent=parent if parent in self._message_by_record else None)
        group = self._open
        if group is not None and group.joins(one) and one.parent == group.records[-1].id:
            self._add(group, one)
            return
        yield from self.close()
        parent, inherited = yield from self._parent_of(one)
        self._open = _Group(one.id, parent, inherited)
        self._add(self._open, one)

    def copy(self) -> _Branching:
        other = _Branching(self._tree)
        forked = {id: group.copy() for id, group in self._forked.items()}
        other._open = self._open and forked.get(self._open.id, self._open.copy())
        other._seen, other._message_by_record = self._seen.copy(), self._message_by_record.copy()
        other._forked, other._last_records = forked, self._last_records.copy()
        return other

    def groups(self) -> list[_Group]:
        """Return the groups that are kept in memory."""
        return [*self._forked.values(), *([self._open] if self._open is not None and self._open.id not in self._forked else [])]

    def message_of(self, record: str) -> str | None:
        """Return the message that contains a record."""
        found = self._message_by_record.get(self._tree.nearest.get(record) or record)
        return found[0] if found is not None else None

    def close(self) -> Iterator[Entry]:
        if self._open is not None:
            group, self._open = self._open, None
            yield group.message()

    def _add(self, group: _Group, one: SessionRecord) -> None:
        group.own.append(one)
        self._message_by_record[one.id] = (group.id, group.records[0].role == "assistant")
        self._last_records[group.id] = one.id
        if one.id in self._tree.forks:
            self._forked[group.id] = group

    def _parent_of(self, one: SessionRecord) -> Generator[Entry, None, tuple[str | None, tuple[SessionRecord, ...]]]:
        """Return the parent message of a record.
        If the record starts a branch in the middle of that message, also return the records to repeat.
        """
        if one.parent is None:
            return None, ()
        message, is_answer = self._message_by_record[one.parent]
        group = self._forked.get(message)
        if not is_answer or group is None or (one.role != "assistant" and self._last_records[message] == one.parent):
            return message, ()
        records = group.records
        shared = records[: next(at for at, known in enumerate(records) if known.id == one.parent) + 1]
        if one.role == "assistant":
            return group.parent, shared
        repeated = _Group(_fresh(self._seen, f"{one.parent}~"), group.parent, shared)
        self._message_by_record[one.parent] = (repeated.id, True)
        self._last_records[repeated.id], self._forked[repeated.id] = one.parent, repeated
        yield repeated.message()
        return repeated.id, ()


def _fresh(seen: dict[str, int], id: str) -> str:
    """Return the id, with a number appended if it is already used. In damaged sources, records may have no id."""
    id = id or "unnamed"
    count = seen.get(id, 0)
    seen[id] = count + 1
    return id if not count else _fresh(seen, f"{id}#{count}")


def media_type_of(url: str, default: str = "application/octet-stream") -> str:
    """Return the media type of a `data:` URL, or `default` for any other URL."""
    return url[5:].partition(",")[0].partition(";")[0] if url.startswith("data:") else default


def detect_media_type(data: bytes, default: str = "") -> str:
    """Detect common picture formats and PDF by their magic bytes. Return the media type, or `default` for other data."""
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), default)


def output_value(parts: Sequence[Part], separator: str = "") -> Json:
    """Return a tool output as text, or as a `content` object if it contains other parts."""
    if all(part["type"] == "text" for part in parts):
        return separator.join(str(part["text"]) for part in parts)
    return {"type": "content", "value": list[Json](parts)}


_FINISHES = {
    **dict.fromkeys(("stop", "end_turn", "STOP", "complete", "completed", "stop_sequence"), "stop"),
    **dict.fromkeys(("tool-calls", "tool_calls", "tool_call", "toolUse", "tool_use"), "tool-calls"),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("content-filter", "content_filter", "refusal", "SAFETY"), "content-filter"),
    "error": "error",
}


def finish_reason(reason: str) -> str | None:
    """Map a vendor's finish reason to moot's. Return None if it is empty."""
    return _FINISHES.get(reason, "other") if reason else None
