"""The folders that tools may access, and resolution of a path inside them, safe against links and races.

Paths are resolved one component at a time, with descriptors that never follow links. So the file that was checked is the one that is
opened, even if files are renamed concurrently. (openat2 with RESOLVE_BENEATH would do the same, but only for a single root.)
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from moot.errors import NotFound, Refused, UsageError
from moot.types.conversation import Conversation

PATH_BYTES = 4095
"""Maximum length of a path in bytes, as in most other programs."""

_HOME = re.compile(r"~[A-Za-z_][\w.-]*|~")


class Roots:
    """The allowed folders. Methods only compare path components and open no files."""

    def __init__(self, roots: Sequence[Path], directory: Path, *, links: bool = True) -> None:
        self.directory = directory
        """Folder that relative paths start from."""
        self.links = links
        """False to follow no links below the folders, not even links to other places inside them."""
        self.folders = tuple(Path(os.path.realpath(root)) for root in roots)
        spelled = [(PurePosixPath(root.absolute()).parts, real) for root, real in zip(roots, self.folders, strict=True)]
        spelled += [(root.parts, root) for root in self.folders]
        # longest first, so that resolution starts at the innermost folder
        self._prefixes = sorted(spelled, key=lambda pair: -len(pair[0]))

    def spelled(self, path: str) -> str:
        """Return the absolute path without resolving links or `..`. Raise Refused if it is invalid."""
        if "\0" in path:
            raise Refused(f"{path!r} contains a NUL character, which paths can't have.")
        try:
            length = len(os.fsencode(path))
        except UnicodeEncodeError as error:
            raise Refused(f"{path!r} contains a lone surrogate, which paths can't have.") from error
        if length > PATH_BYTES:
            raise Refused(f"{path[:80]!r}…: The path is too long ({length} bytes, maximum {PATH_BYTES}).")
        if _HOME.fullmatch(path.partition("/")[0]):
            fix = f"Use a path relative to {str(self.directory)!r} or an absolute one."
            raise Refused(f"{path!r}: '~' is not expanded here.", fix=fix)
        return str(self.directory / path)

    def start(self, path: str, spelled: str) -> tuple[Path, list[str]]:
        """Return the allowed folder that contains the absolute path `spelled`, and the remaining components.

        Raise Refused, mentioning `path`, if there is none.
        """
        for candidate in (spelled, os.path.normpath(spelled)):
            parts = PurePosixPath("/" + candidate.lstrip("/")).parts
            for prefix, root in self._prefixes:
                if parts[: len(prefix)] == prefix:
                    return root, list(parts[len(prefix) :])
        known = ", ".join(repr(str(root)) for root in self.folders) or "none"
        raise Refused(f"{path!r} is outside the allowed folders: {known}.", fix="Allow its folder with /allow DIR or moot run --allow DIR.")


def is_own(folder: int) -> bool:
    """Return True if an open folder is a moot home, or the folder in it that contains the database.

    Tools can't access it, because it contains settings and approvals, and because opening and closing the database file would release the
    locks of this process (https://www.sqlite.org/howtocorrupt.html, 2.2). It is recognized by its content, so that the check works for
    every spelling, link and mount, and for other moot homes.
    """
    for name in ("data/moot.db", "moot.db"):
        with suppress(OSError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            return True
    return False


def folders(uris: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders in a list of `allowed_uris`: absolute paths and `file:` URIs. Raise UsageError for anything else."""
    return tuple(_folder_of(uri) for uri in uris)


def allowed_folders(conversation: Conversation, directory: Path) -> tuple[Path, ...]:
    """Return the folders that a conversation's file tools and commands may use: its allowed folders, or its directory if it has none."""
    return folders(conversation.allowed_uris) or (directory,)


def is_below(path: str, root: str) -> bool:
    """Return True if an absolute path is the root or below it, after links are resolved. Return False for an empty root."""
    if not path.startswith("/") or not root:
        return False
    real = os.path.realpath(root)
    return os.path.commonpath((os.path.realpath(path), real)) == real


def with_folders(allowed_uris: tuple[str, ...], directory: str, further: Iterable[str]) -> tuple[str, ...]:
    """Return `allowed_uris` with more folders added. An empty `allowed_uris` means the directory, which stays allowed."""
    added = tuple(further)
    own = allowed_uris or ((directory,) if directory else ())
    return tuple(dict.fromkeys((*own, *added))) if added else allowed_uris


def repositories_around(inside: Iterable[Path]) -> tuple[Path, ...]:
    """Return the roots of the Git repositories around the given subfolders, except those that contain the home or temporary folder."""
    found = (_repository_around(Path(os.path.realpath(folder))) for folder in inside)
    return tuple(dict.fromkeys(root for root in found if root is not None))


def _repository_around(folder: Path) -> Path | None:
    root = next((path for path in (folder, *folder.parents) if os.path.lexists(path / ".git")), folder)
    shared = (Path(os.path.realpath(path)) for path in (Path.home(), tempfile.gettempdir()))
    # Git itself refuses the repositories of other users
    is_usable = root != folder and not any(path.is_relative_to(root) for path in shared) and os.lstat(root / ".git").st_uid == os.getuid()
    return root if is_usable else None


def _folder_of(uri: str) -> Path:
    path = uri
    if uri.casefold().startswith("file:"):
        parts = urlsplit(uri)
        path = unquote(parts.path) if parts.netloc in ("", "localhost") else ""
    if not path.startswith("/") or "\0" in path:
        message = f"allowed_uris: {uri!r} is neither an absolute path nor a file: URI."
        raise UsageError(message, fix="Write it like /home/me/work or file:///home/me/work.")
    return Path(os.path.normpath("/" + path.lstrip("/")))


LINKS = 40

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_PATH needs only permission to traverse the directory, not to read it
_WALK = DIRECTORY | getattr(os, "O_PATH", 0)


@dataclass(frozen=True, slots=True)
class Place:
    """A resolved path: an open folder and a name in it, or `.` for the folder itself."""

    folder: int
    name: str
    status: os.stat_result | None
    """Status of the name itself, not of a link's target; None if it does not exist."""
    path: Path
    """The path with all links resolved."""


@contextmanager
def enter(roots: Roots, path: str, *, create: bool = False) -> Generator[Place]:
    """Resolve a path and keep its folder open during the block. If `create` is set, missing folders are created.

    Raise Refused if it is outside of the roots or can't be opened, NotFound if a folder is missing.
    """
    with ExitStack() as stack:
        try:
            yield _Descent(roots, path, stack, create).place()
        except FileNotFoundError as error:
            raise missing_error(roots, path) from error
        except OSError as error:
            raise Refused(f"{path!r}: {error.strerror or error}.") from error


def missing_error(roots: Roots, path: str) -> NotFound:
    """Return the error for a path that does not exist."""
    return NotFound(f"{path!r} does not exist. Relative paths start at {str(roots.directory)!r}.")


def refuse_own(path: str, folder: int) -> None:
    """Raise Refused if the open folder is one of moot's own. See `is_own`."""
    if is_own(folder):
        raise Refused(f"{path!r} is in moot's own data folder, which tools can't access.")


class _Descent:
    def __init__(self, roots: Roots, path: str, stack: ExitStack, create: bool) -> None:
        self._roots = roots
        self._path = path
        self._stack = stack
        self._create = create
        self._links = 0
        self._from_link = 0
        """Number of remaining components that come from a link."""
        self._begin(roots.spelled(path), ())

    def _begin(self, spelled: str, rest: Iterable[str]) -> None:
        self._root, parts = self._roots.start(self._path, spelled)
        self._ahead = deque([*parts, *rest])
        self._names: list[str] = []
        self._folders = [self._opened(os.open(self._root, _WALK))]

    def _opened(self, descriptor: int) -> int:
        self._stack.callback(os.close, descriptor)
        refuse_own(self._path, descriptor)
        return descriptor

    def place(self) -> Place:
        while self._ahead:
            name = self._ahead.popleft()
            linked, self._from_link = self._from_link > 0, max(0, self._from_link - 1)
            if name == "..":
                self._up()
                continue
            status = self._status(name, linked)
            if status is not None and stat.S_ISLNK(status.st_mode):
                self._follow(name)
            elif not self._ahead:
                return self._last(name, status)
            else:
                descriptor = self._opened(os.open(name, _WALK, dir_fd=self._folders[-1]))
                self._folders.append(descriptor)
                self._names.append(name)
        return self._last(".", os.fstat(self._folders[-1]))

    def _last(self, name: str, status: os.stat_result | None) -> Place:
        return Place(self._folders[-1], name, status, self._root.joinpath(*self._names, name))

    def _status(self, name: str, linked: bool) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)
        except FileNotFoundError:
            if linked:
                raise Refused(f"{self._path!r} goes through a broken link.") from None
            if not self._ahead:
                return None
            if not self._create or ".." in self._ahead:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._folders[-1])
        return os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)

    def _up(self) -> None:
        if self._names:
            self._names.pop()
            self._folders.pop()
        else:  # above the root: allowed if the rest leads into another root
            self._begin(os.path.normpath(Path(self._root, "..", *self._ahead)), ())

    def _follow(self, name: str) -> None:
        if not self._roots.links:
            raise Refused(f"{self._path!r} is a link or contains one. Links are not followed here.")
        self._links += 1
        if self._links > LINKS:
            raise Refused(f"{self._path!r} goes through more than {LINKS} links.")
        target = os.readlink(name, dir_fd=self._folders[-1])
        rest = tuple(self._ahead)
        if target.startswith("/"):
            self._begin(target, rest)
        else:
            self._ahead.extendleft(reversed([part for part in PurePosixPath(target).parts if part != "."]))
        self._from_link += len(self._ahead) - len(rest)
