"""Reading and restoring the state of files below a folder, without ever following a link. All functions block."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from secrets import token_hex

from moot.errors import LimitReached
from moot.guard.paths import DEPTH
from moot.guard.roots import DIRECTORY, is_own
from moot.tools.basics import size_word
from moot.tools.walk import FILE_BYTES as IGNORE_BYTES
from moot.tools.walk import IgnoreRules
from moot.types.checkpoint import NOTHING, FilePlace, FileStamp, FileState, FolderState, Put, SeenFile
from moot.types.crash import point

FILE_BYTES = 10 << 20
"""Maximum size of a file in a snapshot."""
FILES = 100_000
TREE_BYTES = 1 << 30
"""Maximum number and total size of a folder's files."""
_RECENT_NS = 50_000_000
"""Files changed so recently may change again without a new time, because the clock of file systems is coarse. They are read again."""
_UNTRUSTED = FileStamp(0, 0, 0, 0)

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileChanged(Exception):
    """The file was changed by another program in the meantime."""


def snapshot(root: bytes, known: Mapping[bytes, SeenFile], put: Put) -> FolderState:
    """Return the state of all files below a folder that `.gitignore` doesn't exclude. Only files that differ from `known` are read.

    Raise LimitReached if the folder is too large, OSError if it can't be read.
    """
    return _Snapshot(known, put).take(root)


class _Snapshot:
    def __init__(self, known: Mapping[bytes, SeenFile], put: Put) -> None:
        self._known = known
        self._put = put
        self._ignored = IgnoreRules()
        self._found = FolderState()
        self._files = self._bytes = 0
        self._recent = time.time_ns() - _RECENT_NS

    def take(self, root: bytes) -> FolderState:
        folder = os.open(root, DIRECTORY)
        try:
            self._folder(folder, b"", 0)
        finally:
            os.close(folder)
        return self._found

    def _folder(self, folder: int, prefix: bytes, depth: int) -> None:
        if is_own(folder) or depth > DEPTH:
            return
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        if any(entry.name == ".gitignore" for entry in found):
            with suppress(OSError):
                self._ignored.add(os.fsdecode(prefix.rstrip(b"/")), _read(folder, ".gitignore", IGNORE_BYTES))
        for entry in found:
            path = prefix + os.fsencode(entry.name)
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # deleted since it was listed
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            if self._ignored(os.fsdecode(path), folder=is_folder):
                continue
            try:
                if is_folder:
                    self._enter(folder, entry.name, path, depth)
                elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    self._file(folder, entry.name, path, status)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._found.left_out.append((path, f"can't be read: {error.strerror}"))

    def _enter(self, folder: int, name: str, path: bytes, depth: int) -> None:
        below = os.open(name, DIRECTORY, dir_fd=folder)
        try:
            self._folder(below, path + b"/", depth + 1)
        finally:
            os.close(below)

    def _file(self, folder: int, name: str, path: bytes, status: os.stat_result) -> None:
        if status.st_size > FILE_BYTES:
            self._found.left_out.append((path, f"larger than {size_word(FILE_BYTES)}"))
            return
        self._files, self._bytes = self._files + 1, self._bytes + status.st_size
        if self._files > FILES or self._bytes > TREE_BYTES:
            most = f"{FILES:,} files" if self._files > FILES else size_word(TREE_BYTES)
            raise LimitReached(f"the folder has more than {most}")
        stamp = stamp_of(status)
        known = self._known.get(path)
        if known is not None and known.stamp == stamp:
            self._found.files[path] = known
            return
        state = _state(folder, name, status, self._put)
        self._found.files[path] = SeenFile(stamp if max(stamp.changed_ns, stamp.status_ns) < self._recent else _UNTRUSTED, state)


