"""The files that a sandboxed command sees: an allow list of mounts, in which secrets are hidden."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from moot.guard.sandbox.protected import Repository, real_paths, repositories
from moot.types.sandbox import Confinement

Kind: TypeAlias = Literal["read", "write", "link", "empty", "blank"]
"""`empty` hides a folder, `blank` a file."""

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap"),
    "/run/current-system",
)
"""Paths that are visible and read-only in every sandbox."""

_SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private"),
    *("/etc/ssh", "/etc/krb5.keytab", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/docker", "/etc/kubernetes"),
)

_VISIBLE = (
    *(".git", ".gitignore", ".gitattributes", ".moot", ".venv", ".cache", ".local", ".editorconfig", ".tool-versions"),
    *(".python-version", ".nvmrc", ".vim", ".terminfo", ".hushlogin", ".dircolors"),
)
_SECRETS = (".cargo/credentials", ".cargo/credentials.toml", ".local/state")
"""Paths in the user's home that are always hidden. Entries that start with a dot are hidden too, unless a list in this file names them."""

_STARTUP = (
    *(".profile", ".bash_profile", ".bash_login", ".bashrc", ".bash_logout", ".bash_aliases", ".zshrc", ".zshenv", ".zprofile"),
    *(".zlogin", ".config/fish", ".config/autostart", ".config/systemd", ".config/environment.d", ".local/share/systemd", ".gitconfig"),
    *(".config/git", ".local/bin", "bin", ".cargo/bin", ".inputrc", ".vimrc", ".config/nvim", ".tmux.conf", ".xinitrc", ".xprofile"),
)
"""Paths in a home that stay read-only even inside a writable folder, because the user's shell and programs run or obey them."""

_GIT_SETTINGS = (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes")

_TOOLCHAINS = (
    *(".cargo/bin", ".rustup", ".nvm", ".fnm", ".volta", ".bun/bin", ".deno/bin", ".pyenv", ".rbenv", ".asdf", ".sdkman/candidates"),
    *(".local/bin", ".local/share/uv", ".local/share/pipx", ".local/share/mise", ".local/share/pnpm", ".local/pipx", ".local/go"),
    *("go/bin", ".go/bin", ".local/share/fnm", ".juliaup", ".ghcup", ".dotnet", ".npm-global", "miniconda3", "anaconda3", "mambaforge"),
)
"""Folders in a home that contain programs. Those that PATH uses are visible."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One entry of the sandbox's file system."""

    kind: Kind
    target: str
    source: str = ""
    """The path outside of the sandbox, or the target of a link; empty for an empty folder or file."""


def plan(confinement: Confinement, environment: Mapping[str, str]) -> list[Mount]:
    """Return the mounts in the order in which to make them: outer folders before the paths inside them.

    If several rules apply to the same target, the strictest wins.
    """
    home = environment.get("HOME", "")
    roots = writable_roots(confinement)
    hidden = [*hidden_paths(confinement, home)]
    around = [path for path in real_paths(confinement.repositories) if not _would_cover(hidden, path, roots)]
    mounts = {mount.target: mount for mount in _system(confinement) if not is_below(mount.target, roots)}
    if is_private_home(home):
        mounts[home] = Mount("write", home, str(confinement.scratch / "home"))
    for path in (*programs(home, environment, roots), *_in_home(home, _GIT_SETTINGS), *real_paths(confinement.readable)):
        if not is_below(path, roots):
            mounts[path] = Mount("read", path, path)
    mounts["/tmp"] = Mount("write", "/tmp", str(confinement.scratch / "tmp"))
    mounts |= {path: Mount("read", path, path) for path in around}
    mounts |= {root: Mount("write", root, root) for root in roots}
    for repository in repositories([*roots, *around]):
        mounts |= {mount.target: mount for mount in _repository(repository)}
    mounts |= {path: Mount("read", path, path) for path in _in_home(home, _STARTUP) if is_below(path, roots)}
    found = _needed(sorted(mounts.values(), key=lambda mount: len(Path(mount.target).parts)))
    visible = [mount.target for mount in found if mount.target == mount.source]
    taken = (path for path in hidden if is_below(path, visible))
    return [*found, *(Mount("empty" if Path(path).is_dir() else "blank", path) for path in taken)]


def _would_cover(hidden: list[str], repository: str, roots: list[str]) -> bool:
    """Return True if a writable folder is inside a hidden path of a repository, so that it would be hidden too."""
    inside = [path for path in hidden if is_below(path, (repository,))]
    return any(is_below(root, inside) for root in roots)


def _needed(mounts: list[Mount]) -> list[Mount]:
    """Return the mounts without read-only ones inside other read-only ones, because every mount delays the start of a command."""
    found: list[Mount] = []
    for mount in mounts:
        above = next((other for other in reversed(found) if is_below(mount.target, (other.target,))), None)
        if mount.kind != "read" or above is None or above.kind != "read":
            found.append(mount)
    return found


def writable_roots(confinement: Confinement) -> list[str]:
    """Return the real paths of the existing writable folders."""
    return real_paths(confinement.writable)


def is_below(path: str, roots: Iterable[str]) -> bool:
    """Return True if an absolute path is one of the roots or below one."""
    return any(root == "/" or path == root or path.startswith(f"{root}/") for root in roots)


def _system(confinement: Confinement) -> Iterator[Mount]:
    for path in SYSTEM:
        if Path(path).is_symlink():
            yield Mount("link", path, str(Path(path).readlink()))
        elif Path(path).exists():
            yield Mount("read", path, path)
    resolver = os.path.realpath("/etc/resolv.conf")
    if confinement.network and not is_below(resolver, SYSTEM) and Path(resolver).exists():
        yield Mount("read", resolver, resolver)


def is_private_home(home: str) -> bool:
    """Return True if commands get an empty, private home. They don't if the home is `/` or overlaps a system folder."""
    return home.startswith("/") and Path(home).is_dir() and not any(is_below(path, (home,)) or is_below(home, (path,)) for path in SYSTEM)


def programs(home: str, environment: Mapping[str, str], roots: list[str]) -> Iterator[str]:
    """Yield the folders outside of the system folders that programs in PATH and moot's own Python need, such as `~/.cargo/bin`."""
    used = [folder for folder in environment.get("PATH", "").split(":") if folder.startswith("/")]
    bases = [base for folder in used if (base := _base_of(folder))]
    homes = dict.fromkeys((home, pwd.getpwuid(os.getuid()).pw_dir))
    known = [path for name in homes for path in _in_home(name, _TOOLCHAINS)]
    local = [path for path in known if "/.local/share/" in path]
    yield from (path for path in known if any(is_below(folder, (path,)) for folder in (*used, *bases)))
    yield from (path for path in local if f"{path.partition('/.local/')[0]}/.local/bin" in used)  # links in ~/.local/bin point here
    # a model may have written a virtual environment in a writable folder, so it must not make other folders visible
    trusted = [folder for folder in used if not is_below(os.path.realpath(folder), roots)]
    for folder in (*trusted, *(base for name in trusted if (base := _base_of(name))), sys.prefix, sys.base_prefix):
        path = str(Path(folder).parent) if _base_of(folder) else folder
        if Path(path).is_dir() and path != "/" and not is_below(path, SYSTEM) and not any(is_below(name, (path,)) for name in homes):
            yield path


def _base_of(folder: str) -> str:
    """Return the Python installation on which the virtual environment of a `bin` folder is based; empty if there is none."""
    try:
        lines = Path(folder).with_name("pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    base = next((line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"), "")
    return str(Path(os.path.realpath(base)).parent) if base.startswith("/") else ""


