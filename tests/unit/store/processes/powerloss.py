"""Write through a wrapped file system that records every write, truncation and fsync; then simulate power losses at many instants.

    python powerloss.py FOLDER LOSSES

At a loss, each write since a file's last fsync is kept, lost or torn at a sector independently, so in any order. The writes are those
of SQLite's VFS; everything acknowledged as fsynced must exist afterwards, and the store must be sound.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

from anomalies import File, Methods, kept, vfs

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.event import Event

SECTOR = 512
Note = tuple[str, str, int, bytes]
"""The operation (write, truncate, sync, acknowledged), its file, its position, and the bytes."""

_int, _long, _pointer = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_WRITE = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _long)
_CUT = ctypes.CFUNCTYPE(_int, _pointer, _long)
_SYNC = ctypes.CFUNCTYPE(_int, _pointer, _int)
_OPEN = ctypes.CFUNCTYPE(_int, _pointer, _pointer, ctypes.POINTER(File), _int, _pointer)


def watch(notes: list[Note]) -> None:
    """Record every write of SQLite from here on."""
    real_open = _OPEN(vfs.contents.xOpen)

    def open_file(of: Any, path: int | None, file: Any, flags: int, out: Any) -> int:
        code = real_open(of, path, file, flags, out)
        if code == 0 and path is not None and file.contents.pMethods:
            name = os.path.basename(ctypes.string_at(path)).decode()  # noqa: PTH119
            methods = Methods.from_buffer_copy(file.contents.pMethods.contents)
            write, cut, sync = _WRITE(methods.xWrite), _CUT(methods.xTruncate), _SYNC(methods.xSync)

            def note_write(file: Any, data: Any, size: int, at: int) -> int:
                notes.append(("write", name, at, ctypes.string_at(data, size)))
                return write(file, data, size, at)

            def note_cut(file: Any, size: int) -> int:
                notes.append(("cut", name, size, b""))
                return cut(file, size)

            def note_sync(file: Any, flags: int) -> int:
                notes.append(("sync", name, 0, b""))
                return sync(file, flags)

            replaced = (_WRITE(note_write), _CUT(note_cut), _SYNC(note_sync))
            methods.xWrite, methods.xTruncate, methods.xSync = (ctypes.cast(one, _pointer).value for one in replaced)
            kept.extend((methods, *replaced))
            file.contents.pMethods = ctypes.pointer(methods)
        return code

    kept.append(_OPEN(open_file))
    vfs.contents.xOpen = ctypes.cast(kept[-1], _pointer).value


def change(image: bytearray, what: str, at: int, data: bytes) -> None:
    if what == "cut":
        del image[at:]
    else:
        image.extend(bytes(max(0, at + len(data) - len(image))))
        image[at : at + len(data)] = data


def lose(before: dict[str, bytes], notes: list[Note], chance: random.Random) -> dict[str, bytes]:
    """Return possible files on the disk after a power loss following these operations."""
    images = {name: bytearray(data) for name, data in before.items()}
    loose: dict[str, list[Note]] = {}
    for note in notes:
        what, name, at, data = note
        if what in ("write", "cut"):
            loose.setdefault(name, []).append(note)
        elif what == "sync":
            for done, _, where, piece in loose.pop(name, []):
                change(images.setdefault(name, bytearray()), done, where, piece)
    for name, waiting in loose.items():
        for what, _, at, data in waiting:
            fate = chance.choice(("kept", "lost", "torn"))
            if fate != "lost":
                size = len(data) if fate == "kept" or what == "cut" else chance.randrange(0, len(data) + 1, SECTOR) if data else 0
                change(images.setdefault(name, bytearray()), what, at, data[:size])
    return {name: bytes(image) for name, image in images.items()}


async def write(settings: Settings, notes: list[Note]) -> None:
    store = await open_store(settings)
    for number in range(40):
        sync = number % 3 == 0
        seqs = await store.log.append("a", [Event("meta", body=f"{number} " + "x" * 3000)] * 3, sync=sync)
        if sync:
            notes.append(("acknowledged", "", seqs[-1], b""))
    await store.close()


async def judge(settings: Settings, acknowledged: int, right: list[Any]) -> None:
    store = await open_store(settings)
    try:
        assert (await store.health())["integrity"] == "ok"
        bodies = [event.body for event in await store.log.read("a", limit=1000)]
        assert bodies == right[: len(bodies)]
        assert len(bodies) >= acknowledged, f"{acknowledged} were fsynced, {len(bodies)} are there"
        await store.log.append("a", [Event("meta")])
    finally:
        await store.close()


async def begin(settings: Settings) -> None:
    store = await open_store(settings)
    await store.conversations.create(Conversation("a"))
    await store.close()


async def contents(settings: Settings) -> list[Any]:
    store = await open_store(settings)
    found = [event.body for event in await store.log.read("a", limit=1000)]
    await store.close()
    return found


def main(folder: Path, losses: int) -> None:
    settings = Settings(home=folder / "made")
    asyncio.run(begin(settings))
    before = {"moot.db": settings.database.read_bytes()}
    notes: list[Note] = []
    real = vfs.contents.xOpen
    watch(notes)
    asyncio.run(write(settings, notes))
    vfs.contents.xOpen = real
    right = asyncio.run(contents(settings))
    for seed in range(losses):
        chance = random.Random(seed)
        until = chance.randrange(len(notes))
        lost = Settings(home=folder / str(seed))
        lost.database.parent.mkdir(parents=True)
        for name, data in lose(before, notes[:until], chance).items():
            (lost.database.parent / name).write_bytes(data)
        acknowledged = max((at for what, _, at, _ in notes[:until] if what == "acknowledged"), default=0)
        asyncio.run(judge(lost, acknowledged, right))
        shutil.rmtree(lost.home)
    sys.stdout.write(f"{losses} {len(notes)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
