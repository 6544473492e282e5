"""The format `recording`: read and write its JSON Lines files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import moot
from moot.convert.exchanges import translator_of
from moot.convert.imports import apply_growth, is_growth
from moot.convert.recordings import complete_recording
from moot.convert.serialization import raw_json
from moot.errors import UsageError
from moot.formats.kit.fields import obj
from moot.formats.recording import values
from moot.formats.recording.captures import LOOKED_AT, Line, convert_capture, recognize
from moot.types.canonical import JsonObject, dumps, empty, loads_exact
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.format import (
    ExportedConversation,
    ExportFile,
    Fidelity,
    ImportedConversation,
    ImportedFacts,
    ImportedMessage,
    ImportedRecord,
)
from moot.types.imports import Content, Recording
from moot.types.message import Message
from moot.types.run import Run

VERSION = 1
MARK = "recording"


def lines_of(recording: Recording, program: str) -> Iterator[bytes]:
    """Yield the lines of a recording: conversation, messages, runs, exchanges, events, and finally the contents that these reference."""
    yield _line({MARK: VERSION, "moot": program, "conversation": values.conversation_facts(recording.conversation)})
    for message in recording.messages:
        yield _line({"message": values.message_facts(message, deleted=message.id in recording.deleted)})
    for run in recording.runs:
        yield _line({"run": values.run_facts(run)})
    translated = set[str | None]()
    for exchange in recording.exchanges:
        yield _line({"exchange": values.exchange_facts(exchange)})
        if "redacted" in exchange.request:
            continue  # the raw bytes were redacted and would be translated to different chunks
        if (translator := translator_of(exchange.converter)) and exchange.converter == f"{translator.name}/{translator.version}":
            translated.add(exchange.id)
    for event in recording.events:
        is_frame = event.kind == "raw" and event.raw is not None and event.exchange is not None
        yield _line(
            values.frame_facts(event, chunks=event.exchange not in translated) if is_frame else {"event": values.event_facts(event)}
        )
    for content in recording.contents.values():
        yield _line({"content": {"media_type": content.media_type, **raw_json(content.data)}})


def _line(value: JsonObject) -> bytes:
    return dumps(value) + b"\n"


def object_of(line: bytes) -> JsonObject | None:
    """Return the object on a line, or None if it is not a JSON object."""
    if not line.lstrip().startswith(b"{"):
        return None  # fast path: most lines of unrelated files
    try:
        value = loads_exact(line.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def header_of(line: bytes) -> JsonObject | None:
    """Return the header line of a recording, or None for any other line."""
    value = object_of(line)
    return value if value is not None and type(value.get(MARK)) is int and isinstance(value.get("conversation"), dict) else None


@dataclass(slots=True)
class Draft:
    """A recording that is being read line by line. An unreadable line is kept and does not affect other lines."""

    conversation: Conversation
    messages: list[JsonObject] = field(default_factory=list[JsonObject])
    runs: list[Run] = field(default_factory=list[Run])
    exchanges: dict[str, Exchange] = field(default_factory=dict[str, Exchange])
    events: list[Event] = field(default_factory=list[Event])
    contents: dict[str, Content] = field(default_factory=dict[str, Content])
    notes: list[str] = field(default_factory=list[str])
    lost: Counter[str] = field(default_factory=Counter[str])
    raws: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Message id → the most complete line about the message."""
    junk: list[bytes] = field(default_factory=list[bytes])

    @classmethod
    def begin(cls, header: JsonObject) -> Draft:
        return cls(values.conversation_of(obj(header, "conversation")))

    def take(self, number: int, line: bytes) -> None:
        """Read the next line. `number` is its line number in the file."""
        value = object_of(line)
        try:
            if value is None:
                raise ValueError("The line is not a JSON object.")
            self._take(value, line)
        except ValueError as error:
            self.notes.append(f"line {number}: {error}")
            self.lost["lines"] += 1
            self.junk.append(line)

    def _take(self, value: JsonObject, line: bytes) -> None:
        id = self.conversation.id
        match value:
            case {"exchange": str() as exchange}:
                known = self.exchanges.get(exchange)
                self.events.append(values.frame_of(value, (known.run or None) if known is not None else None))
            case {"exchange": dict() as facts}:
                translated = values.exchange_of(facts, id)
                self.exchanges[translated.id] = translated
            case {"event": dict() as facts}:
                event = values.event_of(facts)
                self.events.append(event)
                if event.kind == "message" and isinstance(event.body, dict):
                    self.raws[str(event.body.get("id"))] = line
            case {"message": dict() as facts}:
                self.messages.append(facts)
                self.raws.setdefault(str(facts.get("id")), line)
            case {"run": dict() as facts}:
                self.runs.append(values.run_of(facts, id))
            case {"content": dict() as facts}:
                self._content(facts)
            case _:
                raise ValueError(
                    "Expected one of the keys `message`, `run`, `exchange`, `event`, `content` and `frame`,"
                    f" got {', '.join(list(value)[:4]) or 'an empty object'}."
                )

    def _content(self, facts: JsonObject) -> None:
        data = values.raw_of(facts)
        if data is None:
            raise ValueError("A content line must have `raw` or `raw_base64`.")
        self.contents[hashlib.sha256(data).hexdigest()] = Content(data, str(facts.get("media_type") or "application/octet-stream"))

    def whole(self) -> Recording:
        """Return the recording with valid references: parents precede their children,
        each run has a message, and events belong to existing runs.
        """
        runs = {run.id: run for run in self.runs if run.id and run.message and self._is_told(run)}
        events = [self._settled(event, runs) for event in self.events]
        messages, deleted = self._messages(events, runs)
        ids = {message.id for message in messages}
        kept_runs = tuple(run for run in runs.values() if run.message in ids)
        head = self.conversation.head if self.conversation.head in ids else (messages[-1].id if messages else None)
        kept = Counter({"messages": len(messages), "runs": len(kept_runs), "frames": sum(event.kind == "raw" for event in events)})
        kept.update(_NAMES.get(str(part.get("type")).partition("-")[0], "") for message in messages for part in message.parts)
        del kept[""]
        if self.contents:
            kept["contents"] = len(self.contents)
        return Recording(
            self.conversation.id,
            replace(self.conversation, head=head),
            tuple(messages),
            kept_runs,
            tuple(exchange for exchange in self.exchanges.values() if not exchange.run or exchange.run in runs),
            tuple(_placed(events)),
            frozenset(deleted),
            self.contents,
            Fidelity(+kept, {}, self.lost),
            tuple(self.notes),
        )

    def _is_told(self, run: Run) -> bool:
        """Return whether the file contains an event of the run."""
        exchanges = {exchange.id for exchange in self.exchanges.values() if exchange.run == run.id}
        return any(event.run == run.id or event.exchange in exchanges for event in self.events)

    def _settled(self, event: Event, runs: dict[str, Run]) -> Event:
        """Detach an event from a run that does not exist."""
        exchange = self.exchanges.get(event.exchange) if event.exchange is not None else None
        run = event.run or (exchange.run if exchange is not None else None) or None
        return event._replace(run=run if run in runs else None)

    def _messages(self, events: list[Event], runs: dict[str, Run]) -> tuple[list[Message], list[str]]:
        bodies = _bodies_of(events)
        rows = {str(row.get("id")): row for row in self.messages if row.get("id")}
        for id, (_, event) in bodies.items():  # a message without its own line is restored from its event
            rows.setdefault(id, {"id": id, "seq": event.seq, "created_at": event.at // 1000})
        for event in events:  # a message that was written by a run is also restored
            if event.kind == "tree" and (operation := _body(event)).get("op") == "answer" and operation.get("run") in runs:
                answer: JsonObject = {"id": operation.get("message"), "parent": operation.get("parent"), "created_at": event.at // 1000}
                rows.setdefault(str(operation.get("message")), {**answer, "seq": event.seq})
        for run in runs.values():
            rows.setdefault(run.message, {"id": run.message, "created_at": run.created_at})
        written = {run.message: run.id for run in runs.values()}
        found: list[Message] = []
        seen = set[str]()
        for id, row in sorted(rows.items(), key=lambda item: _place(item[1])):
            if id not in bodies and id not in written and row.get("deleted") is not True:
                self.lost["messages"] += 1
                self.notes.append(f"message {id!r}: The file has no readable content for it.")
                continue
            body, event = bodies.get(id) or (empty(), None)
            facts: JsonObject = {**row, "run": written.get(id), **({"seq": event.seq} if event is not None else {})}
            message = values.message_of(facts, self.conversation.id, {**body, "run": written.get(id)})
            parent = message.parent if message.parent in seen else (found[-1].id if message.parent is not None and found else None)
            found.append(replace(message, parent=parent))
            seen.add(id)
        return found, [id for id, row in rows.items() if row.get("deleted") is True]


def _bodies_of(events: Iterable[Event]) -> dict[str, tuple[JsonObject, Event]]:
    """Return a mapping from each message id to the message's first event and its body with all changes applied."""
    found: dict[str, tuple[JsonObject, Event]] = {}
    for event in events:
        body = _body(event)
        if event.kind != "message" or "id" not in body:
            continue
        id = str(body["id"])
        if not is_growth(body):
            found[id] = (body, event)
        elif id in found:
            known_body, first = found[id]
            before = values.message_of(known_body, "", known_body)
            parts, metadata = apply_growth(before.parts, before.metadata, body)
            found[id] = ({**known_body, "parts": list(parts), "metadata": metadata}, first)
    return found


def _body(event: Event) -> JsonObject:
    return event.body if isinstance(event.body, dict) else {}


def _place(row: JsonObject) -> int:
    seq = row.get("seq")
    return seq if type(seq) is int else 1 << 60


def _placed(events: Iterable[Event]) -> list[Event]:
    """Sort events by `seq` and remove duplicates and repeated journal keys."""
    found: list[Event] = []
    keys = set[tuple[str | None, str | None, str]]()
    for event in sorted(events, key=lambda event: event.seq):
        if found and found[-1] == event and event.seq:
            continue
        if event.key is not None:
            name = (event.run, event.phase, event.key)
            if name in keys:
                event = event._replace(key=None, phase=None)
            keys.add(name)
        found.append(event)
    return found


_NAMES = {"reasoning": "reasoning", "tool": "tool calls", "dynamic": "tool calls", "file": "files"}


class RecordingFormat:
    """`Format` and `Recorder` for recordings, which reproduce a conversation with all raw data of its model calls."""

    name = "recording"
    version = 1
    suffix = ".jsonl"

    def sniff(self, path: Path, head: bytes) -> bool:
        first, _, rest = head.partition(b"\n")
        if header_of(first) is not None:
            return True
        some = head[: head.rfind(b"\n") + 1].splitlines(keepends=True) or [head]
        lines = [Line(raw, object_of(raw)) for raw in some[:LOOKED_AT]]
        return (bool(rest) or path.suffix == self.suffix) and recognize(lines) is not None

    def recordings(self, path: Path, agent_type: str = "") -> Iterator[Recording]:
        """Yield each recording in the file, or the single conversation in a capture. Raise UsageError if the file can't be read."""
        try:
            lines = path.read_bytes().splitlines(keepends=True)
        except OSError as error:
            raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error
        if not any(line.strip() for line in lines):
            raise UsageError(f"{str(path)!r} is empty.")
        first = next((at for at, line in enumerate(lines) if header_of(line) is not None), None)
        if first is None:
            yield _capture(path, lines, agent_type)
            return
        for draft in _drafts(lines, first):
            yield complete_recording(draft.whole())

    def record(self, recording: Recording) -> ExportFile:
        return ExportFile(b"".join(lines_of(recording, moot.__version__)), recording.fidelity)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        """Yield the conversations with their messages only."""
        lines = path.read_bytes().splitlines(keepends=True)
        first = next((at for at, line in enumerate(lines) if header_of(line) is not None), None)
        if first is None:
            yield _as_messages(_capture(path, lines, ""), {}, [], b"".join(lines))
            return
        for draft in _drafts(lines, first):
            yield _as_messages(complete_recording(draft.whole()), draft.raws, draft.junk, b"")

    def write(self, exported: ExportedConversation) -> ExportFile:
        """Write the messages of a conversation without its runs."""
        messages = [
            replace(message, run=None, first_seq=seq, parent=exported.messages[seq - 2].id if seq > 1 else None)
            for seq, message in enumerate(exported.messages, 1)
        ]
        events = [
            Event(
                "message",
                body={"id": one.id, "role": one.role, "parent": one.parent, "parts": list(one.parts), "metadata": one.metadata},
                at=one.created_at * 1000,
                seq=one.first_seq,
            )
            for one in messages
        ]
        draft = Draft(exported.conversation, [], events=events)
        whole = draft.whole()
        return self.record(replace(whole, messages=tuple(messages)))


def _drafts(lines: list[bytes], first: int) -> Iterator[Draft]:
    draft: Draft | None = None
    for number, line in enumerate(lines[first:], first + 1):
        header = header_of(line)
        if header is not None:
            if draft is not None:
                yield draft
            draft = Draft.begin(header)
            continue
        assert draft is not None
        draft.take(number, line)
    if draft is not None:
        yield draft


def _capture(path: Path, lines: list[bytes], agent_type: str) -> Recording:
    read = [Line(line, object_of(line)) for line in lines if line.strip()]
    capture = recognize(read, agent_type)
    if capture is None:
        raise UsageError(
            f"{str(path)!r} is neither a recording nor a known agent's output stream.",
            fix="Specify the agent with --agent-type or the format with -f.",
        )
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    return complete_recording(
        convert_capture(capture, read, source_id=f"sha256:{digest}", at=path.stat().st_mtime_ns // 1000, name=path.stem)
    )


def _as_messages(recording: Recording, raws: dict[str, bytes], junk: list[bytes], whole: bytes) -> ImportedConversation:
    """Return only the messages of a recording. The raw data of each message is the most complete line about it."""
    messages = (
        ImportedMessage(one.role, one.parts, one.id, raws.get(one.id, whole), one.parent, one.created_at, one.metadata)
        for one in recording.messages
    )
    conversation = recording.conversation
    facts = ImportedFacts(recording.fidelity, title=conversation.title, head=conversation.head)
    return ImportedConversation(recording.source_id, (*messages, *map(ImportedRecord, junk), facts))
