"""Sessions in files to which a program appends lines. A session is read at once, or continued after the lines that were read before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from moot.formats.kit.bases import ManyFiles
from moot.formats.kit.documents import GrowingSession, Line, json_lines
from moot.formats.kit.records import Converter, Records
from moot.formats.kit.trees import Branches, find_branches
from moot.types.canonical import JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedRecord

_ID = 200
"""Number of bytes in memory for each record, approximately."""
_TIMES = 3
"""Memory that the bytes of a record need with its value and parts, in multiples of these bytes."""

Link: TypeAlias = tuple[str, str | None, bool]
"""The id of a line, the id of the line before it, and whether the line belongs to a message."""


class LineRecords:
    """Base class of converters of a session's lines to records. An object converts one session, and knows what further lines need.

    It can be copied before it takes an unreadable line, which changes only its own attributes.
    """

    def take(self, line: Line) -> Records:
        """Yield the records of the next line, which can be unreadable."""
        if line.value is None:
            yield ImportedRecord(line.raw, problem=line.problem)
        else:
            yield from self.convert(line, line.value)

    def convert(self, line: Line, value: JsonObject) -> Records:
        """Yield the records of the next line."""
        raise NotImplementedError

    def rest(self) -> Records:
        """Yield the records of lines that further lines may complete. The state stays the same."""
        return iter(())


class LinkedLines:
    """The tree that the lines of a session form. It is known for all lines before they are converted."""

    def __init__(self, path: Path, link: Callable[[JsonObject], Link]) -> None:
        self._link = link
        links = [link(one) for line in json_lines(path) if (one := line.value)]
        self.is_tree = any(parent for _, parent, _ in links)
        self.tree: Branches = find_branches(links)
        self.head = links[-1][0] if links else ""
        """Id of the last line."""
        self._last = next((id for id, _, speaks in reversed(links) if speaks), None)
        self._ids = set[str]()
        self._unknown = set[str]()
        """Ids that a line referred to before they were known."""
        for id, parent, _ in links:
            self._note(id, parent)

    def __len__(self) -> int:
        return len(self._ids)

    def fits(self, lines: Iterable[Line]) -> bool:
        """Return whether further lines only continue the last branch, so that they don't change how earlier lines are converted."""
        links, last, nearest = [self._link(line.value) for line in lines if line.value], self._last, dict[str, str | None]()
        new = set[str]()
        for id, parent, speaks in links:
            if not id or id in self._ids or id in self._unknown or id in new:
                return False
            new.add(id)
            above = None if parent is None else nearest.get(parent, self.tree.nearest.get(parent, parent))
            if not speaks:
                nearest[id] = above
            elif above is not None and above != last:
                return False
            else:
                last = id
        return self.is_tree

    def take(self, value: JsonObject) -> None:
        """Add a line to the tree, unless it was known before."""
        id, parent, speaks = self._link(value)
        if id in self._ids:
            return
        self.head = id
        self._note(id, parent)
        if speaks:
            self._last = id
        else:
            self.tree.nearest[id] = None if parent is None else self.tree.nearest.get(parent, parent)

    def _note(self, id: str, parent: str | None) -> None:
        self._ids.add(id)
        if parent is not None and parent not in self._ids:
            self._unknown.add(parent)


class RecordReader:
    """Reader (`LineReader`) of a session whose lines are converted to records."""

    def __init__(self, records: LineRecords, links: LinkedLines | None = None) -> None:
        """`links` is the tree of the lines. Without it, each record follows the one before it."""
        self._records = records
        self._links = links if links is not None and links.is_tree else None
        self._converter = Converter(self._links.tree if self._links is not None else None)
        self.fits = links.fits if links is not None else _fits_always

    @property
    def size(self) -> int:
        return _TIMES * self._converter.held + _ID * (self._converter.count + len(self._links or ()))

    def entries(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """Yield the entries of all lines, followed by their fidelity counts."""
        yield from self.take(lines)
        yield from self.rest()

    def take(self, lines: Iterable[Line]) -> Iterator[Entry]:
        for line in lines:
            if self._links is not None and line.value:
                self._links.take(line.value)
            for record in self._records.take(line):
                yield from self._converter.take(record)

    def rest(self, tail: Line | None = None) -> Iterator[Entry]:
        converter, records = self._converter.copy(), copy(self._records)
        for record in chain(records.take(tail) if tail is not None else (), records.rest()):
            yield from converter.take(record)
        yield from converter.close(self._links.head or None if self._links is not None else None)


def _fits_always(_: Iterable[Line]) -> bool:
    return True


class LineFiles(ManyFiles):
    """Base class of formats whose program appends lines to one file for each conversation."""

    def opened(self, path: Path) -> tuple[ImportedConversation, RecordReader]:
        """Return the conversation without its entries, and the reader of its lines. Raise UsageError for a file of another format."""
        raise NotImplementedError

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        conversation, reader = self.opened(path)
        yield replace(conversation, entries=reader.entries(json_lines(path)))

    def growing(self, path: Path) -> GrowingSession | None:
        conversation, reader = self.opened(path)
        return GrowingSession(conversation, reader, fits=reader.fits)
