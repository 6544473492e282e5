"""Detect content that a format left out of a message because it does not know the structure of a record.

The strings in each record are compared with the message that was read from the record. Strings that are missing from the message are
reported as lost. Fields that only describe a record, such as ids and times, are ignored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from moot.convert.files.attachments import file_text
from moot.formats.kit.fidelity import things_in
from moot.formats.kit.fields import obj
from moot.types.canonical import Json, JsonObject, loads
from moot.types.format import Entry, Fidelity, Format, ImportedConversation, ImportedFacts, ImportedMessage, ImportedRecord, NamesRecords

_ABOUT = frozenset(
    (
        *("id", "uuid", "ID", "type", "role", "kind", "object", "status", "index", "version", "revision", "snapshot"),
        *(
            "model",
            "provider",
            "agent",
            "api",
            "usage",
            "stats",
            "stop_reason",
            "stopReason",
            "finishReason",
            "plan_type",
            "content_item_kinds",
        ),
        *("cwd", "gitBranch", "userType", "hash", "parent", "info", "preview", "display"),
        *("timestamp", "created_at", "updated_at", "createdAt", "updatedAt"),
    )
)
"""Names of fields that only describe a record. They are ignored."""
_WORDS = frozenset(("state", "source", "generationStatus"))
"""Names of fields that only describe a record if their value is text. If the value is an object, it may contain an output or a file."""
_IDS = ("Id", "ID", "_id", "Uuid", "Hash", "_hash")
_SPEECH = frozenset(("content", "text", "parts", "message", "messages", "blocks", "thinking", "output"))
"""Names of fields in which most programs store the content of a message."""
_ABOUT_BY_NAME: dict[str, bool] = {}
"""Cache: name of a field → whether it describes a record. There are few names, and each of them is looked up often."""
_NAMES = 10_000
"""Maximum number of names in this cache."""
_WITH_TEXT = (str, dict, list)
"""Types of values that may contain text."""
_OPENS = frozenset(("{", "["))
_JSON = json.JSONDecoder(strict=False)
_SMALL = 3
"""Maximum number of content fields in a record that is only a message. In larger records, unknown fields may describe the record."""
_LEAST = 3
"""Minimum length of a string, in characters, to be reported as lost."""


def read_checked(format: Format, conversations: Iterator[ImportedConversation], source: str = "") -> Iterator[ImportedConversation]:
    """Yield the conversations, and report all content that the format left out.

    A message that is empty because its structure is unknown becomes a record with a problem. Other missing content is counted as lost. A
    record that contains the text of a message but was not read is also counted as lost, unless the format omits it on purpose. If the id
    of a conversation or message is empty, it is replaced by a new one; for conversations, that contains a hash of the path `source`.
    """
    unnamed, place = 0, blake2b(source.encode("utf-8", "replace"), digest_size=8).hexdigest()
    for conversation in conversations:
        if not conversation.source_id:
            unnamed += 1
            conversation = replace(conversation, source_id=f"unnamed-{place}-{unnamed}")
        yield replace(conversation, entries=Checker.of(format).entries(iter(conversation.entries)))


def _is_never_known(_: JsonObject) -> bool:
    return False


@dataclass(slots=True)
class Checker:
    """Checker for one conversation, described at `read_checked`. It compares each message with its records."""

    is_known: Callable[[JsonObject], bool]
    """Function that returns whether the format omits a record on purpose."""
    removed: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Id of a message that was replaced by a record → its parent."""
    unnamed: int = 0
    """Number of messages so far whose id is empty."""

    @staticmethod
    def of(format: Format) -> Checker:
        return Checker(format.knows_record if isinstance(format, NamesRecords) else _is_never_known)

    def copy(self) -> Checker:
        return replace(self, removed=dict(self.removed))

    def entries(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if isinstance(entry, ImportedMessage):
                yield from self._message(entry)
            elif isinstance(entry, ImportedRecord):
                yield from self._record(entry)
            else:
                yield replace(entry, head=self.removed[entry.head]) if entry.head in self.removed else entry

    def _named(self, message: ImportedMessage) -> ImportedMessage:
        """Return the message with an id. An empty parent is the last message with an empty id."""
        parent = f"unnamed-{self.unnamed}" if message.parent == "" else message.parent
        if not message.source_id:
            self.unnamed += 1
        id = message.source_id or f"unnamed-{self.unnamed}"
        return replace(message, source_id=id, parent=parent)

    def _message(self, message: ImportedMessage) -> Iterator[Entry]:
        if not message.source_id or message.parent == "":
            message = self._named(message)
        if message.parent in self.removed:
            message = replace(message, parent=self.removed[message.parent])
        try:
            places = unread(message, self.is_known)
        except RecursionError:
            places = ["a record that is nested too deeply"]
        if places and all(part.get("type") == "step-start" for part in message.parts):
            self.removed[message.source_id] = message.parent
            yield ImportedRecord(message.raw, problem=f"message {message.source_id!r} has an unknown shape")
            taken_back = {thing: -count for thing, count in Counter(things_in(message)).items()}
            yield ImportedFacts(Fidelity(taken_back, lost={"messages": 1}))
            return
        yield message
        if places:
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            yield ImportedRecord(b"", problem=f"message {message.source_id!r}: {places[0]!r}{more} not read, because the shape is unknown")
            yield ImportedFacts(Fidelity(lost={"other parts": len(places)}))

    def _record(self, record: ImportedRecord) -> Iterator[Entry]:
        body = record.body if isinstance(record.body, dict) else None
        try:
            known = record.problem or body is None or not _has_speech(body, inside=False) or self.is_known(body)
        except RecursionError:
            known = False
        if known or body is None:
            yield record
            return
        yield replace(record, problem=f"a record of the unknown type {body.get('type') or '(none)'!r} contains text that was not read")
        yield ImportedFacts(Fidelity({"records": -1}, lost={"records": 1}))


def unread(message: ImportedMessage, is_known: Callable[[JsonObject], bool]) -> list[str]:
    """Return the paths of strings that are in a message's records but not in the message.

    Strings outside content blocks count only if nothing else in the record was read. Records for which `is_known` is true are skipped.
    """
    known: _Known | None = None
    found: list[str] = []
    for value in message.records or _values(message.raw):
        if isinstance(value, dict) and is_known(value):
            continue
        known = known or _Known(message)
        strings = _Strings(known)
        strings.walk(value, "", "record" if isinstance(value, dict) and "role" in value and _is_small(value) else None)
        found += strings.places()
    return found


def _values(raw: bytes) -> Iterator[Json]:
    """Yield the JSON values in raw bytes, up to the first value that is not JSON."""
    try:
        yield from [loads(line) for line in raw.splitlines()]
        return
    except ValueError:
        text, at = raw.decode("utf-8", "replace"), 0
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if text[at : at + 1] not in ("{", "["):
            return
        try:
            value, at = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value


_NAMED = frozenset(("type", "state"))
"""Fields of a part whose value is a name."""


class _Known:
    """The strings in a message that a format has read."""

    def __init__(self, message: ImportedMessage) -> None:
        self.strings = {message.source_id}
        for part in message.parts:
            self.strings |= part.keys() - _NAMED
            for name, value in part.items():
                if name not in _NAMED:
                    _collect(value, self.strings)
        _collect(message.metadata, self.strings)
        self._joined: str | None = None

    def has(self, text: str) -> bool:
        """Return whether the message contains the text, or most of it. A short text must be equal to one of the message's strings."""
        if text in self.strings or len(text.strip()) < _LEAST:
            return text in self.strings
        if self._joined is None:
            self._joined = "\0".join(self.strings)
        return text.strip() in self._joined or 3 * sum(len(one) for one in self.strings if one in text) > 2 * len(text)


def _collect(value: Json, into: set[str]) -> None:
    if isinstance(value, str):
        into.add(value)
        if value.startswith("data:text/") and (text := file_text({"url": value, "mediaType": "text/plain"})) is not None:
            into.add(text)
    elif isinstance(value, dict):
        into.update(value)
        for one in value.values():
            if isinstance(one, str) and not one.startswith("data:text/"):
                into.add(one)
            elif isinstance(one, _WITH_TEXT):
                _collect(one, into)
    elif isinstance(value, list):
        for one in value:
            _collect(one, into)


class _Strings:
    """The comparison of one record's strings with a message. A block is an object in a list, such as a content block."""

    __slots__ = ("any_read", "inside", "known", "outside")

    def __init__(self, known: _Known) -> None:
        self.known = known
        self.any_read = False
        self.outside: list[str] = []
        """Paths of missing strings that are outside blocks."""
        self.inside: list[str] = []
        """Paths of missing strings that are inside blocks."""

    def walk(self, value: Json, place: str, block: str | None) -> None:
        """Compare all strings in a value. `block` is the path of the innermost block."""
        if isinstance(value, str):
            self._compare(value, place, block)
        elif isinstance(value, dict):
            read = self.known.strings
            for name, one in value.items():
                if _ABOUT_BY_NAME.get(name) or not isinstance(one, _WITH_TEXT) or _is_about(name, one):
                    continue
                if isinstance(one, str) and one in read and one[:1] not in _OPENS:  # most strings
                    self.any_read = True
                else:
                    self.walk(one, f"{place}.{name}" if place else name, block)
        elif isinstance(value, list):
            for at, one in enumerate(value):
                inner = f"{place}.{at}"
                self.walk(one, inner, inner if isinstance(one, dict) else block)

    def places(self) -> list[str]:
        """Return the paths to report. If any other string was read, missing strings outside blocks are not reported."""
        return self.inside or (self.outside[:1] if not self.any_read else [])

    def _compare(self, value: str, place: str, block: str | None) -> None:
        if value[:1] in _OPENS and (parsed := _parsed(value)) is not None:
            self.walk(parsed, place, place if "type" in obj(parsed) and _is_small(parsed) else block)
        elif len(value.strip()) < _LEAST:
            self.any_read = self.any_read or self.known.has(value)
        elif self.known.has(value):
            self.any_read = True
        elif block is None:
            self.outside.append(place)
        else:
            self.inside.append(place)


def _is_small(value: Json) -> bool:
    return isinstance(value, dict) and _fields(value) <= _SMALL


def _fields(value: JsonObject) -> int:
    """Return the number of fields that have content, including fields of inner objects."""
    return sum(_fields(one) if isinstance(one, dict) else 1 for name, one in value.items() if not _is_about(name, one))


def _is_about(name: str, value: Json) -> bool:
    """Return whether a field only describes a record."""
    about = _ABOUT_BY_NAME.get(name)
    if about is None:
        about = name in _ABOUT or name.endswith(_IDS)
        if len(_ABOUT_BY_NAME) < _NAMES:
            _ABOUT_BY_NAME[name] = about
    return about or (name in _WORDS and isinstance(value, str))


def _parsed(value: str) -> Json:
    try:
        return loads(value)
    except ValueError:
        pass
    try:
        return _JSON.decode(value)
    except (ValueError, RecursionError):
        return None


def _has_speech(value: Json, *, inside: bool) -> bool:
    """Return whether a value contains text in a field that programs use for messages."""
    if isinstance(value, str):
        return inside and len(value.strip()) >= _LEAST
    if isinstance(value, list):
        return any(_has_speech(one, inside=inside) for one in value)
    if isinstance(value, dict):
        return any(_has_speech(one, inside=inside or name in _SPEECH) for name, one in value.items() if not _is_about(name, one))
    return False
