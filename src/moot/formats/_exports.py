"""Data exports of web services: conversations in one or more JSON arrays, as a file, a folder or a zip archive with attachments."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from moot.errors import UsageError
from moot.formats._saying import detect_media_type, file
from moot.formats._source.archives import ZIP, Member, opened_zip
from moot.formats._source.fields import obj
from moot.formats._source.folders import files_below
from moot.formats._source.pieces import Piece, array, beginning, bytes_of, parsed, whole
from moot.types.canonical import Json, JsonObject
from moot.types.part import Part

__all__ = ["Export", "conversations_of", "first_of", "with_files"]

_HEAD = 64 << 10
_LARGEST = 32 << 20
"""Maximum size of an attached file in bytes."""
_CONVERSATIONS = re.compile(r"conversations(-\d+)?\.json")
_ENDS = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".json": "application/json",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
}


@dataclass(frozen=True, slots=True)
class Export:
    """An opened export."""

    documents: tuple[Path | Member, ...]
    """Files that contain conversations."""
    files: dict[str, Path | Member] = field(default_factory=dict[str, Path | Member])
    """All other files, by name without folders."""

    def conversations(self) -> Iterator[Piece]:
        """Yield each conversation. Only one is in memory at a time."""
        for document in self.documents:
            head = beginning(next(iter(_pieces(document)), b"")[:_HEAD])
            if isinstance(head, dict):
                yield _only(document)
            else:
                yield from array(_pieces(document))

    def file(self, id: str, name: str = "") -> Part | None:
        """Return the file whose name is `name` or starts with `id`, or None if it is missing, unreadable or too large."""
        stored = self.files.get(name) or next((self.files[one] for one in self.files if id and one.startswith(id)), None)
        if stored is None:
            return None
        data = b""
        try:
            for piece in _pieces(stored):
                data += piece
                if len(data) > _LARGEST:
                    return None
        except UsageError:
            return None
        kind = detect_media_type(data) or _ENDS.get(PurePosixPath(stored.name).suffix.lower(), "application/octet-stream")
        return file(f"data:{kind};base64,{base64.b64encode(data).decode()}", kind, name or stored.name)


@contextmanager
def _opened(path: Path) -> Generator[Export]:
    """Open an export. It is closed when the context exits. Raise UsageError if it can't be read."""
    if path.is_dir():
        yield _parted(files_below(path, depth=3))
    elif next(bytes_of(path), b"").startswith(ZIP):
        with opened_zip(path) as members:
            yield _parted(members)
    else:
        siblings = _parted(files_below(path.parent, depth=2)) if _CONVERSATIONS.fullmatch(path.name) else Export(())
        yield Export((path,), siblings.files)


def conversations_of(path: Path, program: str) -> Iterator[tuple[Piece, Export]]:
    """Yield each conversation together with its export. Raise UsageError if there are none."""
    some = False
    with _opened(path) as export:
        for piece in export.conversations():
            some = True
            yield piece, export
    if not some:
        raise UsageError(f"{str(path)!r} is not an export of {program}: no conversations.json with a JSON array found.")


def first_of(path: Path, head: bytes) -> JsonObject:
    """Return the first conversation as far as the beginning of the file contains it, or an empty object."""
    try:
        if path.is_dir():  # don't scan a whole folder just to recognize it
            found_here = next((one for one in files_below(path, ".json", depth=1) if _CONVERSATIONS.fullmatch(one.name)), None)
            head = next(bytes_of(found_here), b"")[:_HEAD] if found_here is not None else b""
        elif head.startswith(ZIP):
            with _opened(path) as export:
                head = b"".join(next(iter(_pieces(export.documents[0])), b"")[:_HEAD] for _ in export.documents[:1])
    except UsageError:
        return {}
    found = beginning(head)
    return obj(found[0]) if isinstance(found, list) and found else obj(found)


def with_files(requested: Iterable[tuple[str, str]], export: Export) -> Iterator[tuple[Part, bool]]:
    """Yield each (id, name) as a part, and whether its file exists. Missing files become parts with their name."""
    for id, name in requested:
        part = export.file(id, name)
        yield (part, True) if part is not None else ({"type": "data-file", "data": {"id": id, "name": name}}, False)


def _parted(found: Iterable[Path | Member]) -> Export:
    documents: list[Path | Member] = []
    files: dict[str, Path | Member] = {}
    for one in found:
        name = PurePosixPath(one.name).name
        if _CONVERSATIONS.fullmatch(name):
            documents.append(one)
        else:
            files.setdefault(name, one)
    return Export(tuple(documents), files)


def _pieces(source: Path | Member) -> Iterator[bytes]:
    return bytes_of(source) if isinstance(source, Path) else source.pieces()


def _only(document: Path | Member) -> Piece:
    """Return the single conversation of a document."""
    data = whole(document) if isinstance(document, Path) else b"".join(document.pieces())
    try:
        value: Json = parsed(data)
    except ValueError as error:
        return Piece(1, data, beginning(data), f"the document is damaged: {error}")
    return Piece(1, data, value)
