"""List, read and write the files in a project's folder.
Files outside the folder can't be accessed, and protected files can't be written.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path
from typing import Literal, TypeAlias

from moot.errors import MootError, NotFound, Refused, UsageError
from moot.guard.paths import Entry, Kind, Paths, stamp
from moot.guard.protected import protection
from moot.tools import texts
from moot.tools.basics import size_word
from moot.tools.walk import Ignores

FILE_BYTES = 1 << 20
"""Maximum size of a file whose text can be read or written, in bytes."""
SCANNED = 200_000
"""Maximum number of entries to read and sort in one folder."""

Check: TypeAlias = Callable[[str | None], None]
"""A function that is called before a file is written, with the file's SHA-256 hash or None if there is no file.
It raises an error to prevent the change.
"""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or folder in a project's folder."""

    name: str
    path: str
    """Path relative to the project's folder."""
    type: Kind
    """A link has the type of its target, or the type `link` if the target is missing or outside the project's folder."""
    ignored: bool = False
    """True if a `.gitignore` file excludes it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The entries of a folder, folders first."""

    path: str
    entries: tuple[FolderEntry, ...]
    rest: int = 0
    """Number of entries that were left out."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file."""

    path: str
    """Path relative to the project's folder, with links resolved."""
    size: int
    """Size in bytes."""
    kind: Literal["text", "binary", "large"]
    """Files of the kind `large` are too large to be read here."""
    sha256: str | None = None
    """SHA-256 hash of the content; None for large files."""
    text: str | None = None
    """The content of a text file, with its own line endings."""
    encoding: str | None = None
    """Encoding of a text file. It is kept when the file is saved."""
    protected: str = ""
    """The protected name or folder because of which the file can't be written here; empty if it can be written."""


class Files:
    """The files below the root of a project. All methods block."""

    def __init__(self, root: Path, home: Path) -> None:
        """`home` is moot's own folder, which is never written."""
        self._root = root
        self._home = home
        self._paths = Paths((root,), root)

    def folder(self, path: str, limit: int) -> Folder:
        """Return at most `limit` entries of a folder. Raise NotFound if the folder does not exist, Refused if it is outside the root."""
        place = self._relative(path)
        found = [entry for entry in self._paths.listdir(place or ".", SCANNED, sized=False) if entry.name != ".git"]
        targets: dict[str, Kind] = {entry.name: self._target(place, entry) for entry in found if entry.kind == "link"}

        def order(entry: Entry) -> tuple[bool, str, str]:
            return targets.get(entry.name, entry.kind) != "directory", entry.name.casefold(), entry.name

        ignores, inside = self._ignores(place)
        entries: list[FolderEntry] = []
        for entry in nsmallest(limit, found, order):
            below = _joined(place, entry.name)
            is_ignored = inside or ignores(below, folder=entry.kind == "directory")
            entries.append(FolderEntry(entry.name, below, targets.get(entry.name, entry.kind), is_ignored))
        return Folder(place, tuple(entries), max(0, len(found) - limit))

    def read(self, path: str) -> FileContent:
        """Return a file's content. Raise NotFound if the file does not exist, Refused if it is outside the root."""
        with self._paths.open_read(path) as stream:
            size = stream.seek(0, io.SEEK_END)
            stream.seek(0)
            data = stream.read(FILE_BYTES + 1)
        place = self._relative(path)
        protected = self._protection(path)
        if len(data) > FILE_BYTES:
            return FileContent(place, size, "large", protected=protected)
        digest = sha256(data).hexdigest()
        if (text := _decoded(data)) is None:
            return FileContent(place, len(data), "binary", digest, protected=protected)
        return FileContent(place, len(data), "text", digest, text.text, text.encoding, protected)

    def write(self, path: str, text: str, *, check: Check) -> FileContent:
        """Replace a file atomically, or create it, and return its new content. Encoding, byte order mark and mode are kept.

        Raise Refused for protected files, UsageError for text that can't be stored, Busy if the file changes at the same time.
        """
        if protected := self._protection(path):
            message = f"{path!r} is protected ({protected}), because it can decide what programs run or what agents do."
            raise Refused(message, fix="Change it with another program.")
        try:
            with self._paths.open_read(path) as stream:
                seen = stamp(os.fstat(stream.fileno()))
                before = stream.read(FILE_BYTES + 1)
        except NotFound:
            check(None)
            before, seen = b"", "absent"
        else:
            check(sha256(before).hexdigest())
        data = _encoded(path, before, text)
        with self._paths.open_write(path, expect=seen) as target:
            target.write(data)
        return self.read(path)

    def _relative(self, path: str) -> str:
        """Return the real path relative to the root, or an empty path for the root itself."""
        shown = self._paths.shown(self._paths.resolve(path or "."))
        return "" if shown == "." else shown

    def _target(self, folder: str, link: Entry) -> Kind:
        with suppress(MootError):  # the target is missing or outside of the root
            return self._paths.kind(_joined(folder, link.name))
        return "link"

    def _ignores(self, folder: str) -> tuple[Ignores, bool]:
        """Return the ignore rules for the entries of a folder, and whether the folder itself is ignored."""
        ignores = Ignores(self._paths, ".")
        inside = False
        names = folder.split("/") if folder else []
        for depth in range(1, len(names) + 1):
            above = "/".join(names[:depth])
            inside = inside or ignores(above, folder=True)
            ignores.read(above)
        return ignores, inside

    def _protection(self, path: str) -> str:
        # relative to `/`, because `protection` allows writing in moot's home if the directory is in it
        return protection(str(self._root / path), "/", str(self._home))


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _decoded(data: bytes) -> texts.Text | None:
    if texts.is_binary(data):
        return None
    try:
        return texts.decode(data)
    except UnicodeDecodeError:  # UTF-16 that is not valid
        return None


def _encoded(path: str, before: bytes, text: str) -> bytes:
    old = _decoded(before)
    if old is None or len(before) > FILE_BYTES:
        raise UsageError(f"{path!r} is a binary file or larger than {size_word(FILE_BYTES)}. Only text can be edited here.")
    try:
        data = old.encode(text)
    except UnicodeEncodeError as error:
        character = f"U+{ord(text[error.start]):04X}"
        message = f"{path!r} is stored as {old.encoding}, which can't represent the character {character}."
        raise UsageError(message, fix="Remove the character, or convert the file to UTF-8.") from error
    if len(data) > FILE_BYTES:
        raise UsageError(f"The text is {size_word(len(data))} long. The maximum is {size_word(FILE_BYTES)}.")
    return data