def _in_home(home: str, names: Iterable[str]) -> Iterator[str]:
    return (path for name in names if home.startswith("/") and Path(path := f"{home}/{name}").exists())


def _repository(repository: Repository) -> Iterator[Mount]:
    for path in repository.closed:
        yield Mount("read", path, path)
    for path in repository.held:  # a mount point can't be renamed
        if Path(path).is_dir():
            real = os.path.realpath(path)
            yield Mount("write", real, real)
    for path in repository.protected:
        if Path(path).exists():
            real = os.path.realpath(path)
            yield Mount("read", real, real)


def hidden_paths(confinement: Confinement, home: str) -> Iterator[str]:
    """Yield the existing paths that no command may read."""
    for folder in confinement.hidden:
        if folder.exists():
            yield os.path.realpath(folder)
    for path in _SYSTEM_SECRETS:
        if os.access(path, os.R_OK):
            yield path
    yield from (os.path.realpath(path) for path in _in_home(home, (*_SECRETS, *_dotted(home))))


def _dotted(home: str) -> Iterator[str]:
    """Yield the names in a home, and in its `.local/share`, that may contain secrets."""
    known = {name.partition("/")[0] for name in (*_STARTUP, *_TOOLCHAINS) if not name.startswith(".config")} | {*_VISIBLE}
    shared = {name.rpartition("/")[2] for name in _TOOLCHAINS if name.startswith(".local/share/")}
    for folder, prefix, kept in ((home, "", known), (f"{home}/.local/share", ".local/share/", shared)):
        with suppress(OSError):
            for entry in sorted(Path(folder).iterdir()):
                if entry.name not in kept and (prefix or entry.name.startswith(".")):
                    yield prefix + entry.name
