"""Make SQLite's n-th system call of one kind fail, for n = 1, 2, 3 … until a complete store session needs no more calls.

    python anomalies.py FOLDER CALL once|ever new|made STRIDE

`ever` fails all calls from the n-th on; `made` starts with an existing store; STRIDE is the step of n.

SQLite lets a test replace its system calls (`xSetSystemCall`); for fsync, which is excluded, the file methods of its VFS are wrapped.
Print how many calls there were, and how many sessions met an error.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pysqlite3 import _sqlite3  # the same library that the store has loaded

from moot.config.settings import Settings
from moot.errors import MootError
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.event import Event

POINTERS = (
    "xOpen xDelete xAccess xFullPathname xDlOpen xDlError xDlSym xDlClose xRandomness xSleep xCurrentTime xGetLastError "
    "xCurrentTimeInt64 xSetSystemCall xGetSystemCall xNextSystemCall"
)
METHODS = (
    "xClose xRead xWrite xTruncate xSync xFileSize xLock xUnlock xCheckReservedLock xFileControl xSectorSize "
    "xDeviceCharacteristics xShmMap xShmLock xShmBarrier xShmUnmap xFetch xUnfetch"
)


class Vfs(ctypes.Structure):
    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in POINTERS.split()),
    ]


class Methods(ctypes.Structure):
    _fields_ = [("iVersion", ctypes.c_int), *((name, ctypes.c_void_p) for name in METHODS.split())]


class File(ctypes.Structure):
    _fields_ = [("pMethods", ctypes.POINTER(Methods))]


library = ctypes.CDLL(_sqlite3.__file__)
library.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
vfs = library.sqlite3_vfs_find(None)

_int, _long, _pointer = ctypes.c_int, ctypes.c_long, ctypes.c_void_p
CALLS: dict[str, tuple[int, Any, list[Any]]] = {
    "open": (errno.EMFILE, _int, [ctypes.c_char_p, _int, _int]),
    "pwrite": (errno.EIO, _long, [_int, _pointer, ctypes.c_size_t, _long]),
    "pwrite64": (errno.EIO, _long, [_int, _pointer, ctypes.c_size_t, _long]),
    "write": (errno.EIO, _long, [_int, _pointer, ctypes.c_size_t]),
    "pread": (errno.EIO, _long, [_int, _pointer, ctypes.c_size_t, _long]),
    "pread64": (errno.EIO, _long, [_int, _pointer, ctypes.c_size_t, _long]),
    "ftruncate": (errno.EIO, _int, [_int, _long]),
    "fcntl": (errno.EIO, _int, [_int, _int, _long]),
    "mmap": (errno.ENOMEM, _long, [_pointer, ctypes.c_size_t, _int, _int, _int, _long]),
}
IOERR_FSYNC = 1034
kept: list[Any] = []
"""Objects that C has pointers to."""


class Fault:
    """Count calls and fail the n-th, or all from it on."""

    at = 0
    seen = 0
    ever = False

    def strikes(self) -> bool:
        self.seen += 1
        return self.at > 0 and (self.seen == self.at or (self.ever and self.seen > self.at))


def wrap(name: str, fault: Fault) -> None:
    number, result, arguments = CALLS[name]
    kind = ctypes.CFUNCTYPE(result, *arguments, use_errno=True)
    getter = ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(Vfs), ctypes.c_char_p)(vfs.contents.xGetSystemCall)
    setter = ctypes.CFUNCTYPE(_int, ctypes.POINTER(Vfs), ctypes.c_char_p, _pointer)(vfs.contents.xSetSystemCall)
    real = kind(getter(vfs, name.encode()))

    def call(*given: Any) -> Any:
        # a failed unlock is not a disk fault, and SQLite would wait for itself
        unlocks = name == "fcntl" and (given[1] != fcntl.F_SETLK or ctypes.c_short.from_address(given[2]).value == fcntl.F_UNLCK)
        if not unlocks and fault.strikes():
            ctypes.set_errno(number)
            return -1
        return real(*given)

    kept.append(kind(call))
    assert setter(vfs, name.encode(), ctypes.cast(kept[-1], _pointer)) == 0


def wrap_sync(fault: Fault) -> None:
    opened = ctypes.CFUNCTYPE(_int, _pointer, _pointer, ctypes.POINTER(File), _int, _pointer)
    synced = ctypes.CFUNCTYPE(_int, _pointer, _int)
    real_open = opened(vfs.contents.xOpen)

    def open_file(of: Any, path: Any, file: Any, flags: int, out: Any) -> int:
        code = real_open(of, path, file, flags, out)
        if file.contents.pMethods and code == 0:
            methods = Methods.from_buffer_copy(file.contents.pMethods.contents)
            real = synced(methods.xSync)
            kept.append(synced(lambda file, flags: IOERR_FSYNC if fault.strikes() else real(file, flags)))
            methods.xSync = ctypes.cast(kept[-1], _pointer).value
            kept.append(methods)
            file.contents.pMethods = ctypes.pointer(methods)
        return code

    kept.append(opened(open_file))
    vfs.contents.xOpen = ctypes.cast(kept[-1], _pointer).value


async def live(settings: Settings, acknowledged: list[int]) -> None:
    """A short store session: create, write with and without fsync, read, close."""
    store = await open_store(settings)
    try:
        if not (await store.conversations.list()).items:
            await store.conversations.create(Conversation("a"))
        for number in range(4):
            seqs = await store.log.append("a", [Event("meta", body="x" * 3000)] * 2, sync=number % 2 == 0)
            acknowledged += seqs
            await store.log.read("a")
    finally:
        await store.close()


async def judge(settings: Settings, acknowledged: list[int]) -> None:
    """Check that after the fault the store is sound, has every acknowledged event exactly once, and accepts more."""
    store = await open_store(settings)
    try:
        assert (await store.health())["integrity"] == "ok"
        if acknowledged:
            stored = [event.seq for event in await store.log.read("a")]
            assert stored == list(range(1, len(stored) + 1)) and set(acknowledged) <= set(stored)
            assert (await store.log.append("a", [Event("meta")]))[0] == len(stored) + 1
    finally:
        await store.close()


def main(folder: Path, name: str, how: str, begin: str, stride: int) -> None:
    made = Settings(home=folder / "made")
    asyncio.run(live(made, []))
    fault = Fault()
    fault.ever = how == "ever"
    make: Callable[[], None] = (lambda: wrap_sync(fault)) if name == "fsync" else (lambda: wrap(name, fault))
    make()
    errors = 0
    number = 1 - stride
    while True:
        number += stride
        settings = Settings(home=folder / str(number))
        if begin == "made":
            shutil.copytree(made.home, settings.home)
        acknowledged: list[int] = []
        fault.at, fault.seen = number, 0
        try:
            asyncio.run(live(settings, acknowledged))
        except MootError as error:
            errors += 1
            assert error.message, error
        struck = fault.seen >= number
        fault.at = 0
        asyncio.run(judge(settings, acknowledged))
        if not struck:
            break
    sys.stdout.write(f"{number - 1} {errors}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
