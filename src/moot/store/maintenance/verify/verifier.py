"""Verifying a store in batches, so that others can read and write in between."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from moot.store import lookup
from moot.store.content.blobs import BlobFiles
from moot.store.content.checkpoints import damaged
from moot.store.database.connection import Queries, checkpoints_path, sqlite
from moot.store.database.reader import Reader
from moot.store.database.schema import quick_check
from moot.store.lookup import all_conversations
from moot.store.maintenance.verify.conversations import ConversationJudge
from moot.store.maintenance.verify.records import Findings
from moot.types.verify import Receipt, Translators


def names_behind(queries: Queries, after: str, limit: int) -> list[str]:
    """Return the hashes of the next blobs after the hash `after`, in order."""
    return [name for (name,) in queries.execute("SELECT sha256 FROM blob WHERE sha256 > ? ORDER BY sha256 LIMIT ?", (after, limit))]


def hash_blobs(queries: Queries, files: BlobFiles, names: Sequence[str], findings: Findings) -> None:
    """Hash these blobs and report differences."""
    for name in names:
        try:
            row: Any = queries.execute("SELECT size, data FROM blob WHERE sha256 = ?", (name,)).fetchone()
        except sqlite.DatabaseError as error:
            findings.add("file", f"blob {name}", "a readable page", str(error))
            continue
        if row is None:
            findings.add("missing", f"blob {name}", "its bytes, because a message refers to it", "no row")
            continue
        size, data = row
        findings.receipt.blobs += 1
        findings.receipt.blob_bytes += size
        try:
            found = files.measure(name) if data is None else (len(data), hashlib.sha256(data).hexdigest())
        except OSError as error:
            findings.add("missing", f"blob {name}", f"the file {files.path(name)}", f"{error.strerror}")
            continue
        if found != (size, name):
            where = str(files.path(name)) if data is None else "the database"
            findings.add("blob", f"blob {name}", f"{size} bytes with this hash in {where}", f"{found[0]} bytes with hash {found[1]}")


_BLOBS = 32  # blobs hashed at a time; blobs in the database have at most 8 MiB in total


class StoreVerifier:
    """The SQLite implementation of `Verifier`."""

    def __init__(self, reader: Reader, files: BlobFiles, owner: str | None = None) -> None:
        self._reader = reader
        self._files = files
        self._owner = owner

    async def verify(self, translators: Translators, *, conversation: str | None = None) -> AsyncGenerator[Receipt, None]:
        receipt = Receipt()
        if conversation is not None:
            found = await self._reader.read(partial(lookup.conversation, id=conversation, owner=self._owner))
            judge = ConversationJudge(found.no, found.id, receipt, translators)
            while not await self._reader.read(judge.stretch):
                yield receipt
            names = sorted(judge.blobs)
            for begin in range(0, len(names), _BLOBS):
                await self._hash(names[begin : begin + _BLOBS], Findings(receipt, found.id))
                yield receipt
            yield receipt
            return
        for words in await self._reader.read(partial(quick_check, limit=20)):
            Findings(receipt).add("file", "the database", "an undamaged file", words)
        yield receipt
        async for no, id in all_conversations(self._reader):
            judge = ConversationJudge(no, id, receipt, translators)
            while not await self._reader.read(judge.stretch):
                yield receipt
            yield receipt
        after = ""
        while names := await self._reader.read(partial(names_behind, after=after, limit=_BLOBS)):
            await self._hash(names, Findings(receipt))
            after = names[-1]
            yield receipt
        for what in await self._reader.call(lambda: list(damaged(checkpoints_path(self._files.folder)))):
            Findings(receipt).add("blob", f"checkpoint content {what}", "content with this hash", "damaged content")
        yield receipt

    async def _hash(self, names: list[str], findings: Findings) -> None:
        await self._reader.read(partial(hash_blobs, files=self._files, names=names, findings=findings))
