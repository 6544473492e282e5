"""The format `jsonl`: conversations as JSON Lines, a header followed by one line for each message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats._portable import HOLDS, VERSION, ConversationReader, conversation_value, lost, message_value, named
from moot.formats._source.lines import Line, json_lines
from moot.formats._writing import families, fidelity_of, linked
from moot.types.canonical import JsonObject, dumps, loads_object
from moot.types.format import Entry, ExportedConversation, ImportedConversation, ImportedRecord, Written

__all__ = ["JsonLines"]

MARK = "lines"
"""Value of `moot` in a header line."""


class JsonLines:
    """`Format`."""

    name = "jsonl"
    version = 1
    suffix = ".jsonl"
    words = "one line per message, for programs that stream"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        return _header(_object(head.partition(b"\n")[0])) is not None

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        lines = _Lines(path)
        while (header := lines.header()) is not None:
            value = _header(header.value) or {}
            entries = _entries(lines, header, value)
            yield ImportedConversation(
                named(value, "id") or f"line-{header.number}", entries, named(value, "parent") or None, named(value, "parent_call") or None
            )
            for _ in entries:
                pass  # skip what the caller did not read
        if not lines.any:
            raise UsageError(f"No conversation found in {str(path)!r}: it has no header line.")

    def write(self, exported: ExportedConversation) -> Written:
        lines: list[bytes] = []
        for one, parent in families(exported):
            lines.append(dumps({"moot": MARK, "version": VERSION, "conversation": conversation_value(one, parent)}))
            lines += [dumps(message_value(message, before)) for message, before in linked(one)]
        return Written(b"".join(line + b"\n" for line in lines), fidelity_of(exported, self.holds))


class _Lines:
    """The lines of a file with one line of lookahead."""

    def __init__(self, path: Path) -> None:
        self._lines = json_lines(path)
        self._back: Line | None = None
        self.any = False

    def next(self) -> Line | None:
        line, self._back = self._back or next(self._lines, None), None
        return line

    def back(self, line: Line) -> None:
        self._back = line

    def header(self) -> Line | None:
        """Return the next header line. Lines before the first header are ignored."""
        while (line := self.next()) is not None:
            if _header(line.value) is not None:
                self.any = True
                return line
        return None


def _entries(lines: _Lines, header: Line, value: JsonObject) -> Iterator[Entry]:
    reader = ConversationReader(value)
    yield ImportedRecord(header.raw, header.value)
    yield reader.begin()
    while (line := lines.next()) is not None:
        if _header(line.value) is not None:
            lines.back(line)
            break
        if line.value is None:
            yield from lost(line.raw, None, line.problem)
        else:
            yield from reader.read(line.value, line.raw, f"line {line.number}")
    yield reader.end()


def _object(line: bytes) -> JsonObject | None:
    try:
        return loads_object(line)
    except ValueError:
        return None


def _header(value: JsonObject | None) -> JsonObject | None:
    """Return the conversation of a header line, or None for any other line."""
    if value is None or value.get("moot") != MARK:
        return None
    found = value.get("conversation")
    return found if isinstance(found, dict) else None
