"""Git worktrees, in which agents work without changing the user's files: `.worktrees/NAME` in the repository, on the branch `moot/NAME`.

They are inside the repository, so its project, permissions, hooks and checks apply to them. Git never runs the repository's programs here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

import anyio
from anyio import to_thread

from moot.errors import Busy, MootError, NotFound, Refused, UsageError
from moot.guard.processes import child_environment, output

FOLDER = ".worktrees"
BRANCHES = "moot/"
AUTOMATIC = "auto-"
"""Prefix of the names of worktrees for agents. Such a worktree is removed after each run that leaves no work in it."""
UNNAMED = "new-"
"""Prefix of the names of worktrees that the user requests without a name. They are removed when the command ends if they contain no work.
"""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECONDS = 120.0
_DIFF_BYTES = 4_000_000
# these options keep git from starting programs named in the repository's configuration; `_filters` turns off its filters
_NO_SUBMODULES = "--ignore-submodules=dirty"  # git would otherwise run in submodules, with their configuration
_SAFE = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false", "core.pager=cat", "commit.gpgSign=false")


@dataclass(frozen=True, slots=True)
class Worktree:
    """One worktree of moot."""

    name: str
    path: str
    changes: int = 0
    """Number of changed or added files that are not committed."""
    commits: int = 0
    """Number of commits that are not on any other branch."""

    @property
    def branch(self) -> str:
        return f"{BRANCHES}{self.name}"

    @property
    def kept(self) -> str:
        """A sentence about the work in the worktree; empty if there is none."""
        if not (self.changes or self.commits):
            return ""
        parts = [f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in _amounts(self) if number]
        return f"The worktree {self.path} on the branch {self.branch} has {' and '.join(parts)}."


def _amounts(worktree: Worktree) -> tuple[tuple[int, str], ...]:
    return (worktree.commits, "new commit"), (worktree.changes, "uncommitted file")


def check_name(name: str) -> None:
    """Raise UsageError if the name is not allowed for a worktree that the user creates."""
    if not _NAME.fullmatch(name) or name.endswith((".", ".lock")) or ".." in name or name.startswith((AUTOMATIC, UNNAMED)):
        fix = f"Use at most 64 letters, digits and the characters . _ -, not starting with {AUTOMATIC} or {UNNAMED}."
        raise UsageError(f"{name!r} is not a valid name for a worktree.", fix=fix)


def name_for(key: str, start: str = AUTOMATIC) -> str:
    """Return the name of a worktree for a new conversation. The same key always gives the same name."""
    return f"{start}{blake2b(key.encode(), digest_size=4).hexdigest()}"


def place_of(directory: str) -> tuple[str, str]:
    """Return the repository and name of the worktree that contains a folder; empty if there is none. The folder need not exist."""
    root, mark, rest = directory.rpartition(f"/{FOLDER}/")
    name = rest.partition("/")[0]
    return (root, name) if mark and _NAME.fullmatch(name) else ("", "")


def moved(path: str, root: str, worktree: str) -> str:
    """Return the path in a worktree that corresponds to a path in the checkout `root`. Other paths are returned unchanged."""
    inside = os.path.relpath(os.path.realpath(path), root)
    return path if inside.split("/")[0] in ("..", FOLDER) else os.path.normpath(f"{worktree}/{inside}")


async def create(directory: str, name: str) -> Worktree:
    """Return the worktree with this name in the folder's repository, creating it from the folder's commit if it doesn't exist.

    Raise UsageError if the folder is not in a repository with a commit, Refused if git fails.
    """
    root = await repository_of(directory)
    path = f"{root}/{FOLDER}/{name}"
    if await to_thread.run_sync(os.path.exists, f"{path}/.git"):
        if await to_thread.run_sync(_is_complete, path):
            return Worktree(name, path)
        await _git(root, "worktree", "remove", "--force", "--force", "--", path)
    start = (await _git(directory, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", codes=(0, 1))).strip()
    if not start:
        raise UsageError(
            f"The repository {root!r} has no commit yet, so it can't have worktrees.", fix="Create a commit with 'git commit'."
        )
    await to_thread.run_sync(_prepare, root)
    await _git(root, "worktree", "prune")
    has_branch = await _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{BRANCHES}{name}", codes=(0, 1))
    branch = (f"{BRANCHES}{name}",) if has_branch.strip() else (start,)
    new = () if has_branch.strip() else ("-b", f"{BRANCHES}{name}")
    filters = await _filters(root)
    with anyio.CancelScope(shield=True):  # with a partial checkout, the missing files would look deleted
        await _git(root, *filters, "worktree", "add", "--quiet", *new, "--", path, *branch)
    return Worktree(name, path)


async def folder_in(worktree: Worktree, directory: str) -> str:
    """Return the worktree's folder that corresponds to a folder of the repository. Create it, because git does not store empty folders."""
    folder = moved(directory, await checkout_of(directory), worktree.path)
    await to_thread.run_sync(partial(Path(folder).mkdir, parents=True, exist_ok=True))
    return folder


