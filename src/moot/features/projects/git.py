"""Git in a project's folder: branch, changes, diffs, staging and commits.

Commands that only read run no programs that the repository configures.
Staging and committing run filters and hooks, as the user's own `git` would.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from anyio import to_thread

from moot.errors import Refused, StoreError, UsageError
from moot.guard.processes import Output, child_environment, output
from moot.guard.terminal import clean
from moot.types.store import OwnerStore

log = logging.getLogger("moot.projects")

LONGEST = 64 * 1024
"""Maximum number of bytes to read from a file in `.git`, except from the list of packed references."""
PACKED = 4 * 1024 * 1024

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFERENCE = re.compile(r"refs/heads/[^\x00-\x20\x7f~^:?*\[\\]{1,250}")


@dataclass(frozen=True, slots=True)
class GitState:
    """Branch and commit, if any."""

    branch: str | None = None
    commit: str | None = None


def git_state(folder: Path) -> GitState:
    """Return the folder's branch and commit. Both are None outside a repository or if its files are invalid. This function blocks."""
    place = _repository(folder)
    if place is None:
        return GitState()
    head = _text(place / "HEAD")
    if _COMMIT.fullmatch(head):
        return GitState(None, head)
    name = head.removeprefix("ref: ")
    if not _REFERENCE.fullmatch(name) or ".." in name:
        return GitState()
    return GitState(name.removeprefix("refs/heads/"), _commit(place, name))


def main_checkout(folder: Path) -> Path | None:
    """Return the folder of the repository's main checkout, even for a folder in a linked worktree.
    Return None outside a repository. This function blocks.
    """
    place = _repository(folder)
    if place is None:
        return None
    shared = _text(place / "commondir")
    common = (place / shared).resolve() if shared else place
    return common.parent if common.name == ".git" else common


def _repository(folder: Path) -> Path | None:
    """Return the `.git` folder of the folder or of its closest parent that has one.
    In a linked worktree, `.git` is a file that contains the path.
    """
    for above in (folder, *folder.parents):
        place = above / ".git"
        if place.is_dir():
            return place
        if place.is_file():
            named = _text(place).removeprefix("gitdir: ")
            return (above / named) if named else None
    return None


def _commit(place: Path, name: str) -> str | None:
    shared = _text(place / "commondir")
    for home in (place, place / shared) if shared else (place,):
        commit = _text(home / name)
        if _COMMIT.fullmatch(commit):
            return commit
        for line in _text(home / "packed-refs", PACKED).splitlines():
            packed, _, known = line.partition(" ")
            if known == name and _COMMIT.fullmatch(packed):
                return packed
    return None


def _text(path: Path, limit: int = LONGEST) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(limit).decode("utf-8", "replace").strip()
    except OSError:
        return ""


Change: TypeAlias = Literal["added", "modified", "deleted", "renamed", "copied", "type", "conflict", "untracked"]

LISTED = 1000
"""Maximum number of changes to list for each kind."""
DIFF_BYTES = 512 * 1024
STATUS_BYTES = 8 * 1024 * 1024
READING_SECONDS = 20.0
COMMIT_SECONDS = 300.0
"""Time limit in seconds for commands that can run hooks."""
PATHS_CHARACTERS = 100_000
"""Maximum total length of the paths in one command, in characters."""

_CHANGES: Mapping[str, Change] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "type",
    "U": "conflict",
}
_DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty", "--find-renames")
_ERROR_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that has been changed."""

    path: str
    """Path relative to the project's folder. The path of an untracked folder ends with `/`."""
    change: Change
    before: str | None = None
    """Earlier path of a renamed or copied file, relative to the project's folder."""


@dataclass(frozen=True, slots=True)
class GitStatus:
    """The state of the part of a repository that is below a project's folder."""

    branch: str | None = None
    """None if no branch is checked out."""
    commit: str | None = None
    """None before the first commit."""
    upstream: str | None = None
    ahead: int = 0
    behind: int = 0
    staged: tuple[ChangedFile, ...] = ()
    unstaged: tuple[ChangedFile, ...] = ()
    untracked: tuple[ChangedFile, ...] = ()
    staged_count: int = 0
    unstaged_count: int = 0
    untracked_count: int = 0


@dataclass(frozen=True, slots=True)
class GitCommit:
    """A commit, as shown in lists."""

    hash: str
    time: int
    """Commit time, in seconds since the epoch."""
    author: str
    subject: str


