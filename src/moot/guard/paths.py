"""File access for tools, confined to the allowed folders. Links, unusual names and concurrent changes can't be used to leave them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

from moot.errors import Busy, Refused
from moot.guard.roots import DIRECTORY, Place, Roots, enter, is_own, missing_error, refuse_own

DEPTH = 100
"""Maximum depth of a walk. Each level keeps a file descriptor open."""

Kind: TypeAlias = Literal["file", "directory", "link", "other"]
Stamp: TypeAlias = tuple[int, int, int, int]
"""Device, inode, size and modification time in ns. Changes whenever the file is changed or replaced."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(NamedTuple):
    """An entry of a folder. A tuple, because a folder can have 100,000 of them."""

    name: str
    """The name in the file system. Bytes that are not UTF-8 are represented as surrogates."""
    kind: Kind
    size: int = 0


_NAME = itemgetter(0)


class Paths:
    """File access below the folders `roots`. All methods raise Refused for other paths and NotFound for missing files."""

    def __init__(self, roots: Sequence[Path], directory: Path, *, links: bool = True) -> None:
        self._roots = Roots(roots, directory, links=links)

    def resolve(self, path: str) -> Path:
        """Return the real path, with links resolved. Its last component need not exist."""
        with enter(self._roots, path) as place:
            return place.path

    def shown(self, path: Path) -> str:
        """Return the short form of a real path: a relative path if it is below the directory."""
        directory = Path(os.path.realpath(self._roots.directory))
        return str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path)

    def stat(self, path: str) -> os.stat_result:
        """Return the status of the file or folder, after links are resolved."""
        with enter(self._roots, path) as place:
            return _existing(self._roots, path, place)

    def kind(self, path: str) -> Kind:
        """Return the kind of file, after links are resolved, so it is never a link."""
        mode = self.stat(path).st_mode
        return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def open_read(self, path: str) -> BinaryIO:
        """Open a regular file for reading. FIFOs, devices, sockets and folders are rejected without being opened."""
        with enter(self._roots, path) as place:
            _must_be_file(path, _existing(self._roots, path, place))
            descriptor = os.open(place.name, _READ, dir_fd=place.folder)
            try:
                _must_be_file(path, os.fstat(descriptor))
                return os.fdopen(descriptor, "rb")
            except BaseException:
                os.close(descriptor)
                raise

    @contextmanager
    def open_write(self, path: str, *, expect: Stamp | Literal["absent"] | None = None) -> Generator[BinaryIO]:
        """Open a stream that atomically replaces the file at the end of the block. Mode and owner are kept; missing folders are created.

        If `expect` is set, raise Busy if the file has been changed or created since that stamp.
        """
        with enter(self._roots, path, create=True) as place:
            if place.status is not None:
                _must_be_file(path, place.status)
                if not os.access(place.name, os.W_OK, dir_fd=place.folder):  # a rename would replace even a read-only file
                    raise Refused(f"{path!r} is read-only.")
            temporary = f".moot-{token_hex(8)}.tmp"
            mode = 0o666 if place.status is None else stat.S_IMODE(place.status.st_mode) & 0o777
            descriptor = os.open(temporary, _CREATE, mode, dir_fd=place.folder)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    _keep_rights(descriptor, place.status)
                    yield stream
                    stream.flush()
                    os.fsync(descriptor)
                if expect is not None and _current(place) != expect:
                    raise Busy(f"{path!r} was changed by another program in the meantime. Nothing was written.", fix="Read it again.")
                os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=place.folder)
                raise
            _sync_folder(place.folder)

    def listdir(self, path: str, limit: int = 10_000, *, sized: bool = True) -> list[Entry]:
        """Return at most `limit` entries of a folder, sorted by name. Without `sized`, their sizes are 0, which is faster."""
        with self._folder(path) as descriptor, os.scandir(descriptor) as entries:
            found = [_entry(entry, sized=sized) for entry, _ in zip(entries, range(limit), strict=False)]
        return sorted(found, key=_NAME)

    def walk(self, path: str, enter: Callable[[str], bool]) -> Iterator[tuple[str, Entry]]:
        """Yield everything below a folder, depth first and sorted, with relative paths. Links are listed but not followed.

        Only folders for which `enter` returns True are entered. Unreadable folders are listed but skipped.
        """
        with self._folder(path) as descriptor:
            yield from self._walk(descriptor, "", enter, 0)

    def _walk(self, folder: int, prefix: str, enter: Callable[[str], bool], depth: int) -> Iterator[tuple[str, Entry]]:
        with os.scandir(folder) as entries:
            found = sorted(map(_entry, entries), key=_NAME)
        for entry in found:
            relative = prefix + entry.name
            yield relative, entry
            if entry.kind != "directory" or depth >= DEPTH or not enter(relative):
                continue
            try:
                below = os.open(entry.name, DIRECTORY, dir_fd=folder)
            except OSError:  # removed, replaced by a link, or unreadable
                continue
            try:
                if not is_own(below):
                    yield from self._walk(below, relative + "/", enter, depth + 1)
            finally:
                os.close(below)

    @contextmanager
    def _folder(self, path: str) -> Generator[int]:
        with enter(self._roots, path) as place:
            status = _existing(self._roots, path, place)
            if not stat.S_ISDIR(status.st_mode):
                raise Refused(f"{path!r} is a {_kind_word(status)}, not a folder.")
            descriptor = os.open(place.name, DIRECTORY, dir_fd=place.folder)
            try:
                refuse_own(path, descriptor)
                yield descriptor
            finally:
                os.close(descriptor)


def _current(place: Place) -> Stamp | Literal["absent"]:
    try:
        return stamp(os.stat(place.name, dir_fd=place.folder, follow_symlinks=False))
    except FileNotFoundError:
        return "absent"


def stamp(status: os.stat_result) -> Stamp:
    """Return a value that distinguishes the file's current state from later ones."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _existing(roots: Roots, path: str, place: Place) -> os.stat_result:
    if place.status is None:
        raise missing_error(roots, path)
    return place.status


def _must_be_file(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path!r} is a {_kind_word(status)}, not a file.")


def _entry(entry: os.DirEntry[str], *, sized: bool = False) -> Entry:
    kind: Kind = "other"
    if entry.is_file(follow_symlinks=False):  # most entries are files
        kind = "file"
    elif entry.is_symlink():
        kind = "link"
    elif entry.is_dir(follow_symlinks=False):
        kind = "directory"
    size = 0
    if sized and kind == "file":
        with suppress(FileNotFoundError):  # deleted since it was listed
            size = entry.stat(follow_symlinks=False).st_size
    return Entry(entry.name, kind, size)


def _kind_word(status: os.stat_result) -> str:
    words = {
        stat.S_IFDIR: "folder",
        stat.S_IFREG: "file",
        stat.S_IFIFO: "named pipe",
        stat.S_IFCHR: "device",
        stat.S_IFBLK: "device",
        stat.S_IFSOCK: "socket",
    }
    return words.get(stat.S_IFMT(status.st_mode), "special file")


def _keep_rights(descriptor: int, status: os.stat_result | None) -> None:
    if status is None:
        return
    with suppress(PermissionError):  # only root can change the owner; otherwise the current user becomes the owner, as with any editor
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _sync_folder(folder: int) -> None:
    descriptor = os.open(".", DIRECTORY, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