def _is_complete(path: str) -> bool:
    """Return False if git was killed while it created the worktree."""
    try:
        admin = Path(path, Path(path, ".git").read_text(errors="surrogateescape").removeprefix("gitdir:").strip())
        return not (admin / "locked").read_text().startswith("initializing")
    except OSError:  # not locked
        return True


async def restore(directory: str) -> None:
    """Create the worktree of a conversation's folder again if moot removed it. Do nothing for other folders."""
    root, name = place_of(directory)
    if name.startswith((AUTOMATIC, UNNAMED)) and not await to_thread.run_sync(os.path.exists, f"{root}/{FOLDER}/{name}"):
        await create(root, name)
        await to_thread.run_sync(partial(Path(directory).mkdir, parents=True, exist_ok=True))


async def settle(directory: str, start: str = AUTOMATIC) -> str:
    """Remove a folder's worktree if its name starts with `start` and it contains no work. Otherwise return a sentence about the work."""
    root, name = place_of(directory)
    if not name.startswith(start) or not await to_thread.run_sync(os.path.exists, f"{root}/{FOLDER}/{name}/.git"):
        return ""
    try:
        found = await _state(root, name)
        if not found.kept:
            await _remove(root, found)
        return found.kept
    except MootError as error:
        is_gone = not await to_thread.run_sync(os.path.exists, f"{root}/{FOLDER}/{name}")
        return "" if is_gone else f"The worktree {root}/{FOLDER}/{name} was kept: {error.message}"


async def work_in(directory: str) -> str:
    """Return a sentence about the work in the worktree that contains a folder; empty if there is no worktree or no work."""
    root, name = place_of(directory)
    if not name or not await to_thread.run_sync(os.path.exists, f"{root}/{FOLDER}/{name}/.git"):
        return ""
    try:
        return (await _state(root, name)).kept
    except MootError as error:
        return "" if not await to_thread.run_sync(os.path.exists, f"{root}/{FOLDER}/{name}") else error.message


async def listed(directory: str) -> list[Worktree]:
    """Return moot's worktrees in the folder's repository, by name."""
    root = await repository_of(directory)
    found = [line.removeprefix("worktree ") for line in (await _git(root, "worktree", "list", "--porcelain")).splitlines()]
    names = sorted(name for line in found if (name := line.removeprefix(f"{root}/{FOLDER}/")) != line and _NAME.fullmatch(name))
    return [await _state(root, name) for name in names if await to_thread.run_sync(os.path.isdir, f"{root}/{FOLDER}/{name}")]


async def find(directory: str, name: str) -> Worktree:
    """Return a worktree by name. Raise NotFound if it does not exist."""
    known = await listed(directory)
    found = next((one for one in known if one.name == name), None)
    if found is None:
        names = ", ".join(one.name for one in known) or "none"
        raise NotFound(f"Worktree {name!r} not found in this repository. Known worktrees: {names}.", fix="moot worktrees list")
    return found


