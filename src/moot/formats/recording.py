"""The format `recording`: a conversation with its runs and raw exchanges. Also reads captures of other programs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import moot
from moot.convert.recorded import completed
from moot.errors import UsageError
from moot.formats._captures import LOOKED_AT, Line, captured, recognized
from moot.formats._lines import Draft, header_of, lines_of, object_of
from moot.types.event import Event
from moot.types.format import Entry, ExportedConversation, ImportedConversation, ImportedFacts, ImportedMessage, ImportedRecord, Written
from moot.types.recording import Recording

__all__ = ["RecordingFormat"]

_COUNTED = {"reasoning": "reasoning", "tool": "tool calls", "dynamic": "tool calls", "file": "files"}


class RecordingFormat:
    """`Format` and `Recorder`: a recording reproduces the conversation with all raw bytes."""

    name = "recording"
    version = 1
    suffix = ".jsonl"

    def sniff(self, path: Path, head: bytes) -> bool:
        first, _, rest = head.partition(b"\n")
        if header_of(first) is not None:
            return True
        some = head[: head.rfind(b"\n") + 1].splitlines(keepends=True) or [head]
        lines = [Line(raw, object_of(raw)) for raw in some[:LOOKED_AT]]
        return (bool(rest) or path.suffix == self.suffix) and recognized(lines) is not None

    def recordings(self, path: Path, agent_type: str = "") -> Iterator[Recording]:
        """Yield each recording of the file, or the single conversation of a capture. Raise UsageError if it can't be read."""
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
            yield completed(draft.whole())

    def record(self, recording: Recording) -> Written:
        return Written(b"".join(lines_of(recording, moot.__version__)), recording.fidelity)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        """Yield the conversations as messages only."""
        lines = path.read_bytes().splitlines(keepends=True)
        first = next((at for at, line in enumerate(lines) if header_of(line) is not None), None)
        if first is None:
            yield _told(_capture(path, lines, ""), {}, [], b"".join(lines))
            return
        for draft in _drafts(lines, first):
            yield _told(completed(draft.whole()), draft.raws, draft.junk, b"")

    def write(self, exported: ExportedConversation) -> Written:
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
    capture = recognized(read, agent_type)
    if capture is None:
        raise UsageError(
            f"{str(path)!r} is neither a recording nor a known agent's output stream.",
            fix="Specify the agent with --agent-type or the format with -f.",
        )
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    return completed(captured(capture, read, source_id=f"sha256:{digest}", at=path.stat().st_mtime_ns // 1000, name=path.stem))


def _told(recording: Recording, raws: dict[str, bytes], junk: list[bytes], whole: bytes) -> ImportedConversation:
    """Return a recording as messages. A message's raw is its most complete line."""
    entries: list[Entry] = [
        ImportedMessage(
            message.role, message.parts, message.id, raws.get(message.id, whole), message.parent, message.created_at, message.metadata
        )
        for message in recording.messages
    ]
    entries += [ImportedRecord(line) for line in junk]
    conversation = recording.conversation
    facts = ImportedFacts(recording.fidelity, title=conversation.title, head=conversation.head)
    return ImportedConversation(recording.source_id, (*entries, facts))
