"""Export of conversations into a folder with one file each: stable names, an index, and nothing written twice."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import anyio.to_thread

from moot.errors import MootError
from moot.runtime.exporting import holds
from moot.types.canonical import JsonObject, dumps, loads_object
from moot.types.conversation import Conversation
from moot.types.format import Fidelity, Format, Written
from moot.types.store import Holdings

__all__ = ["INDEX", "Filed", "Filter", "Folder", "Sheet", "filed", "put", "slug", "wanted"]

INDEX = "index.jsonl"
"""One line per conversation with its id, file, title and state. The last line of an id counts."""

_CHARACTERS = 60
_BYTES = 150
_PAGE = 200
_LATEST = 253_402_300_799_000


@dataclass(frozen=True, slots=True)
class Filter:
    """A selection of conversations. Empty fields match everything."""

    project: str = ""
    """Project id."""
    agent: str = ""
    since: int = 0
    """ms. Matches conversations whose last activity was then or later."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """An exported conversation to be written to a file."""

    written: Written
    title: str
    """Title for the file name. Redacted if the document is redacted."""


@dataclass(frozen=True, slots=True)
class Filed:
    """The result for one conversation."""

    conversation: Conversation
    outcome: Literal["written", "unchanged", "failed"]
    file: str = ""
    """Name in the folder."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    problem: str = ""
    size: int = 0


async def wanted(holdings: Holdings, filter: Filter, format: Format) -> list[Conversation]:
    """Return the conversations that get a file of their own, oldest first. Sub-agents are left out if the format nests them."""
    found: list[Conversation] = []
    cursor: str | None = None
    nested = holds(format, "sub-agents")
    while True:
        page = await holdings.conversations.list(limit=_PAGE, cursor=cursor, archived=None, project=filter.project or None)
        recent = [one for one in page.items if one.updated_at >= filter.since]
        found += [one for one in recent if (not filter.agent or one.agent == filter.agent) and not (nested and one.parent is not None)]
        cursor = page.next_cursor
        if cursor is None or len(recent) < len(page.items):
            return found[::-1]


async def filed(
    holdings: Holdings,
    conversations: Sequence[Conversation],
    folder: Folder,
    make: Callable[[Conversation], Awaitable[Sheet]],
    options: str,
) -> AsyncGenerator[Filed, None]:
    """Export each conversation and yield its result. If `options`, which the files also depend on, change, all files are written again.

    A conversation that can't be written does not affect the others. Raise MootError if the folder itself can't be used.
    """
    await anyio.to_thread.run_sync(folder.begin)
    for one in conversations:
        seq = await holdings.log.last_seq(one.id)
        state = blake2b(dumps([options, one.title, one.head, one.archived_at, seq]), digest_size=12).hexdigest()
        if (name := await anyio.to_thread.run_sync(folder.known, one.id, state)) is not None:
            yield Filed(one, "unchanged", name)
            continue
        try:
            sheet = await make(one)
        except MootError as error:
            yield Filed(one, "failed", problem=error.advice())
            continue
        name = await anyio.to_thread.run_sync(folder.add, one, state, sheet)
        yield Filed(one, "written", name, sheet.written.fidelity, size=len(sheet.written.data))


class Folder:
    """The folder and its index. Not safe for concurrent use."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.path = path
        self._suffix = suffix
        self._index: dict[str, JsonObject] = {}
        self._used_names = set[str]()

    def begin(self) -> None:
        """Create the folder if needed, and read the index."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._used_names = {path.name.casefold() for path in self.path.iterdir()}
            lines = (self.path / INDEX).read_bytes().splitlines() if (self.path / INDEX).is_file() else []
        except OSError as error:
            raise MootError(f"can't use the folder {str(self.path)!r}: {error.strerror}") from error
        for line in lines:
            try:
                entry = loads_object(line)
            except ValueError:
                continue  # the last line of an interrupted export; its file is recognized by its content
            self._index[str(entry.get("id"))] = entry

    def known(self, id: str, state: str) -> str | None:
        """Return the file that already contains that state of the conversation, or None."""
        entry = self._index.get(id)
        if entry is None or entry.get("state") != state:
            return None
        name, size = str(entry.get("file")), entry.get("bytes")
        path = self.path / name
        complete = Path(name).name == name and path.is_file() and (size is None or path.stat().st_size == size)
        return name if complete else None

    def add(self, conversation: Conversation, state: str, sheet: Sheet) -> str:
        """Write the conversation's file and index line, keeping its name. Raise MootError."""
        name = self._name(conversation, sheet)
        put(self.path / name, sheet.written.data)
        self._used_names.add(name.casefold())
        entry: JsonObject = {"id": conversation.id, "file": name, "title": sheet.title, "bytes": len(sheet.written.data), "state": state}
        self._index[conversation.id] = entry
        try:
            with os.fdopen(os.open(self.path / INDEX, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "ab") as index:
                index.write(dumps(entry) + b"\n")
        except OSError as error:
            raise MootError(f"can't write {str(self.path / INDEX)!r}: {error.strerror}") from error
        return name

    def end(self) -> None:
        """Compact the index to one line per conversation."""
        if self._index:
            put(self.path / INDEX, b"".join(dumps(entry) + b"\n" for entry in self._index.values()))

    def _name(self, conversation: Conversation, sheet: Sheet) -> str:
        before = str(self._index.get(conversation.id, {}).get("file") or "")
        if before and Path(before).name == before and before.endswith(self._suffix):
            return before
        day = datetime.fromtimestamp(min(conversation.created_at, _LATEST) / 1000, UTC).strftime("%Y-%m-%d")
        stem = f"{day}-{slug(sheet.title) or conversation.id[-8:]}"
        number = 1
        while True:
            name = f"{stem}{f'-{number}' if number > 1 else ''}{self._suffix}"
            if name.casefold() not in self._used_names or self._is_same(name, sheet.written.data):
                return name
            number += 1

    def _is_same(self, name: str, data: bytes) -> bool:
        """Return whether a file that is not in the index already has this content, because the index was truncated."""
        indexed = {str(entry.get("file")) for entry in self._index.values()}
        path = self.path / name
        return name not in indexed and path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data


def put(path: Path, data: bytes) -> None:
    """Write a file atomically, readable only by its owner, because conversations are private.

    Anything other than a regular file, such as a pipe, is written directly. Raise MootError.
    """
    unfinished = path.with_name(f".{os.getpid()}.unfinished")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        unfinished.touch(0o600, exist_ok=False)
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise MootError(f"can't write {str(path)!r}: {error.strerror}") from error


def slug(title: str) -> str:
    """Return letters and digits of any language, with everything else as single hyphens, short enough for every file system."""
    signs = unicodedata.normalize("NFC", title).lower()
    words = "".join(sign if sign.isalnum() or unicodedata.category(sign) == "Mn" else "-" for sign in signs)
    slug = "-".join(filter(None, words.split("-")))[:_CHARACTERS]
    return slug.encode()[:_BYTES].decode(errors="ignore").strip("-")
