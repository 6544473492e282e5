"""The private folder for a conversation's sandboxed commands, which contains their `/tmp` and home."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from anyio import to_thread

_PREFIX = "moot-sandbox-"


class Scratch:
    """A private folder that is deleted when its conversation is removed from memory.

    A lock on the folder shows that its process is alive. Deleting a folder also deletes the folders of killed processes.
    """

    def __init__(self) -> None:
        while True:
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._file = _lock(self.folder)
            if self._file >= 0 and self.folder.is_dir():
                return
            self._close()  # another process considered it abandoned, because it was not locked yet

    async def aclose(self) -> None:
        await to_thread.run_sync(self._delete)

    def _delete(self) -> None:
        _remove(self.folder)
        self._close()
        delete_abandoned()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def delete_abandoned() -> None:
    """Delete this user's private folders that no live process has locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if (file := _lock(folder)) < 0:
            continue
        try:
            if os.fstat(file).st_uid == os.getuid():
                _remove(folder)
        finally:
            os.close(file)


def _lock(folder: Path) -> int:
    """Return a descriptor that locks the folder, or -1 if it is gone or locked."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return -1
    return file


def _remove(folder: Path) -> None:
    for above, names, _ in os.walk(folder):  # some programs, such as Go, make their folders read-only
        for path in (Path(above, name) for name in names if not Path(above, name).is_symlink()):
            with suppress(OSError):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