def stamp_of(status: os.stat_result) -> FileStamp:
    """Return the stamp of a file."""
    return FileStamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def read_file(place: FilePlace, put: Put | None = None) -> SeenFile:
    """Return the state of one file, whose content is stored with `put`.

    Raise LimitReached if it is too large to be stored, OSError if it can't be read.
    """
    try:
        with _parent(place) as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if status.st_size > FILE_BYTES and stat.S_ISREG(status.st_mode):
                if put is not None:
                    raise LimitReached(f"larger than {size_word(FILE_BYTES)}")
                return SeenFile(stamp_of(status), FileState("other"))  # different from every stored file
            return SeenFile(stamp_of(status), _state(folder, name, status, put or _digest))
    except (FileNotFoundError, NotADirectoryError):
        return SeenFile(_UNTRUSTED, NOTHING)


def restore(place: FilePlace, state: FileState, data: bytes, expected: SeenFile) -> None:
    """Replace the file atomically. Raise FileChanged if it is no longer as expected, OSError if it can't be written."""
    with _parent(place, create=state != NOTHING) as (folder, name):
        temporary = f".moot-{token_hex(8)}.tmp"
        try:
            if state.kind == "file":
                _write(folder, temporary, state, data)
            elif state.kind == "link":
                os.symlink(data, temporary, dir_fd=folder)
            status = _expect(folder, name, expected)
            if state == NOTHING:
                os.unlink(name, dir_fd=folder)
            else:
                if status is not None and stat.S_ISDIR(status.st_mode):
                    os.rmdir(name, dir_fd=folder)
                elif status is not None:
                    with suppress(PermissionError):  # only root can change the owner
                        os.chown(temporary, status.st_uid, status.st_gid, dir_fd=folder, follow_symlinks=False)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
    point("undo.file")


def remove_empty_folders(places: Iterable[FilePlace]) -> None:
    """Remove the folders that are empty after these files were deleted, but not the allowed folders themselves."""
    for place in places:
        folder = place.path
        while folder := folder.rpartition(b"/")[0]:
            try:
                with _parent(FilePlace(place.root, folder)) as (parent, name):
                    os.rmdir(name, dir_fd=parent)
            except OSError:  # not empty, or gone already
                break


def _write(folder: int, name: str | bytes, state: FileState, data: bytes) -> None:
    descriptor = os.open(name, _CREATE, state.mode | stat.S_IWUSR, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fchmod(descriptor, state.mode)
        os.fsync(descriptor)


def _expect(folder: int, name: bytes, expected: SeenFile) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        status = None
    if expected.state.kind == "folder" and (status is None or stat.S_ISDIR(status.st_mode)):
        return status  # its files were deleted in the meantime, by the same undo; if others are left, it can't be removed
    if (expected.state == NOTHING) != (status is None) or (status is not None and stamp_of(status) != expected.stamp):
        raise FileChanged
    return status


def _state(folder: int, name: str | bytes, status: os.stat_result, put: Put) -> FileState:
    """Return the state of a file or link, and store its content."""
    if stat.S_ISLNK(status.st_mode):
        return FileState("link", 0, put(os.readlink(os.fsencode(name), dir_fd=folder)))
    if not stat.S_ISREG(status.st_mode):
        return FileState("folder" if stat.S_ISDIR(status.st_mode) else "other")
    return FileState("file", stat.S_IMODE(status.st_mode) & 0o777, put(_read(folder, name, FILE_BYTES)))


def _read(folder: int, name: str | bytes, limit: int) -> bytes:
    with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:  # it has grown since
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@contextmanager
def _parent(place: FilePlace, *, create: bool = False) -> Generator[tuple[int, bytes]]:
    """Open the folder that contains a file, and yield it with the file's name. Raise OSError if a link is in the way."""
    *above, name = place.path.split(b"/")
    folder = os.open(place.root, DIRECTORY)
    try:
        for step in above:
            if is_own(folder):
                raise PermissionError(errno.EACCES, "is in moot's own data folder")
            if create:
                with suppress(FileExistsError):
                    os.mkdir(step, dir_fd=folder)
            below = os.open(step, DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder, name
    finally:
        os.close(folder)
