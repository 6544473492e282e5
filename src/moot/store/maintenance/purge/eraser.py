"""Running purges and redactions from the first step to the last."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import anyio
from anyio import to_thread

from moot.errors import Busy, HostError, StoreFull, UsageError
from moot.store import lookup
from moot.store.content.blobs import BlobFiles
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log.events import Events
from moot.store.maintenance.backup.archive import remember
from moot.store.maintenance.backup.creation import BackupCreator, alone, silent
from moot.store.maintenance.purge import blobs, jobs, redaction
from moot.store.maintenance.purge import conversations as purging
from moot.store.maintenance.purge.checkpoints import forget_checkpoints, redact_checkpoints
from moot.store.maintenance.purge.conversations import expired, prompts
from moot.store.maintenance.purge.files import forget_typed, redact_files
from moot.store.maintenance.purge.jobs import EraseJob
from moot.store.maintenance.purge.mirrors import delete_mirrored, lock_mirrors, mirrored_sources
from moot.store.maintenance.purge.originals import original_files, originals
from moot.store.maintenance.purge.redactor import Redactor
from moot.store.maintenance.purge.scanner import StoreScanner
from moot.store.maintenance.vacuum import empty_log, rewrite_database
from moot.store.search.indexer import merge_some
from moot.store.stats.reports import AnswerStats
from moot.store.tree.conversations import ConversationTree
from moot.types.crash import point
from moot.types.ids import Clock
from moot.types.limits import Retention
from moot.types.maintenance import NOT_SEARCHED, ErasureReceipt, Expiry, FileOutcome, ReportProgress, Secret, StoredCopy

Reach: TypeAlias = Callable[[EraseJob, Writer, Reader, Path, ReportProgress], Awaitable[Sequence[FileOutcome]]]
"""Callback that updates copies of the store. It is passed in because it opens stores itself."""

_LOOK_AGAIN = 0.5
_MAX_WAIT = 100.0  # seconds to wait for a blob that a run may be about to reference


class Eraser:
    """The runner of purges and redactions. Everything that must survive a crash is stored with each step."""

    def __init__(self, writer: Writer, reader: Reader, files: BlobFiles, path: Path, clock: Clock, turn: anyio.Lock, reach: Reach) -> None:
        self._writer = writer
        self._reader = reader
        self._files = files
        self._path = path
        self._turn = turn
        """Held while this process purges, redacts or backs up."""
        self._reach = reach
        self.reaches = True
        """True if copies of the store in other places are updated too."""
        self.backups = BackupCreator(writer, path, clock, turn)
        self.scanner = StoreScanner(writer, reader, files, path)
        self.patience = 20.0
        """Seconds to wait at the end for connections that still read an old state."""
        self._clock = clock
        self._state = path.parent.parent / "state"

    async def purge(
        self, conversations: Sequence[str], *, dry_run: bool = False, temporary: bool = False, tell: ReportProgress | None = None
    ) -> ErasureReceipt:
        found = await self._reader.read(lambda connection: purging.with_children(connection, conversations, None))
        await self._reader.read(lambda connection: purging.check_idle(connection, found))
        # no copy from before this time can contain the data; imported conversations have other clocks' timestamps
        since = min((0 if one.origin else one.created_at for one in found.values()), default=0)
        work = EraseJob(ErasureReceipt("purge"), {no: one.id for no, one in found.items()}, since=since)
        if dry_run:
            for no, id in work.conversations.items():
                work.count(await self._reader.read(partial(purging.counted, conversation=no)))
                work.receipt.conversations.append(id)
            forget = partial(forget_checkpoints, self._path, list(work.conversations.values()), dry_run=True)
            sources = await self._reader.read(lambda connection: mirrored_sources(connection, work.conversations))
            mirrored = partial(delete_mirrored, sources, self._path.parent, dry_run=True)
            copies = await to_thread.run_sync(mirrored) if self.reaches else []
            work.receipt.files += [*await to_thread.run_sync(forget), *copies, *await self._originals(work)]
            return work.receipt
        if not work.conversations:
            raise UsageError("Nothing to purge.", fix="Use `moot purge ID` or `moot purge --deleted`.")
        if any(one.expires_at is not None for one in found.values()):  # their usage stays in the sums
            await AnswerStats(self._writer, self._reader).count()
        async with alone(self._state, self._turn), self._mirrors(work):
            expiries = {one.id: one.expires_at for one in found.values() if one.id in conversations} if temporary else {}
            work = await self._writer.write(partial(_hidden, work, expiries=expiries), sync=True)
            return await self._work(work, tell or silent) if work.conversations else work.receipt

    async def redact(
        self, secret: Secret, *, conversation: str | None = None, dry_run: bool = False, tell: ReportProgress | None = None
    ) -> ErasureReceipt:
        Redactor(secret)
        say = tell or silent
        work = EraseJob(ErasureReceipt("redact", unseen=list(NOT_SEARCHED)), secret=secret, whole=conversation is None)
        work.conversations = await self._reader.read(lambda connection: redaction.scope(connection, conversation, None))
        if dry_run:
            receipt = await redaction.Redaction(self._writer, self._reader, self._files, say).look(work)
            scope = None if work.whole else list(work.conversations.values())
            receipt.files += await to_thread.run_sync(partial(redact_checkpoints, self._path, Redactor(secret), scope, dry_run=True))
            return receipt
        async with alone(self._state, self._turn):
            work = await self._writer.write(lambda transaction: jobs.start(transaction, work), sync=True)
            return await self._work(work, say)

    async def expire(
        self, rules: Retention, *, dry_run: bool = False, tell: ReportProgress | None = None
    ) -> tuple[list[Expiry], ErasureReceipt | None]:
        now = self._clock.now() // 1000
        found = await self._reader.read(lambda connection: expired(connection, rules, now))
        if dry_run:
            return found, None
        deleting = ConversationTree(self._writer, self._reader, Events())
        for one in found:
            if one.what == "delete":
                await deleting.delete(one.conversation.id)
        purged = [one.conversation.id for one in found if one.what == "purge"]
        return found, await self.purge(purged, temporary=True, tell=tell) if purged else None

    async def finish(self) -> list[ErasureReceipt]:
        unfinished = {no for no, *_ in await self._reader.read(jobs.open_jobs)}
        if not unfinished:
            return []
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(alone(self._state, self._turn))
            except Busy:  # another process is finishing them
                return []
            # another task of this process may have finished some while this one waited
            found = {receipt.no: receipt for receipt in await self.receipts() if receipt.no in unfinished}
            for no, work, receipt in await self._reader.read(jobs.open_jobs):
                if work is None:
                    found[no] = await self._cleaned(receipt, True)
                    continue
                try:
                    async with self._mirrors(work):
                        found[no] = await self._work(work, silent)
                except (Busy, HostError) as error:  # such as a machine that is being synchronized; the job stays unfinished
                    receipt.left.append(error.advice())
                    found[no] = receipt
            return [found[no] for no in sorted(found)]

    async def register_files(self, files: Sequence[StoredCopy]) -> None:
        def work(transaction: Transaction) -> None:
            for file in files:
                remember(transaction, file.path, file.kind, file.made_at or transaction.now_ms, file.size, file.conversation)

        if files:
            await self._writer.write(work)

    async def receipts(self, *, limit: int = 50) -> list[ErasureReceipt]:
        return await self._reader.read(partial(jobs.receipts, limit=limit))

    async def _work(self, work: EraseJob, tell: ReportProgress) -> ErasureReceipt:
        point("forget.begun")
        if work.receipt.kind == "purge":
            work = await self._purged(work, tell)
        else:
            work = await redaction.Redaction(self._writer, self._reader, self._files, tell).work(work)
            needles = Redactor(work.secret or Secret())
            work = await self._files_step(work, partial(redact_files, self._state, needles))
            scope = None if work.whole else list(work.conversations.values())
            work = await self._files_step(work, partial(redact_checkpoints, self._path, needles, scope))
        point("forget.rows")
        work = await self._swept(work, tell)
        point("forget.swept")
        if self.reaches:
            fates = await self._reach(work, self._writer, self._reader, self._path, tell)
            work = await self._writer.write(partial(jobs.note, work, files=fates), sync=True)
        point("forget.reached")
        return await self._cleaned(work.receipt, work.unindexed, tell)

    async def _purged(self, work: EraseJob, tell: ReportProgress) -> EraseJob:
        texts = await self._reader.read(lambda connection: prompts(connection, work.conversations))
        work = await self._files_step(work, partial(forget_typed, self._state, list(work.conversations.values()), texts))
        work = await self._files_step(work, partial(forget_checkpoints, self._path, list(work.conversations.values())))
        if self.reaches and (found := await self._originals(work)):
            work = await self._writer.write(partial(jobs.note, work, files=found))
        if self.reaches:
            sources = await self._reader.read(lambda connection: mirrored_sources(connection, work.conversations))
            work = await self._files_step(work, partial(delete_mirrored, sources, self._path.parent))
        for count, no in enumerate(list(work.conversations), 1):
            tell(f"Purged {count:,} conversations")
            work = await self._writer.write(partial(purging.purge, work, no), sync=True)
            point("forget.one")
        return work

    @asynccontextmanager
    async def _mirrors(self, work: EraseJob) -> AsyncGenerator[None]:
        """Lock the copies of other machines' files that a purge may delete from. Raise Busy if one of them is being synchronized."""
        if not self.reaches or work.receipt.kind != "purge":
            yield
            return
        sources = await self._reader.read(lambda connection: mirrored_sources(connection, work.conversations))
        with await to_thread.run_sync(lock_mirrors, [one.host for one in sources], self._path.parent):
            yield

    async def _originals(self, work: EraseJob) -> Sequence[FileOutcome]:
        found = await self._reader.read(lambda connection: originals(connection, work.conversations))
        return await to_thread.run_sync(original_files, found, Path.home(), os.environ)

    async def _files_step(self, work: EraseJob, step: Callable[[], Sequence[FileOutcome]]) -> EraseJob:
        fates = await to_thread.run_sync(step)
        return await self._writer.write(partial(jobs.note, work, files=fates)) if fates else work

    async def _swept(self, work: EraseJob, tell: ReportProgress) -> EraseJob:
        waiting = 0
        with anyio.move_on_after(_MAX_WAIT):
            while work.blobs:
                tell(f"Checking references to {len(work.blobs):,} blobs")
                marked = await self._reader.read(partial(blobs.mark, work))
                work, waiting = await self._writer.write(partial(blobs.sweep, work, marked), sync=True)
                if not waiting:
                    break
                tell(f"Waiting for {waiting:,} blobs that an active run may be about to use")
                await anyio.sleep(_LOOK_AGAIN)
        point("forget.unnamed")
        if waiting:
            work.receipt.left.append(f"{waiting:,} blobs that an active run keeps using")
        return await self._writer.write(partial(blobs.unlink, work, self._files), sync=True) if work.blobs else work

    async def _cleaned(self, receipt: ErasureReceipt, unindexed: bool, tell: ReportProgress = silent) -> ErasureReceipt:
        work = EraseJob(receipt)
        await self._writer.write(lambda transaction: jobs.save(transaction, work, cleaned=True), sync=True)
        first = True
        while unindexed and await self._writer.write(partial(merge_some, first)):
            first = False
            tell("Cleaning the search index")
        try:
            sizes = await rewrite_database(self._writer, self._reader, self._path, tell, unindexed=unindexed)
        except StoreFull as error:
            receipt.left.append(error.message)
            return receipt
        receipt.bytes_before, receipt.bytes_after = sizes
        point("forget.scrubbed")
        if not await empty_log(self._writer, self._path, tell, self.patience):
            receipt.left.append("the write-ahead log, because another program is reading it; it is emptied once that program ends")
            return receipt
        await self._writer.write(lambda transaction: jobs.save(transaction, work, done=True), sync=True)
        return receipt


def _hidden(work: EraseJob, transaction: Transaction, *, expiries: Mapping[str, int | None] = MappingProxyType({})) -> EraseJob:
    """Store the job and mark its conversations and their sub-conversations as deleted, so that no one continues them.

    `expiries` contains the times at which temporary conversations expire. Those that were kept or continued meanwhile are left out.
    """
    roots = [
        id
        for id in expiries or work.conversations.values()
        if expiries.get(id) is None or lookup.conversation(transaction, id).expires_at == expiries[id]
    ]
    found = purging.with_children(transaction, roots, None)
    work.conversations = {no: one.id for no, one in found.items()}
    purging.check_idle(transaction, work.conversations)
    for no in work.conversations:
        transaction.execute("UPDATE conversation SET deleted_at = coalesce(deleted_at, ?) WHERE no = ?", (transaction.now_ms, no))
    return jobs.start(transaction, work) if work.conversations else work
