"""Access to memory: finding its folders, and reading, changing and searching their files within limits."""

from __future__ import annotations

import fcntl
import os
import re
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from moot.errors import NotFound, Refused, UsageError
from moot.guard.hidden import hidden_characters, hidden_comments
from moot.guard.paths import Entry, Paths
from moot.guard.roots import Roots, enter
from moot.types.knowledge import MemoryFile, MemoryFolder, MemoryMatch, MemorySearch

INDEX = "MEMORY.md"
"""Name of the file in each folder whose start is included in the system prompt."""
FILE_BYTES = 256 << 10
FILES = 1000
"""Maximum number of files per folder."""
DEPTH = 4
MATCHES = 50
LINE = 400
"""Maximum number of characters shown for each line found."""
SUFFIX = ".md"
LOCK_SECONDS = 5.0
"""Maximum time to wait for a lock. A command running in the project can hold the lock as long as it wants."""
AGENTS = "agents"
"""Name of the subfolder of the home's memory folder that contains one folder per agent."""

_NAME = re.compile(r"[\w][\w .,+@()'-]{0,99}")
_BELOW = ".moot/memory"
_FOLDERS = ("home", AGENTS, "project")


def memory_folders(home: Path, agent: str, folder: str, *, is_local: bool, boundary: str = "") -> tuple[MemoryFolder, ...]:
    """Return the memory folders of an agent that works in a folder, the most specific one last.

    Users other than the local one get only their project's memory folder, which is inside the folder `boundary`.
    """
    found: list[MemoryFolder] = []
    if is_local:
        found.append(MemoryFolder("home", home / "memory"))
        if agent and _NAME.fullmatch(agent):
            found.append(MemoryFolder(f"{AGENTS}/{agent}", home / "memory" / AGENTS / agent))
    if folder:
        found.append(MemoryFolder("project", _project(Path(folder), None if is_local else Path(boundary or folder)), _BELOW))
    return tuple(found)


def all_folders(home: Path, folder: str, name: str = "") -> tuple[MemoryFolder, ...]:
    """Return all memory folders of the local user: those of the home, of the agents, and of the project that contains a folder.

    If `name` is a file of an agent's memory, that folder is included even if it does not exist yet.
    """
    base = home / "memory" / AGENTS
    agents = {entry.name for entry in base.iterdir() if entry.is_dir()} if base.is_dir() else set[str]()
    agents |= {name.split("/")[1]} if name.startswith(f"{AGENTS}/") else set()
    own, *project = memory_folders(home, "", folder, is_local=True)
    return (own, *(MemoryFolder(f"{AGENTS}/{name}", base / name) for name in sorted(agents) if _NAME.fullmatch(name)), *project)


def _upwards(folder: str) -> Iterator[str]:
    """Yield the folder and its parents, without a trailing slash, so that the root is an empty string."""
    # strings, because pathlib takes ten times as long, and this is called at each step
    folder = folder.rstrip("/")
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""


def _root(folder: str) -> str:
    """Return the root of the user's repository around a folder, or the folder itself."""
    root = next((path for path in _upwards(folder) if os.path.lexists(f"{path}/.git")), folder)
    return root if root == folder or os.lstat(f"{root}/.git").st_uid == os.getuid() else folder


def _project(folder: Path, boundary: Path | None) -> Path:
    """Return the closest folder with `.moot`, up to the boundary or the repository's root. If there is none, return that root."""
    inner = str(folder).rstrip("/")
    root = _root(inner) if boundary is None else str(boundary).rstrip("/") if folder.is_relative_to(boundary) else inner
    for path in _upwards(inner):
        if os.path.isdir(f"{path}/.moot"):  # noqa: PTH112  asked at each step
            return Path(path or "/")
        if path == root:
            break
    return Path(root or "/")


