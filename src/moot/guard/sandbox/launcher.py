"""The program that puts itself in a sandbox and then runs a command. Its arguments are MECHANISM OPTIONS… -- COMMAND….

Without bubblewrap, it is started for every command, so it imports nothing that takes time: `_ctypes` instead of `ctypes`, and no `os`.
"""

from __future__ import annotations

import _ctypes
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes as long as starting Python
    from typing import Any, NoReturn

_open: Any = _ctypes.dlopen
_LIBC = _open(None, 0)
_symbol: Any = _ctypes.dlsym
_invoke: Any = _ctypes.call_function

FAILED = 124
"""Exit code if the sandbox can't be created."""

_PDEATHSIG, _SECCOMP, _CAPBSET_DROP, _NO_NEW_PRIVS = 1, 22, 24, 38
_SIGKILL = 9
_NEWUSER, _NEWNS, _NEWPID, _NEWNET, _NEWIPC, _NEWUTS = 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x08000000, 0x04000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_DETACH = 2
_CAPABILITIES = 41
_O_PATH = 0o10000000 | 0o2000000  # with O_CLOEXEC


def call(name: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library. Return a negative number if it fails."""
    result: int = _invoke(_symbol(_LIBC, name), arguments)
    return result


def need(name: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library. Exit if it fails."""
    result = call(name, *arguments)
    if result < 0:
        fail(f"{name}{arguments!r}")
    return result


def fail(what: str) -> NoReturn:
    posix.write(2, f"moot: can't create the sandbox: {what} failed\n".encode())
    sys.exit(FAILED)


def encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends. Exit if it has already ended."""
    need("prctl", _PDEATHSIG, _SIGKILL, 0, 0, 0)
    if posix.getppid() != parent:
        sys.exit(FAILED)


def drop_privileges() -> None:
    """Prevent the command from having capabilities, even if root starts it, and from gaining privileges."""
    need("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)
    for number in range(_CAPABILITIES):
        call("prctl", _CAPBSET_DROP, number, 0, 0, 0)


def execute(command: list[str]) -> NoReturn:
    """Replace this process with the command, which is looked up in PATH. Exit if that fails."""
    name, problem = command[0], "not found"
    folders = [b""] if "/" in name else posix.environ.get(b"PATH", b"/usr/bin:/bin").split(b":")
    for folder in folders:
        path = encode(name) if not folder else folder + b"/" + encode(name)
        try:
            posix.execve(path, command, posix.environ)
        except OSError as error:
            problem = error.strerror or problem
    posix.write(2, f"{name}: {problem}\n".encode(errors="replace"))
    sys.exit(127)


# ── namespaces ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def put(path: str, text: str) -> None:
    descriptor = posix.open(path, posix.O_WRONLY)
    posix.write(descriptor, text.encode())
    posix.close(descriptor)


def make_folder(path: str, file: bool = False) -> None:
    """Create a mount point and the folders above it."""
    above = ""
    for name in path.split("/")[1:-1]:
        above += f"/{name}"
        try:
            posix.mkdir(above, 0o755)
        except OSError:  # it exists, or the mount fails below
            continue
    try:
        if file:
            posix.close(posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o644))
        else:
            posix.mkdir(path, 0o755)
    except OSError:
        return


def bind(source: str, target: str, *, read_only: bool) -> None:
    make_folder(target, file=(posix.stat(source).st_mode & 0o170000) != 0o040000)
    origin, place = encode(source), encode(target)
    need("mount", origin, place, None, _BIND | _REC, None)
    # flags of the original mount are locked and must be repeated
    held = posix.statvfs(target).f_flag & (_RDONLY | _NOEXEC)
    if call("mount", None, place, None, _REMOUNT | _BIND | _NOSUID | _NODEV | held | (_RDONLY if read_only else 0), None) < 0:
        fail(f"the mount of {source}")


def blank(target: str) -> None:
    bind("/dev/null", target, read_only=True)


def devices(root: str) -> None:
    need("mount", b"tmpfs", encode(f"{root}/dev"), b"tmpfs", _NOSUID, b"mode=755")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        make_folder(f"{root}/dev/{name}", file=True)
        need("mount", f"/dev/{name}".encode(), encode(f"{root}/dev/{name}"), None, _BIND, None)
    for name, place in (
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ):
        posix.symlink(place, f"{root}/dev/{name}")
    posix.mkdir(f"{root}/dev/shm", 0o777)


def file_system(root: str, mounts: list[str]) -> None:
    """Build the file system from `mounts`, which lists kind, target and source of each mount, and make it the root."""
    need("mount", b"none", b"/", None, _REC | _PRIVATE, None)
    need("mount", b"tmpfs", encode(root), b"tmpfs", _NOSUID | _NODEV, b"mode=755")
    for name in ("proc", "dev"):
        posix.mkdir(f"{root}/{name}", 0o755)
    need("mount", b"proc", encode(f"{root}/proc"), b"proc", _NOSUID | _NODEV | _NOEXEC, None)
    devices(root)
    for kind, target, source in zip(mounts[::3], mounts[1::3], mounts[2::3], strict=True):
        place = root + target
        if kind == "link":
            posix.symlink(source, place)
        elif kind == "empty":
            make_folder(place)
            need("mount", b"tmpfs", encode(place), b"tmpfs", _NOSUID | _NODEV | _RDONLY, b"mode=555")
        elif kind == "blank":
            blank(place)
        else:
            bind(source, place, read_only=kind == "read")
    need("mount", None, encode(root), None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV, None)
    posix.chdir(root)
    need("pivot_root", b".", b".")
    need("umount2", b".", _DETACH)


def namespaces(options: list[str], command: list[str]) -> None:
    """Run the command in new namespaces and return its exit code. Options: parent, network, root, directory, mounts."""
    parent, network, root, directory, *mounts = options
    die_with(int(parent))
    uid, gid = posix.getuid(), posix.getgid()
    need("unshare", _NEWUSER | _NEWNS | _NEWPID | _NEWIPC | _NEWUTS | (0 if network == "1" else _NEWNET))
    put("/proc/self/setgroups", "deny")
    put("/proc/self/uid_map", f"{uid} {uid} 1")
    put("/proc/self/gid_map", f"{gid} {gid} 1")
    alive, held = posix.pipe()
    first = posix.fork()
    if first:
        sys.exit(code_of(first))
    need("prctl", _PDEATHSIG, _SIGKILL, 0, 0, 0)
    posix.close(held)
    posix.set_blocking(alive, False)
    try:
        posix.read(alive, 1)
        sys.exit(FAILED)  # the parent has already ended and closed its side
    except BlockingIOError:
        posix.close(alive)
    file_system(root, mounts)
    posix.chdir(directory)
    drop_privileges()
    main = posix.fork()
    if not main:
        execute(command)
    sys.exit(code_of(main))  # when this process ends, the kernel kills the rest of the namespace


def code_of(child: int) -> int:
    """Wait until the child ends, reaping orphans meanwhile. Return its exit code, or 128 plus the signal that killed it."""
    while True:
        pid, status = posix.wait()
        if pid == child:
            return status >> 8 if not status & 0x7F else 128 + (status & 0x7F)


# ── Landlock and seccomp ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read files, read folders
_READ_FILE, _WRITE_FILE = 1 << 2, 1 << 1
_BY_VERSION = ((1, (1 << 13) - 1), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
"""Versions of Landlock, each with the access rights that it added."""
_ON_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15


def landlock_version() -> int:
    """Return the kernel's version of Landlock; 0 or less if it is not available."""
    return call("syscall", _CREATE_RULESET, None, 0, 1)


def little(number: int, size: int) -> bytes:
    return number.to_bytes(size, "little")


def restrict_files(mounts: list[str], version: int, network: bool) -> None:
    """Allow access only to the paths in `mounts`, which lists kind and path of each. Paths that don't exist are ignored."""
    rights = sum(added for since, added in _BY_VERSION if version >= since)
    scoped = 3 if version >= 6 else 0  # no abstract sockets and signals of processes outside of the sandbox
    ruleset = little(rights, 8) + little(0 if network or version < 4 else 3, 8) + little(scoped, 8)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    handle = need("syscall", _CREATE_RULESET, ruleset, size, 0)
    allowed = {"read": _READ, "write": rights, "device": _READ_FILE | _WRITE_FILE | (1 << 15), "look": 1 << 3}
    for kind, path in zip(mounts[::2], mounts[1::2], strict=True):
        try:
            descriptor = posix.open(path, _O_PATH)
        except OSError:
            continue
        is_folder = (posix.stat(path).st_mode & 0o170000) == 0o040000
        granted = allowed[kind] & rights & (-1 if is_folder else _ON_FILES)
        need("syscall", _ADD_RULE, handle, 1, little(granted, 8) + little(descriptor, 4), 0)
        posix.close(descriptor)
    need("syscall", _RESTRICT_SELF, handle, 0)
    posix.close(handle)


_EPERM = 0x00050000 | 1
_ALLOW = 0x7FFF0000
_NEWER = (425, 428, 429, 430, 442)
_ARCHITECTURES: dict[str, tuple[int, tuple[int, ...], int, tuple[int, ...]]] = {
    # audit number; numbers of calls that are refused; socket; truncate
    "x86_64": (0xC000003E, (101, 310, 311, 165, 166, 272, 308, 155, 161, 248, 249, 250, 321, 298, 323, *_NEWER), 41, (76,)),
    "aarch64": (0xC00000B7, (117, 270, 271, 40, 39, 97, 268, 41, 51, 217, 218, 219, 280, 241, 282, *_NEWER), 198, (45,)),
}
"""The refused calls are ptrace, memory of other processes, mounts, namespaces, chroot, keys, bpf, perf, userfaultfd and io_uring."""


def statement(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return little(code, 2) + little(true, 1) + little(false, 1) + little(value, 4)


def filter_of(machine: str, version: int, network: bool) -> bytes:
    """Return the seccomp filter. It refuses system calls of other architectures and dangerous ones that Landlock doesn't cover."""
    audit, refused, socket, truncate = _ARCHITECTURES[machine]
    refused += () if network else (socket,)
    refused += truncate if version < 3 else ()
    lines = [statement(0x20, 4), statement(0x15, audit, 1, 0), statement(0x06, _EPERM), statement(0x20, 0)]
    lines += [statement(0x35, 0x40000000, 0, 1), statement(0x06, _EPERM)]  # the second set of numbers of x86_64
    lines += [piece for number in refused for piece in (statement(0x15, number, 0, 1), statement(0x06, _EPERM))]
    return b"".join([*lines, statement(0x06, _ALLOW)])


def restrict_calls(version: int, network: bool) -> None:
    program = filter_of(posix.uname().machine, version, network)
    header = bytes.__basicsize__ - 1
    pointer = id(program) + header  # where CPython keeps the bytes of the object
    need("prctl", _SECCOMP, 2, little(len(program) // 8, 8) + little(pointer, 8), 0, 0)


def landlock(options: list[str], command: list[str]) -> None:
    """Run the command with Landlock and seccomp. Options: parent, network, directory, paths."""
    parent, network, directory, *paths = options
    die_with(int(parent))
    version = landlock_version()
    if version < 1 or posix.uname().machine not in _ARCHITECTURES:
        fail("Landlock")
    posix.chdir(directory)
    drop_privileges()
    restrict_files(["read", f"/proc/{posix.getpid()}", *paths], version, network == "1")
    restrict_calls(version, network == "1")
    execute(command)


def main() -> None:
    cut = sys.argv.index("--")
    run = namespaces if sys.argv[1] == "namespaces" else landlock
    run(sys.argv[2:cut], sys.argv[cut + 1 :])
