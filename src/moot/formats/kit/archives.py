"""Reader for the data exports of web services: conversations in JSON, as a file, a folder or a zip archive with attachments."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from moot.errors import UsageError
from moot.formats.kit.fields import obj
from moot.formats.kit.files import HEAD, files_below
from moot.formats.kit.json import ArrayItem, array_items, parse_json, parse_prefix, read_chunks, read_document
from moot.formats.kit.records import detect_media_type, file_of
from moot.types.canonical import Json, JsonObject
from moot.types.message import Part

ZIP = b"PK\x03\x04"
"""Magic bytes of a zip archive."""
_FILES = 1_000_000
_RATIO = 200
_FREE = 16 << 20
"""Uncompressed size, in bytes, up to which an archived file is accepted regardless of its compression ratio."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive."""

    name: str
    """Relative path, separated by `/` and without `..`. Files with other paths are ignored."""
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in chunks. Raise UsageError for damaged members and zip bombs."""
        limit = max(_FREE, self.info.compress_size * _RATIO)
        size = 0
        try:
            with self.archive.open(self.info) as file:
                while piece := file.read(_CHUNK):
                    size += len(piece)
                    if size > limit:
                        raise UsageError(
                            f"{self.name!r} in the archive expands to more than {_RATIO} times its size. It may be a zip bomb."
                        )
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise UsageError(f"Can't unpack {self.name!r} from the archive: {error}") from error


@contextmanager
def open_zip(path: Path) -> Generator[tuple[Member, ...]]:
    """Open an archive and yield its regular files. Raise UsageError if the archive can't be read."""
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error
    except (zipfile.BadZipFile, ValueError) as error:
        raise UsageError(f"Can't read {str(path)!r} as a zip archive: {error}") from error
    with archive:
        infos = archive.infolist()
        if len(infos) > _FILES:
            raise UsageError(f"{str(path)!r} contains more than {_FILES:,} files.")
        yield tuple(Member(info.filename, archive, info) for info in infos if _is_plain(info))


def _is_plain(info: zipfile.ZipInfo) -> bool:
    name = PurePosixPath(info.filename)
    is_link = info.external_attr >> 28 == 0o12
    return not (info.is_dir() or is_link or name.is_absolute() or ".." in name.parts or "\\" in info.filename)


_MAX_FILE = 32 << 20
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
    """The files of an opened data export."""

    documents: tuple[Path | Member, ...]
    """Files that contain conversations."""
    files: dict[str, Path | Member] = field(default_factory=dict[str, Path | Member])
    """File name without folders → file, for all other files."""

    def conversations(self) -> Iterator[ArrayItem]:
        """Yield each conversation in the export. Only one is in memory at a time."""
        for document in self.documents:
            head = parse_prefix(next(iter(_pieces(document)), b"")[:HEAD])
            if isinstance(head, dict):
                yield _only(document)
            else:
                yield from array_items(_pieces(document))

    def file(self, id: str, name: str = "") -> Part | None:
        """Return the file whose name is `name` or starts with `id`, as a part, or None if it is missing, unreadable or too large."""
        stored = self.files.get(name) or next((self.files[one] for one in self.files if id and one.startswith(id)), None)
        if stored is None:
            return None
        data = b""
        try:
            for piece in _pieces(stored):
                data += piece
                if len(data) > _MAX_FILE:
                    return None
        except UsageError:
            return None
        kind = detect_media_type(data) or _ENDS.get(PurePosixPath(stored.name).suffix.lower(), "application/octet-stream")
        return file_of(data, kind, name or stored.name)


@contextmanager
def _opened(path: Path) -> Generator[Export]:
    """Open an export for the duration of the block. Raise UsageError if it can't be read."""
    if path.is_dir():
        yield _parted(files_below(path, depth=3))
    elif next(read_chunks(path), b"").startswith(ZIP):
        with open_zip(path) as members:
            yield _parted(members)
    else:
        siblings = _parted(files_below(path.parent, depth=2)) if _CONVERSATIONS.fullmatch(path.name) else Export(())
        yield Export((path,), siblings.files)


def conversations_of(path: Path, program: str) -> Iterator[tuple[ArrayItem, Export]]:
    """Yield each conversation in the export at `path`, together with the export. Raise UsageError if there are no conversations."""
    some = False
    with _opened(path) as export:
        for piece in export.conversations():
            some = True
            yield piece, export
    if not some:
        raise UsageError(f"{str(path)!r} is not a valid {program} export: it has no conversations.json with a JSON array.")


def first_conversation(path: Path, head: bytes) -> JsonObject:
    """Return as much of the first conversation as the beginning of the file contains, or an empty object."""
    try:
        if path.is_dir():  # don't scan a whole folder only to recognize it
            found_here = next((one for one in files_below(path, ".json", depth=1) if _CONVERSATIONS.fullmatch(one.name)), None)
            head = next(read_chunks(found_here), b"")[:HEAD] if found_here is not None else b""
        elif head.startswith(ZIP):
            with _opened(path) as export:
                head = b"".join(next(iter(_pieces(export.documents[0])), b"")[:HEAD] for _ in export.documents[:1])
    except UsageError:
        return {}
    found = parse_prefix(head)
    return obj(found[0]) if isinstance(found, list) and found else obj(found)


def file_parts(requested: Iterable[tuple[str, str]], export: Export) -> Iterator[tuple[Part, bool]]:
    """Yield a part for each requested file, given as (id, name), and whether the export contains the file.

    The part for a missing file has only an id and a name.
    """
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
    return read_chunks(source) if isinstance(source, Path) else source.pieces()


def _only(document: Path | Member) -> ArrayItem:
    """Return the conversation in a document that consists of a single object rather than an array."""
    data = read_document(document) if isinstance(document, Path) else b"".join(document.pieces())
    try:
        value: Json = parse_json(data)
    except ValueError as error:
        return ArrayItem(1, data, parse_prefix(data), f"the document is damaged: {error}")
    return ArrayItem(1, data, value)
