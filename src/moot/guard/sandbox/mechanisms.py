"""The sandbox mechanisms: which of them work on this machine, and wrapping a command line, so that the command starts in a sandbox."""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moot.errors import Refused
from moot.guard.processes import output
from moot.guard.sandbox.mounts import Mount, hidden_paths, is_below, is_private_home, plan
from moot.guard.sandbox.protected import create_branch_folders, real_paths
from moot.types.sandbox import Confinement, Mechanism

PROCESSES = 8192
FILE_BYTES = 64 << 30
_LIMITS = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, PROCESSES), (resource.RLIMIT_FSIZE, FILE_BYTES))
"""Resource limits of a sandboxed command and its descendants."""

_PROC = ("cpuinfo", "meminfo", "stat", "loadavg", "version", "uptime", "filesystems", "sys")
"""Files in /proc that stay readable with Landlock. They contain nothing about processes."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

_LAUNCH = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import launcher; launcher.main()"
"""Python code that imports the launcher from this package, where it is already compiled. A copy in a temporary folder could be replaced."""

Wrapped = tuple[list[str], dict[str, str]]


def wrap(argv: Sequence[str], confinement: Confinement, environment: Mapping[str, str]) -> Wrapped:
    """Return the command line and the environment that start a command in the sandbox. Create the folders that it needs."""
    for name in ("tmp", "home", "root"):
        (confinement.scratch / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    create_branch_folders(real_paths((*confinement.writable, *confinement.repositories)))
    return _WRAPPERS[confinement.mechanism](argv, confinement, environment)


def limit(pid: int) -> None:
    """Set the resource limits of a child that has not started its command yet. Limits that are already lower are kept."""
    for kind, wanted in _LIMITS:
        try:
            soft, hard = resource.prlimit(pid, kind)
            resource.prlimit(pid, kind, (_lower(soft, wanted), _lower(hard, wanted)))
        except ProcessLookupError:  # the child has already failed, as `wait` will report
            return


def _lower(current: int, wanted: int) -> int:
    return wanted if current == resource.RLIM_INFINITY else min(current, wanted)


def program(mechanism: Mechanism) -> str:
    """Return the path of the program that a mechanism needs; empty if the mechanism is not available."""
    if mechanism == "bubblewrap":
        return shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin") or ""
    return sys.executable if sys.platform == "linux" else ""


def _bubblewrap(argv: Sequence[str], confinement: Confinement, environment: Mapping[str, str]) -> Wrapped:
    options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]
    options += ["--cap-drop", "ALL", "--dev", "/dev", "--proc", "/proc"]
    options += [] if confinement.network else ["--unshare-net"]
    for mount in plan(confinement, environment):
        options += _BWRAP[mount.kind](mount)
    options += ["--remount-ro", "/", "--chdir", os.path.realpath(confinement.directory)]
    return [program("bubblewrap"), *options, "--", *argv], {**environment, "TMPDIR": "/tmp"}


_BWRAP: Mapping[str, Callable[[Mount], list[str]]] = {
    "read": lambda mount: ["--ro-bind", mount.source, mount.target],
    "write": lambda mount: ["--bind", mount.source, mount.target],
    "link": lambda mount: ["--symlink", mount.source, mount.target],
    "empty": lambda mount: ["--tmpfs", mount.target, "--remount-ro", mount.target],
    "blank": lambda mount: ["--ro-bind", "/dev/null", mount.target],
}


def _namespaces(argv: Sequence[str], confinement: Confinement, environment: Mapping[str, str]) -> Wrapped:
    mounts = [word for mount in plan(confinement, environment) for word in (mount.kind, mount.target, mount.source)]
    network = "1" if confinement.network else "0"
    options = [str(os.getpid()), network, os.path.realpath(confinement.scratch / "root"), os.path.realpath(confinement.directory)]
    return [*_launch(), "namespaces", *options, *mounts, "--", *argv], {**environment, "TMPDIR": "/tmp"}


def _landlock(argv: Sequence[str], confinement: Confinement, environment: Mapping[str, str]) -> Wrapped:
    mounts = plan(confinement, environment)
    hidden = [*hidden_paths(confinement, environment.get("HOME", ""))]
    paths = [word for mount in mounts for word in _rules(mount, hidden)]
    paths += [word for name in _PROC for word in ("read", f"/proc/{name}")]
    paths += [word for name in _DEVICES for word in ("device", f"/dev/{name}")]
    scratch = Path(os.path.realpath(confinement.scratch))
    paths += ["write", str(scratch / "tmp"), "write", str(scratch / "home")]
    private = {"TMPDIR": str(scratch / "tmp")}
    home = environment.get("HOME", "")
    if is_private_home(home):
        private |= {"HOME": str(scratch / "home"), "GIT_CONFIG_GLOBAL": f"{home}/.gitconfig"}
    options = [str(os.getpid()), "1" if confinement.network else "0", os.path.realpath(confinement.directory)]
    return [*_launch(), "landlock", *options, *paths, "--", *argv], {**environment, **private}


def _rules(mount: Mount, hidden: list[str]) -> list[str]:
    """Return the rules for a mount. Landlock can't exclude paths from a folder, so everything next to hidden paths is listed instead."""
    if mount.target != mount.source:  # hidden, a link, or private
        return []
    inside = [path for path in hidden if is_below(path, (mount.source,))]
    if mount.source in inside:
        return []
    if not inside:
        return [mount.kind, mount.source]
    with os.scandir(mount.source) as listed:
        paths = sorted(entry.path for entry in listed if not entry.is_symlink())
    below = [word for path in paths for word in _rules(Mount(mount.kind, path, path), inside)]
    return ["look", mount.source, *below]