class Memory:
    """The files in some memory folders. Methods block.

    They raise NotFound for a missing file, UsageError for an invalid name, and Refused if a file can't be read or written.
    """

    def __init__(self, folders: Sequence[MemoryFolder]) -> None:
        self.folders = tuple(folders)

    def files(self) -> list[MemoryFile]:
        """Return all files, sorted by folder and name. Those that can't be used are included, with the reason."""
        return [self._looked_at(file) for folder in self.folders for file in _entries(folder)]

    def read(self, name: str) -> str:
        """Return the text of a file. Bytes that are not UTF-8 are replaced by U+FFFD. Raise Refused if it is too large."""
        text, is_cut = self.beginning(name)
        if is_cut:
            raise Refused(f"{name!r} is larger than {FILE_BYTES >> 10} KiB, the maximum for memory.", fix="Split it into several files.")
        return text

    def beginning(self, name: str) -> tuple[str, bool]:
        """Return the text of a file up to the maximum size, and True if the file is longer."""
        data = _bytes(*self._place(name), name)
        return data[:FILE_BYTES].decode("utf-8-sig", "replace"), len(data) > FILE_BYTES

    def write(self, name: str, text: str, *, append: bool = False, check: Callable[[str | None], None] | None = None) -> bool:
        """Write a file atomically, or add lines at its end. Return True if it is new. Line endings and byte order mark are kept.

        `check` is called with the current text (None for a new file) and raises an error if it is not the expected one.
        """
        folder, below = self._place(name)
        with _locked(folder):
            try:
                before = _bytes(folder, below, name)
            except NotFound:
                before = None
                if sum(not file.problem for file in _entries(folder)) >= FILES:
                    raise Refused(
                        f"The memory folder {folder.name!r} already has {FILES:,} files, the maximum.", fix="Write to an existing file."
                    ) from None
            if before is not None and len(before) > FILE_BYTES and append:
                self.read(name)
            if check is not None:
                check(None if before is None else self.read(name))
            data = _as_before(before or b"", text, append=append)
            if len(data) > FILE_BYTES:
                raise Refused(f"{name!r} would be larger than {FILE_BYTES >> 10} KiB.", fix="Remove old lines, or use another file.")
            with _paths(folder).open_write(_inside(folder, below)) as stream:
                stream.write(data)
        return before is None

    def delete(self, name: str, *, check: Callable[[str | None], None] | None = None) -> str:
        """Delete a file and return the start of its text. `check` is called with the current text, as in `write`."""
        folder, below = self._place(name)
        _bytes(folder, below, name)
        with _locked(folder):
            text, _ = self.beginning(name)
            if check is not None:
                check(text)
            with enter(_roots(folder), _inside(folder, below)) as place:
                os.unlink(place.name, dir_fd=place.folder)
        return text

    def search(self, query: str) -> MemorySearch:
        """Return the lines that contain the most words of the query, ideally all of them. Case is ignored."""
        words = query.casefold().split()
        found: list[MemoryMatch] = []
        best, problems = 1, list[MemoryFile]()
        for file in (file for folder in self.folders for file in _entries(folder)):
            text = ""
            if not file.problem:
                file, text = self._read(file)
            if file.problem:
                problems.append(file)
            if not any(word in text.casefold() for word in words):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                folded = line.casefold()
                score = sum(word in folded for word in words)
                if score > best:
                    best, found = score, []
                if score == best and len(found) < MATCHES:
                    found.append(MemoryMatch(file.name, number, _around(line.strip(), words)))
        return MemorySearch(tuple(found), tuple(problems))

    def _looked_at(self, file: MemoryFile) -> MemoryFile:
        if file.problem:
            return file
        file, text = self._read(file)
        return replace(file, hidden=len(hidden_characters(text)), comments=len(hidden_comments(text)))

    def _read(self, file: MemoryFile) -> tuple[MemoryFile, str]:
        """Return a listed file and the start of its text, or the file with the reason why it can't be read."""
        try:
            text, is_cut = self.beginning(file.name)
        except (NotFound, Refused) as error:
            return replace(file, problem=error.message), ""
        return (replace(file, problem=f"It is larger than {FILE_BYTES >> 10} KiB: only the beginning is used.") if is_cut else file), text

    def _place(self, name: str) -> tuple[MemoryFolder, str]:
        """Return the folder that a name starts with, and the path in it. A name without a folder means the most specific folder."""
        if not self.folders:
            raise Refused("The conversation has no memory folder.", fix="Use a project with a folder.")
        folder = next((folder for folder in reversed(self.folders) if name.startswith(f"{folder.name}/")), None)
        below = name.removeprefix(f"{folder.name}/") if folder is not None else name
        folder = folder or (None if below.split("/")[0] in _FOLDERS else self.folders[-1])
        if folder is None or not _is_name(folder, below):
            known = ", ".join(f"{folder.name}/" for folder in self.folders)
            raise UsageError(
                f"{name!r} is not a memory file.", fix=f"Use a name such as NOTES.md or TOPIC/NOTES.md in one of these folders: {known}."
            )
        return folder, below