class Git:
    """The repository that contains a project's folder, limited to the part below that folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def status(self) -> GitStatus | None:
        """Return the changes, or None outside a repository. Raise UsageError if Git fails."""
        prefix = await self._prefix()
        if prefix is None:
            return None
        arguments = ("--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--ignore-submodules=dirty", "--", ".")
        done = await self._read("status", *arguments, limit=STATUS_BYTES)
        return _status_of(done.stdout.decode("utf-8", "surrogateescape"), prefix)

    async def diff(self, path: str, *, staged: bool) -> tuple[str, bool]:
        """Return the diff of a file, and whether the diff was truncated.

        If `staged` is True, compare the staged content with the last commit. Otherwise compare the file with its staged content.
        """
        cached = ("--cached",) if staged else ()
        done = await self._read("diff", *_DIFF_OPTIONS, *cached, "--", *_inside((path,)), limit=DIFF_BYTES)
        return done.stdout.decode("utf-8", "replace"), done.code is None

    async def contains(self, path: str) -> bool:
        """Return True if the path exists below the folder, or Git tracks it."""
        (inside,) = _inside((path,))
        if await to_thread.run_sync(os.path.lexists, self._root / inside):
            return True
        done = _checked("ls-files", await self._read("ls-files", "-z", "--", inside))
        return done.stdout != b""

    async def changed_lines(self, commit: str | None) -> tuple[int, int]:
        """Return how many lines have been added to and removed from tracked files since a commit.
        If `commit` is None, count from before the first commit.
        """
        since = ("--cached",) if commit is None else (commit,)
        done = _checked("diff", await self._read("diff", *_DIFF_OPTIONS, "--numstat", *since, "--", ".", limit=STATUS_BYTES))
        counts = [line.split(b"\t")[:2] for line in done.stdout.splitlines()]  # for a binary file, both are `-`
        added, removed = (sum(int(pair[at]) for pair in counts if pair[at].isdigit()) for at in (0, 1))
        return added, removed

    async def log(self, limit: int) -> list[GitCommit]:
        """Return the latest commits that changed something below the folder, newest first. Raise UsageError if there is no commit yet."""
        options = ("-z", "--no-show-signature", "--no-color", f"--max-count={limit}", "--format=%H%x09%at%x09%aN%x09%s")
        done = _checked("log", await self._read("log", *options, "--", ".", limit=STATUS_BYTES))
        records = done.stdout.decode("utf-8", "replace").split("\0")
        fields = [record.split("\t", 3) for record in records if record]
        return [GitCommit(hash, int(time), author, subject) for hash, time, author, subject in fields]

    async def stage(self, paths: Sequence[str]) -> None:
        """Stage the changes to these files, including deletions. If `paths` is empty, stage all changes below the folder."""
        await self._change("add", "--all", "--", *_inside(paths))

    async def unstage(self, paths: Sequence[str]) -> None:
        """Unstage the changes to these files, without changing the files. If `paths` is empty, unstage all changes below the folder."""
        await self._change("reset", "--quiet", "--", *_inside(paths))

    async def commit(self, message: str) -> str:
        """Commit the staged changes and return the commit's hash.

        Raise UsageError if Git or a hook fails, Refused if files outside the folder are staged.
        """
        prefix = await self._prefix() or ""
        names = ("--cached", "--name-only", "--no-renames", "--ignore-submodules=none", "-z")
        done = _checked("diff", await self._read("diff", *names, limit=STATUS_BYTES))  # all names, because each one is checked
        staged = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        outside = [name for name in staged if not name.startswith(prefix)]
        if outside:
            message = f"Files outside of the project's folder are staged, such as {outside[0]!r}."
            raise Refused(message, fix="Unstage them, or commit in a terminal.")
        await self._change("commit", "--quiet", f"--message={message}")
        return (await self._read("rev-parse", "HEAD")).stdout.decode().strip()

    async def _prefix(self) -> str | None:
        """Return the folder's path in its repository, which is empty or ends with `/`. Return None outside a repository."""
        done = await _run(self._root, ("rev-parse", "--show-prefix"), _reading(()), READING_SECONDS, PATHS_CHARACTERS)
        if done.code == 128 and b"not a git repository" in done.stderr:
            return None
        return _checked("rev-parse", done).stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    async def _read(self, *arguments: str, limit: int = PATHS_CHARACTERS) -> Output:
        """Run a command that changes nothing. All programs in the repository's settings are disabled."""
        listing = ("config", "--null", "--name-only", "--get-regexp", r"^filter\.")
        names = await _run(self._root, listing, _reading(()), READING_SECONDS, PATHS_CHARACTERS)
        keys = names.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        if names.code is None or len(keys) > LISTED:
            raise UsageError("The Git configuration of the project's folder has too many filters.")
        done = await _run(self._root, arguments, _reading(keys), READING_SECONDS, limit)
        return done if done.code is None and len(done.stdout) >= limit else _checked(arguments[0], done)

    async def _change(self, *arguments: str) -> None:
        _checked(arguments[0], await _run(self._root, arguments, {}, COMMIT_SECONDS, PATHS_CHARACTERS))


