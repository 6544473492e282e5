"""Protected files, which could make the user's programs run code: settings and hooks of Git repositories, and `.moot` folders.

Mounts prevent a command from changing existing ones. If it creates new ones, they are moved to a quarantine folder afterwards. With
Landlock, which has no mounts, changed files are restored too.

In a linked worktree, all of the repository is read-only, except for the few folders in which git stores the commits of this worktree.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from moot.guard.worktrees import BRANCHES, FOLDER
from moot.types.sandbox import Confinement

_IN_GIT = ("config", "config.worktree", "commondir", "hooks", "info/attributes")
_SHARED = ("objects", "lfs", "reftable")
"""Folders of a repository that are changed by commits in any worktree. `reftable` contains all branches, in repositories with that format.
"""
_LARGEST = 1 << 20
"""Maximum size in bytes of a configuration file that can count as harmless."""

# lines that `git init` and `git clone` write, which start no programs
_HARMLESS = re.compile(
    r"\s*(|[#;].*|\[core\]|\[remote \"[\w./-]+\"\]|\[branch \"[\w./-]+\"\]|(repositoryformatversion|filemode|bare|logallrefupdates"
    r"|ignorecase|precomposeunicode|symlinks)\s*=\s*(true|false|\d)|url\s*=\s*(https://|git@|ssh://|/)[^\s\"\\:]*[^\s\"\\]*"
    r"|fetch\s*=\s*\+?refs/[\w/*.:-]+|remote\s*=\s*[\w.-]+|merge\s*=\s*refs/[\w./-]+)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Repository:
    """Protected files of a writable folder, or of a repository around one."""

    held: tuple[str, ...]
    """Folders that stay writable but can't be renamed. Some may not exist."""
    protected: tuple[str, ...]
    """Paths that must not be written or created. Some may not exist."""
    closed: tuple[str, ...] = ()
    """Existing paths that are read-only, except for the folders `held` in them."""


def real_paths(folders: Iterable[Path]) -> list[str]:
    """Return the real paths of the folders that exist."""
    return list(dict.fromkeys(os.path.realpath(folder) for folder in folders if folder.is_dir()))


def repositories(roots: Sequence[str]) -> Iterator[Repository]:
    """Return the protected files of writable folders and of repositories around them."""
    for root in roots:
        git, own = f"{root}/.git", f"{root}/.moot"
        if Path(git).is_file():  # a worktree: its .git names a folder in the main repository
            yield _linked(root, roots)
        elif Path(git).is_dir() and not Path(git).is_symlink():
            yield Repository((git,), (own, *_settings(git)))
        else:
            yield Repository((), (own, *(f"{git}/{name}" for name in _IN_GIT), git))


def _settings(git: str) -> Iterator[str]:
    """Return the settings and hooks in a `.git` folder and in those of its submodules."""
    modules = (entry.path for entry in _entries(f"{git}/modules") if entry.is_dir(follow_symlinks=False))
    return (f"{folder}/{name}" for folder in (git, *modules) for name in _IN_GIT)


def _linked(root: str, roots: Sequence[str]) -> Repository:
    """Return the protected files of a linked worktree."""
    protected = (f"{root}/.moot", f"{root}/.git")
    admin = _admin(f"{root}/.git")
    if not admin:
        return Repository((), protected)
    common = str(Path(admin).parent.parent)
    protected = (*protected, f"{admin}/gitdir", *_settings(admin), *(f"{common}/{name}" for name in _IN_GIT))
    if any(Path(common).is_relative_to(other) for other in roots):  # the main checkout is writable too
        return Repository((common,), protected)
    shared, folders = [f"{common}/{name}" for name in _SHARED], _branch_folders(root, admin)
    branch = _branch(admin)
    writable = {*folders, f"{common}/{branch}", f"{common}/logs/{branch}"}
    ours = (f"{common}/refs/heads/{BRANCHES}", f"{common}/logs/refs/heads/{BRANCHES}")
    beside = (entry.path for folder in folders if not f"{folder}/".startswith(ours) for entry in _entries(folder))
    return Repository((admin, *shared, *folders), protected, (common, *(path for path in beside if path not in writable)))


def create_branch_folders(roots: Iterable[str]) -> None:
    """Create the folders of worktrees' branches again. Git deletes empty ones, for example when it packs branches."""
    found = (folder for root in roots if (admin := _admin(f"{root}/.git")) for folder in _branch_folders(root, admin))
    for folder in found:
        with suppress(OSError):  # the worktree is on an impossible branch, which git reports
            Path(folder).mkdir(parents=True, exist_ok=True)


def _branch_folders(root: str, admin: str) -> list[str]:
    """Return the folders with the branches that a worktree's commands may change, and with the logs of these branches.

    In one of moot's worktrees, these are moot's branches; in any other worktree, the branch that is checked out there. A command can check
    out another branch, so a branch that another worktree uses doesn't count.
    """
    common = Path(admin).parent.parent
    branch = _branch(admin)
    if Path(root).parent == common.with_name(FOLDER):
        above = f"refs/heads/{BRANCHES}".rstrip("/")
    elif branch and branch not in _used_elsewhere(str(common), admin):
        above = str(Path(branch).parent)
    else:
        return []
    folders = (f"{common}/{above}", f"{common}/logs/{above}")
    return [folder for folder in folders if os.path.realpath(folder) == folder]  # a command may have made links