def _is_name(folder: MemoryFolder, below: str) -> bool:
    parts = below.split("/")
    return len(parts) <= DEPTH and all(map(_NAME.fullmatch, parts)) and below.endswith(SUFFIX) and not _is_agents(folder, parts[0])


def _is_agents(folder: MemoryFolder, below: str) -> bool:
    return folder.name == "home" and below == AGENTS


def _entries(folder: MemoryFolder) -> Iterator[MemoryFile]:
    """Yield the files of a folder by name, without reading them. Files that can't be used are yielded with the reason."""
    count = 0
    try:
        paths = _paths(folder)
        for below, entry in paths.walk(folder.below or ".", lambda below: below.count("/") < DEPTH - 1 and not _is_agents(folder, below)):
            problem = _problem(folder, below, entry)
            if problem is None:
                continue
            file = MemoryFile(f"{folder.name}/{below}", folder.path / below, 0, 0, problem=problem)
            if not problem:
                count += 1
                if count > FILES:
                    file = MemoryFile(f"{folder.name}/", folder.path, 0, 0, problem=f"Only its first {FILES:,} files are used.")
                else:
                    with suppress(NotFound, Refused):  # removed meanwhile, or reported when it is read
                        status = paths.stat(_inside(folder, below))
                        file = replace(file, size=status.st_size, changed_at=status.st_mtime_ns // 1_000_000)
            yield file
            if count > FILES:
                return
    except NotFound:
        return
    except Refused as error:
        yield MemoryFile(f"{folder.name}/", folder.path, 0, 0, problem=error.message)


def _problem(folder: MemoryFolder, below: str, entry: Entry) -> str | None:
    """Return why an entry can't be used; empty if it can be used, None if it is not a memory file."""
    if entry.kind == "directory" or entry.name.startswith(".") or not entry.name.endswith(SUFFIX):
        return None
    if entry.kind != "file":
        return "It is a link, which memory does not follow." if entry.kind == "link" else "It is not a regular file."
    return "" if _is_name(folder, below) else "Its name contains unusual characters. Rename it."


def _as_before(before: bytes, text: str, *, append: bool) -> bytes:
    """Return the file's new content: the text, or the old content and the text. Line endings and the byte order mark don't change."""
    if b"\r\n" in before and "\r" not in text:
        text = text.replace("\n", "\r\n")
    end = b"\r\n" if b"\r\n" in before else b"\n"
    data = text.encode("utf-8", "replace")
    if append and before:
        data = (before if before.endswith(b"\n") else before + end) + data
    elif before.startswith(BOM_UTF8) and not data.startswith(BOM_UTF8):
        data = BOM_UTF8 + data
    return data if data.endswith(b"\n") or not data else data + end


def _around(line: str, words: Sequence[str]) -> str:
    if len(line) <= LINE:
        return line
    folded = line.casefold()
    first = max(min((at for word in words if (at := folded.find(word)) >= 0), default=0) - LINE // 4, 0)
    return f"{'… ' if first else ''}{line[first : first + LINE]} …"


def _bytes(folder: MemoryFolder, below: str, name: str) -> bytes:
    """Return the content of a file, at most one byte more than the maximum."""
    try:
        with _paths(folder).open_read(_inside(folder, below)) as stream:
            return stream.read(FILE_BYTES + 1)
    except NotFound:
        raise NotFound(f"{name!r} does not exist.", fix="List the memory files: moot memory list") from None


def _inside(folder: MemoryFolder, below: str) -> str:
    """Return the path relative to the folder's base."""
    return f"{folder.below}/{below}" if folder.below else below


def _roots(folder: MemoryFolder) -> Roots:
    return Roots((folder.base,), folder.base, links=False)


def _paths(folder: MemoryFolder) -> Paths:
    return Paths((folder.base,), folder.base, links=False)


@contextmanager
def _locked(folder: MemoryFolder) -> Generator[None]:
    """Lock the folder against changes by other processes, so that no added line is lost. Create it if it is missing."""
    if not folder.below:
        folder.base.mkdir(parents=True, exist_ok=True, mode=0o700)
    with enter(_roots(folder), _inside(folder, INDEX), create=True) as place:
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.folder)
    try:
        until = time.monotonic() + LOCK_SECONDS
        while not _is_locked(descriptor):
            if time.monotonic() > until:
                raise Refused(f"Another program has locked the memory folder {folder.name!r}.", fix="Try again later.")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
