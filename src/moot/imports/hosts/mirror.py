"""The mirror: a folder with copies of the files of another machine, and the state of the originals when they were copied.

It is kept, so that the next synchronization fetches only what has changed. A file is replaced or extended only when its new content has
arrived completely. Files of purged conversations are in a list, so that they are not fetched again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from moot.config.home import write_atomically
from moot.errors import HostError
from moot.imports.hosts.connection import FileState
from moot.imports.hosts.places import database_of
from moot.store.database.locks import sync_folder
from moot.store.maintenance.purge.mirrors import is_purged, purged_paths, take_mirror

_COPY = 1 << 20


@dataclass(slots=True)
class Mirror:
    """The mirror of one machine. All methods block."""

    folder: Path
    states: dict[str, FileState] = field(default_factory=dict[str, FileState])
    """Path below the home → state of the original."""
    purged: set[str] = field(default_factory=set[str])
    """Files and folders that are not fetched again, because their conversations were purged."""
    _changed: set[Path] = field(default_factory=set[Path])
    """Folders in which copies were replaced since the states were saved."""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def locked(self) -> ExitStack:
        """Create the folder and take its lock, which the returned context releases. Raise HostError if another process has it."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        taken = take_mirror(self.folder)
        if taken is None:
            raise HostError(
                "Another process is synchronizing this machine or purging its conversations.",
                fix="Try again when that process has finished.",
            )
        return taken

    def load(self) -> None:
        """Read the states. If they can't be read, all files are fetched again. Raise HostError if the list of purged files is damaged."""
        self.purged = purged_paths(self.folder)
        with suppress(OSError, ValueError, AttributeError, TypeError, IndexError):
            stored: Any = json.loads((self.folder / "files.json").read_text(encoding="utf-8"))
            states = {str(path): FileState(int(one[0]), str(one[1]), str(one[2])) for path, one in stored.items()}
            self.states = {path: state for path, state in states.items() if not is_purged(path, self.purged)}

    def save(self) -> None:
        """Store the states. Before that, all copies are made durable, so that no state describes a copy that a power loss destroyed."""
        for folder in self._changed:
            sync_folder(folder)
        self._changed.clear()
        write_atomically(self.folder / "files.json", json.dumps(self.states, separators=(",", ":")).encode())

    def _path(self, name: str) -> Path:
        return self.home / name

    def size(self, name: str) -> int:
        """Return the size of a copy, or -1 if there is none."""
        try:
            return self._path(name).stat(follow_symlinks=False).st_size
        except OSError:
            return -1

    def is_current(self, name: str, state: FileState) -> bool:
        """Return whether the copy has this state."""
        return self.states.get(name) == state and self.size(name) == state.size

    def ends(self, name: str, size: int) -> tuple[bytes, bytes]:
        """Return the first and the last `size` bytes of a copy."""
        with self._path(name).open("rb") as file:
            first = file.read(size)
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return first, file.read(size)

    def replace(self, name: str, state: FileState, part: Path, modified: int) -> None:
        """Replace the copy with the received file. `modified` is its modification time in ns. Raise OSError if that is not possible."""
        target = self._path(name)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.utime(part, ns=(modified, modified))
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
        self._changed.update((target.parent, *(above for above in target.parent.parents if above.is_relative_to(self.folder))))
        self.states[name] = state

    def extend(self, name: str, state: FileState, part: BinaryIO, modified: int) -> None:
        """Append the rest of a received file to the copy."""
        with self._path(name).open("ab") as file:
            shutil.copyfileobj(part, file, _COPY)
            file.flush()
            os.fsync(file.fileno())
        os.utime(self._path(name), ns=(modified, modified))
        self.states[name] = state

    def remove(self, name: str) -> None:
        """Delete a copy, if there is one, and folders that it leaves empty."""
        path = self._path(name)
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
        self.states.pop(name, None)
        for folder in path.parents:
            if folder == self.home or not folder.is_dir() or next(folder.iterdir(), None) is not None:
                break
            folder.rmdir()

    def keep_only(self, names: Collection[str]) -> int:
        """Delete the copies of files that no longer exist on the machine, and return their number.

        The log of a database is kept until the database is fetched again, because a copy may be damaged without it.
        """
        gone = [name for name in self.states if name not in names and database_of(name) not in names]
        for name in gone:
            self.remove(name)
        return len(gone)

    def total(self) -> int:
        """Return the size of all copies in bytes."""
        return sum(max(0, self.size(name)) for name in self.states)