def _launch() -> list[str]:
    """Return the command that starts the launcher with the real Python, without site packages."""
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", _LAUNCH]


_WRAPPERS: Mapping[Mechanism, Callable[[Sequence[str], Confinement, Mapping[str, str]], Wrapped]] = {
    "bubblewrap": _bubblewrap,
    "namespaces": _namespaces,
    "landlock": _landlock,
}


_PROBE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Found:
    """The first mechanism that works, and the reasons why earlier ones don't."""

    mechanism: Mechanism | None
    missing: tuple[str, ...] = ()
    """The reason why each mechanism that was tried earlier can't be used."""

    @property
    def is_complete(self) -> bool:
        return self.mechanism in ("bubblewrap", "namespaces")


async def problem_of(mechanism: Mechanism) -> str:
    """Run a command that does nothing in a sandbox. Return why it failed, or an empty string."""
    if not program(mechanism):
        return "not installed" if mechanism == "bubblewrap" else "available on Linux only"
    with tempfile.TemporaryDirectory(prefix="moot-") as name:
        folder = Path(name)
        (folder / "work").mkdir()
        confinement = Confinement(mechanism, folder / "work", (folder / "work",), folder)
        try:
            done = await output(["/bin/sh", "-c", "exit 0"], cwd=folder, sandbox=confinement, timeout=_PROBE_SECONDS)
        except Refused as error:
            return error.message
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.code == 0 else words[-1] if words else f"it failed with exit code {done.code}"


_problems: dict[Mechanism, str] = {}
"""Problems of the mechanisms tried in this process; empty for one that works."""


async def find(candidates: Sequence[Mechanism]) -> Found:
    """Return the first candidate that works on this machine. Each mechanism is tried once per process."""
    missing: list[str] = []
    for mechanism in candidates:
        if mechanism not in _problems:
            _problems[mechanism] = await problem_of(mechanism)
        if not _problems[mechanism]:
            return Found(mechanism, tuple(missing))
        missing.append(f"{mechanism}: {_problems[mechanism]}")
    return Found(None, tuple(missing))