def _reading(filters: Sequence[str]) -> dict[str, str]:
    """Return environment variables that keep Git from running programs:
    file system monitors, filters (given by key), hooks and transports.
    """
    settings = {"core.fsmonitor": "false"}
    for key in filters:
        name = key.rpartition(".")[0]
        settings |= {f"{name}.clean": "", f"{name}.smudge": "", f"{name}.process": "", f"{name}.required": "false"}
    # not as `-c name=value`: a filter's name may contain `=`
    pairs = {
        f"GIT_CONFIG_{word}_{number}": text
        for number, pair in enumerate(settings.items())
        for word, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    # without locks, the index is not written, and so no hook runs; a partial clone would fetch missing objects with programs of its own
    return {**pairs, "GIT_CONFIG_COUNT": str(len(settings)), "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none"}


async def _run(root: Path, arguments: Sequence[str], variables: Mapping[str, str], seconds: float, limit: int) -> Output:
    environment = {
        **child_environment(),
        "LC_ALL": "C.UTF-8",  # messages are parsed
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "GIT_LITERAL_PATHSPECS": "1",
        **variables,
    }
    return await output(("git", "--no-pager", *arguments), cwd=root, env=environment, timeout=seconds, limit=limit)


def _checked(command: str, done: Output) -> Output:
    if done.code == 0:
        return done
    if done.code is None:
        raise UsageError(f"git {command} took too long or produced too much output.", fix="Run it in a terminal.")
    said = clean((done.stderr or done.stdout).decode("utf-8", "replace")).strip()
    raise UsageError(f"git {command} failed: {said[-_ERROR_CHARACTERS:] or f'exit code {done.code}'}")


def _inside(paths: Sequence[str]) -> Sequence[str]:
    """Return the paths to pass to Git, or `.` if there are none.
    Raise Refused if a path leads out of the folder. Git doesn't follow links.
    """
    if sum(map(len, paths)) > PATHS_CHARACTERS:
        raise UsageError("The paths are too long for one command.", fix="Send fewer paths, or none for all files.")
    for path in paths:
        if not path or path.startswith("/") or "\0" in path or ".." in PurePosixPath(path).parts:
            raise Refused(f"{path!r} is not a path in the project's folder.", fix="Use a path relative to it.")
    return paths or (".",)


def _status_of(text: str, prefix: str) -> GitStatus:
    """Parse the output of `git status --porcelain=v2 -z`, in which paths are relative to the top of the worktree."""
    facts: dict[str, str] = {}
    staged: list[ChangedFile] = []
    unstaged: list[ChangedFile] = []
    untracked: list[ChangedFile] = []
    records = iter(text.split("\0")[:-1])
    for record in records:
        kind, _, rest = record.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            facts[name] = value
        elif kind == "?":
            untracked.append(ChangedFile(_below(rest, prefix), "untracked"))
        elif kind == "u":
            unstaged.append(ChangedFile(_below(rest.split(" ", 9)[9], prefix), "conflict"))
        elif kind in ("1", "2"):
            path = _below(rest.split(" ", 7 if kind == "1" else 8)[-1], prefix)
            before = _below(next(records, ""), prefix) if kind == "2" else None
            for letter, changes in zip(rest[:2], (staged, unstaged), strict=True):
                if change := _CHANGES.get(letter):
                    changes.append(ChangedFile(path, change, before if change in ("renamed", "copied") else None))
    ahead, _, behind = facts.get("branch.ab", "+0 -0").partition(" ")
    commit = facts.get("branch.oid", "(initial)")
    branch = facts.get("branch.head", "(detached)")
    return GitStatus(
        None if branch == "(detached)" else branch,
        None if commit == "(initial)" else commit,
        facts.get("branch.upstream"),
        abs(int(ahead)),
        abs(int(behind)),
        *(tuple(staged[:LISTED]), tuple(unstaged[:LISTED]), tuple(untracked[:LISTED])),
        *(len(staged), len(unstaged), len(untracked)),
    )


def _below(path: str, prefix: str) -> str:
    """Return a path relative to the project's folder, or `./` for the folder itself."""
    return path[len(prefix) :] or "./" if path.startswith(prefix) else os.path.relpath(path, prefix)


async def place_conversations(holdings: OwnerStore) -> None:
    """Determine the repository of each conversation that has a folder but no repository yet."""
    folders = await holdings.projects.unplaced()
    if not folders:
        return
    home = Path.home()
    found = await to_thread.run_sync(lambda: {folder: repository_of(folder, home) for folder in folders})
    try:
        await holdings.projects.place(found)
    except StoreError as error:  # such as a full disk: the statistics can still be read
        log.warning("the repositories of conversations can't be stored: %s", error)


def repository_of(folder: str, home: Path) -> str:
    """Return the main checkout of the repository that contains a folder, or the folder itself if it is not in a repository.

    If the folder, such as a worktree, has been deleted, its closest existing parent is used. A repository directly in the user's home
    folder is ignored, because it usually contains only settings.
    """
    path = Path(folder)
    if not path.is_absolute():
        return folder
    existing = next((above for above in (path, *path.parents) if above.is_dir()), None)
    found = main_checkout(existing) if existing is not None else None
    return folder if found is None or found in (home, *home.parents) else str(found)
