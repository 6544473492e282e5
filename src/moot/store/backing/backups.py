"""Creating backups of a store, one process at a time."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from anyio import to_thread

from moot.errors import Busy, MootError, UsageError
from moot.store.backing.copies import backed_up, forget, remember
from moot.store.backing.writing import write
from moot.store.locks import FORGETTING, FileLock
from moot.store.writer import Writer
from moot.types.backup import Backup, Tell
from moot.types.ids import Clock

__all__ = ["Backups"]


def _silent(_words: str) -> None:
    return


class Backups:
    """`BackingUp` for one store."""

    def __init__(self, writer: Writer, path: Path, clock: Clock) -> None:
        self._writer = writer
        self._path = path
        self._clock = clock

    async def back_up(self, to: Path, *, secrets: bool = False, tell: Tell | None = None) -> Backup:
        made_at = self._clock.now() // 1000
        target = await to_thread.run_sync(_target, to, made_at)
        lock = FileLock(self._path.parent.parent / "state" / FORGETTING)
        if not await to_thread.run_sync(partial(lock.take, wait=False)):
            raise Busy("Another process is purging, redacting or backing up.", fix="Try again when it is done.")
        try:
            # registered before the file exists: an unknown backup would keep purged data
            await self._writer.write(partial(remember, path=str(target), kind="backup", made_at=made_at, size=0), sync=True)
            backup = await self._made(target, made_at, secrets, tell or _silent)
            await self._writer.write(partial(backed_up, backup), sync=True)
        finally:
            lock.release()
        return backup

    async def _made(self, target: Path, made_at: int, secrets: bool, tell: Tell) -> Backup:
        try:
            return await to_thread.run_sync(partial(write, self._path, target, made_at, secrets=secrets, tell=tell))
        except MootError:
            await self._writer.write(partial(forget, str(target)))
            raise


def _target(to: Path, made_at: int) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(made_at / 1000))
    to = to.expanduser().absolute()
    target = to / f"moot-{stamp}.backup" if to.is_dir() else to
    if target.exists():
        raise UsageError(f"{str(target)!r} already exists.", fix="Give another file, or a folder.")
    if not target.parent.is_dir():
        raise UsageError(f"The folder {str(target.parent)!r} does not exist.", fix="Create it first.")
    return target
