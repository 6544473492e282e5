"""Copies of the store elsewhere: pre-upgrade copies are deleted, and backups are rewritten without the deleted data."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from anyio import to_thread

from moot.config.settings import Settings
from moot.errors import MootError, NotFound
from moot.store.database.reader import Reader
from moot.store.database.writer import Writer
from moot.store.maintenance.backup.archive import backed_up, known
from moot.store.maintenance.backup.creation import write
from moot.store.maintenance.backup.restoration import unpack
from moot.store.maintenance.purge.eraser import Eraser
from moot.store.maintenance.purge.jobs import EraseJob
from moot.store.sqlite import SqliteStore, open_store
from moot.types.maintenance import Backup, FileOutcome, ReportProgress, Secret, StoredCopy


async def erase_in_copies(work: EraseJob, writer: Writer, reader: Reader, database: Path, tell: ReportProgress) -> list[FileOutcome]:
    """Erase the data in all registered copies of the store and return the outcomes. Backups stay usable at all times."""
    fates = await to_thread.run_sync(_before_upgrades, database)
    for copy in await reader.read(known):
        if copy.kind == "export":
            fates += await to_thread.run_sync(_export, work, copy)
        elif copy.made_at >= work.since:
            tell(f"Rewriting {copy.path}")
            fate, backup = await _rewrite(work, copy, tell)
            fates.append(fate)
            if backup is not None:
                await writer.write(partial(backed_up, backup))
    return fates


def _export(work: EraseJob, copy: StoredCopy) -> list[FileOutcome]:
    """Report an export, which is never changed because it belongs to the user."""
    of_it = {*work.conversations.values(), *work.receipt.conversations}
    if not (work.whole or copy.conversation in of_it) or not Path(copy.path).exists():
        return []
    return [FileOutcome(copy.path, "left", "an export; delete it yourself")]


def _before_upgrades(database: Path) -> list[FileOutcome]:
    fates: list[FileOutcome] = []
    for copy in sorted((database.parent / "backups").glob("*")):
        copy.unlink(missing_ok=True)
        fates.append(FileOutcome(str(copy), "deleted", "a copy from before an upgrade"))
    return fates


async def _rewrite(work: EraseJob, copy: StoredCopy, tell: ReportProgress) -> tuple[FileOutcome, Backup | None]:
    """Unpack the backup as a temporary home, repeat the deletion there, and pack it again."""
    path = Path(copy.path)
    made = datetime.fromtimestamp(copy.made_at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if not await to_thread.run_sync(path.exists):
        return FileOutcome(copy.path, "not reached", f"the backup of {made} is missing"), None
    place = path.with_name(f".{path.name}.rewriting")
    try:
        await to_thread.run_sync(partial(shutil.rmtree, place, ignore_errors=True))  # left over from a killed process
        await to_thread.run_sync(partial(place.mkdir, mode=0o700))
        before = await to_thread.run_sync(unpack, path, place)
        await _forget(work, place, tell)
        database = place / "data" / "moot.db"
        backup = await to_thread.run_sync(partial(write, database, path, before.made_at, secrets=before.has_secrets, tell=tell))
    except (MootError, OSError) as error:
        return FileOutcome(copy.path, "left", f"the backup of {made} could not be rewritten: {error}"), None
    finally:
        await to_thread.run_sync(partial(shutil.rmtree, place, ignore_errors=True))
    return FileOutcome(copy.path, "rewritten", f"the backup of {made}"), backup


async def _forget(work: EraseJob, home: Path, tell: ReportProgress) -> None:
    async with await open_store(Settings(home)) as store:
        erasure = store.erasure
        assert isinstance(erasure, Eraser)
        erasure.reaches = False  # this store knows all backups that the temporary home knows
        await erasure.finish()
        if work.secret is not None and work.whole:
            await erasure.redact(work.secret, tell=tell)
            return
        ids = work.receipt.conversations if work.secret is None else list(work.conversations.values())
        there = [id for id in ids if await _is_there(store, id)]
        if work.secret is None and there:
            await erasure.purge(there, tell=tell)
        for id in there if work.secret is not None else ():
            await erasure.redact(work.secret or Secret(), conversation=id, tell=tell)


async def _is_there(store: SqliteStore, id: str) -> bool:
    try:
        return (await store.conversations.get(id)).id == id
    except NotFound:
        return False