def _used_elsewhere(common: str, admin: str) -> set[str]:
    """Return the branches that the main checkout and the other worktrees have checked out."""
    main = [common] if Path(common, "index").exists() else []  # a bare repository has no index
    return {_branch(folder) for folder in (*main, *(entry.path for entry in _entries(f"{common}/worktrees"))) if folder != admin}


def _branch(folder: str) -> str:
    """Return the branch that the HEAD in a folder names, such as `refs/heads/main`; empty if it names no branch."""
    try:
        name = Path(folder, "HEAD").read_text().removeprefix("ref:").strip()
    except (OSError, ValueError):
        return ""
    is_branch = name.startswith("refs/heads/") and name.isprintable() and all(part.strip(".") for part in name.split("/"))
    return name if is_branch else ""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not entry.is_symlink()), key=lambda entry: entry.name)
    except OSError:
        return []


def _admin(git: str) -> str:
    """Return the folder in which the main repository keeps a worktree's state, or an empty string if it does not list the worktree."""
    try:
        folder = os.path.realpath(Path(git).read_text().removeprefix("gitdir:").strip())
        listed = Path(folder, "gitdir").read_text().strip()
        common = os.path.realpath(Path(folder, Path(folder, "commondir").read_text().strip()))
    except (OSError, ValueError):
        return ""
    # a model that could write `.git` must not make other folders writable
    is_listed = os.path.realpath(listed) == os.path.realpath(git) and Path(folder).parent == Path(common, "worktrees")
    return folder if is_listed else ""


Kept = dict[str, tuple[int, bytes | None]]
"""Mode and content of files, by path. For a folder, the content is None; for a link, it is the target."""


@dataclass(slots=True)
class Watch:
    """Snapshot of the protected files before a command, to be compared afterwards."""

    confinement: Confinement
    _paths: tuple[str, ...] = ()
    _existing: frozenset[str] = frozenset()
    _kept: Kept = field(default_factory=dict[str, tuple[int, bytes | None]])

    @staticmethod
    def start(confinement: Confinement) -> Watch:
        """Record the protected files. Keep their content if mounts don't protect them, which is the case with Landlock and for links."""
        roots = real_paths((*confinement.writable, *confinement.repositories))
        paths = tuple(path for repository in repositories(roots) for path in repository.protected)
        existing = frozenset(path for path in paths if os.path.lexists(path))
        held = (path for path in existing if confinement.mechanism == "landlock" or Path(path).is_symlink())
        kept = dict(item for path in held for item in _contents(path))
        return Watch(confinement, paths, existing, kept)

    def finish(self) -> list[str]:
        """Move new protected files away and restore changed ones. Return a sentence about each."""
        found = [line for path in self._paths if path not in self._existing for line in self._new(path)]
        return found + [line for path in sorted(self._existing & self._kept.keys()) for line in self._changed(path)]

    def _new(self, path: str) -> Iterator[str]:
        if not os.path.lexists(path) or _is_harmless(path):
            return
        place = self._move(path)
        words = f"moved to {place}" if place else "deleted"
        yield f"[sandbox: {path} is a protected path. The command created it, and it was {words}.]"

    def _move(self, path: str) -> Path | None:
        quarantine = self.confinement.quarantine
        if quarantine is None:
            _remove(path)
            return None
        place = quarantine / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{token_hex(4)}" / Path(path).name
        place.parent.mkdir(parents=True, mode=0o700)
        shutil.move(path, place)
        return place

    def _changed(self, path: str) -> Iterator[str]:
        before = {name: value for name, value in self._kept.items() if name == path or name.startswith(f"{path}/")}
        after = dict(_contents(path))
        if after == before:
            return
        place = self._move(path) if after else None
        for name in sorted(before):
            _write(name, *before[name])
        words = f" The changed version was moved to {place}." if place else ""
        yield f"[sandbox: {path} is a protected path. The command changed it, and it was restored.{words}]"


def _contents(path: str) -> Iterator[tuple[str, tuple[int, bytes | None]]]:
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if Path(path).is_symlink():
            yield path, (mode, os.fsencode(Path(path).readlink()))
        elif Path(path).is_dir():
            yield path, (mode, None)
            for entry in sorted(Path(path).iterdir()):
                yield from _contents(str(entry))
        else:
            yield path, (mode, Path(path).read_bytes())


def _write(path: str, mode: int, content: bytes | None) -> None:
    if os.path.lexists(path):
        _remove(path)
    if content is None:
        Path(path).mkdir(parents=True, exist_ok=True)
    elif (mode & 0o170000) == 0o120000:
        Path(path).symlink_to(os.fsdecode(content))
        return
    else:
        Path(path).write_bytes(content)
    Path(path).chmod(mode & 0o7777)


def _remove(path: str) -> None:
    if Path(path).is_dir() and not Path(path).is_symlink():
        shutil.rmtree(path)
    else:
        Path(path).unlink()


def _is_harmless(path: str) -> bool:
    """Return True if a new path contains only what `git init` and `git clone` write."""
    name = Path(path).name
    if Path(path).is_symlink():
        return False
    if name == ".git":  # its files are checked one by one
        return Path(path).is_dir()
    if name == "hooks" and Path(path).is_dir():
        return all(entry.suffix == ".sample" for entry in Path(path).iterdir())
    if name != "config" or not Path(path).is_file() or Path(path).stat().st_size > _LARGEST:
        return False
    return all(_HARMLESS.fullmatch(line) for line in Path(path).read_text(errors="replace").splitlines())