async def difference(worktree: Worktree) -> tuple[str, list[str]]:
    """Return a diff of all changes since the worktree was created, committed or not, and the names of untracked files."""
    root = place_of(worktree.path)[0]
    base = (await _git(root, "merge-base", "HEAD", f"refs/heads/{worktree.branch}", codes=(0, 1))).strip() or "HEAD"
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", _NO_SUBMODULES)
    diff = await _git(worktree.path, *await _filters(worktree.path), "diff", *options, base, "--")
    untracked = await _git(worktree.path, "ls-files", "--others", "--exclude-standard", "-z")
    return diff, [name for name in untracked.split("\0") if name]


async def remove(directory: str, name: str, *, force: bool = False) -> bool:
    """Remove a worktree. Return True if its branch was kept because it has commits that are not on any other branch.

    Raise NotFound, or Busy if it has uncommitted changes, which are lost with `force`.
    """
    found = await find(directory, name)
    if found.changes and not force:
        raise Busy(
            f"{found.kept} It was not removed.",
            fix=f"Commit them, or remove the worktree with its changes: moot worktrees remove {name} --force",
        )
    await _remove(place_of(found.path)[0], found)
    return found.commits > 0


async def _remove(root: str, worktree: Worktree) -> None:
    # forced, because git would otherwise check submodules, whose configuration may name programs; `_state` has checked the rest
    await _git(root, "worktree", "remove", "--force", "--", worktree.path)
    if not worktree.commits:
        await _git(root, "branch", "--quiet", "-D", "--", worktree.branch, codes=(0, 1))


async def checkout_of(directory: str) -> str:
    """Return the top folder of the checkout that contains a folder: the main checkout or a worktree. Raise Refused if there is none."""
    return (await _git(directory, "rev-parse", "--show-toplevel")).rstrip("\n")


async def repository_of(directory: str) -> str:
    """Return the top folder of the main checkout in a folder's repository. Raise UsageError if there is none."""
    common = ""
    with suppress(Refused):
        common = (await _git(directory, "rev-parse", "--path-format=absolute", "--git-common-dir")).rstrip("\n")
    if not common.endswith("/.git"):
        raise UsageError(
            f"{directory!r} is not in a git repository with a working tree, so it can't have worktrees.",
            fix="Create a repository with 'git init'.",
        )
    return common.removesuffix("/.git")


async def _state(root: str, name: str) -> Worktree:
    path = f"{root}/{FOLDER}/{name}"
    status = await _git(path, *await _filters(path), "status", "--porcelain", "--untracked-files=all", _NO_SUBMODULES)
    others = ("--not", f"--exclude={BRANCHES}{name}", "--branches", "--remotes", "--tags")
    counted = await _git(path, "rev-list", "--count", "HEAD", *others)
    commits = int(counted.strip() or 0)
    return Worktree(name, path, len(status.splitlines()), commits)


async def _filters(directory: str) -> tuple[str, ...]:
    """Return options that turn off the filters defined in the repository's own configuration, because they are programs."""
    found = (await _git(directory, "config", "--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\.", codes=(0, 1))).split("\0")
    keys = [key for scope, key in zip(found[::2], found[1::2], strict=False) if scope in ("local", "worktree")]
    off = [f"{key}={'false' if key.endswith('.required') else ''}" for key in keys]
    return tuple(word for value in off for word in ("-c", value))


async def _git(directory: str, *words: str, codes: Sequence[int] = (0,)) -> str:
    """Run git and return its output. Raise Refused if git can't be started or its exit code is not in `codes`."""
    options = [word for value in _SAFE for word in ("-c", value)]
    env = {**child_environment(), "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        ended = await output(["git", *options, *words], cwd=Path(directory), env=env, timeout=_SECONDS, limit=_DIFF_BYTES)
    except Refused as error:
        raise Refused("Worktrees require git, but git could not be started.", fix="Install git.") from error
    if ended.code not in codes:
        reason = ended.stderr.decode("utf-8", "replace").strip() or "it did not finish, or printed too much"
        raise Refused(f"git {' '.join(word for word in words if '=' not in word and word != '-c')} failed: {reason}")
    return os.fsdecode(ended.stdout)


def _prepare(root: str) -> None:
    """Create the folder for worktrees, with a `.gitignore` so that git ignores it."""
    folder = Path(root, FOLDER)
    folder.mkdir(exist_ok=True)
    with suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
        file.write("# made by moot\n*\n")
