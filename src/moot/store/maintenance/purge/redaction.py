"""Redacting the whole store: first blobs, whose names change, then each conversation, then the rest."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, LiteralString

from moot.errors import StoreCorrupt, StoreError
from moot.store.content.blobs import PACKED, BlobFiles
from moot.store.database.connection import Connection, Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log.rows import Row
from moot.store.log.segments import log_rows
from moot.store.maintenance.purge import redactor
from moot.store.maintenance.purge.blobs import are_blobs, named_in
from moot.store.maintenance.purge.conversations import answers_forgotten, with_children
from moot.store.maintenance.purge.events import Rewriting, Scan
from moot.store.maintenance.purge.jobs import EraseJob, note, save
from moot.store.maintenance.purge.redactor import Redactor
from moot.store.maintenance.purge.tables import BY_ITSELF, COUNTS, PLACES, Form, select, update
from moot.store.rows import plain, plain_or_damaged
from moot.store.search.knowledge import rebuild_words
from moot.types.maintenance import ErasureReceipt, ReportProgress, Secret

_OPEN = "SELECT id, status FROM run WHERE conversation = ? AND status IN ('queued', 'running', 'waiting', 'interrupted')"
_TRIES = 5
_COMPRESSED = "SELECT id, parts FROM message WHERE conversation = ? AND substr(parts, 1, 1) <> x'5b'"
_UNCOUNT: tuple[LiteralString, ...] = (
    "INSERT OR IGNORE INTO to_count SELECT message FROM answer WHERE conversation = ?",
    "DELETE FROM answer_tool WHERE message IN (SELECT message FROM answer WHERE conversation = ?)",
    "DELETE FROM answer WHERE conversation = ?",
)
"""Statements that have a conversation's answers counted again, because counts and sums contain the names of tools, agents and models."""
_NULLED = frozenset({("conversation", "key"), ("conversation", "client_id"), ("message", "client_id")})
"""Columns with unique names, which are cleared instead of redacted."""


@dataclass(slots=True)
class _Found:
    next_seq: int
    rows: dict[int, Row] = field(default_factory=dict[int, Row])
    """Tombstones that replace events, by seq."""
    counts: Counter[str] = field(default_factory=Counter[str])
    open: str = ""
    """Description of an unfinished run; empty = none."""
    damaged: list[str] = field(default_factory=list[str])
    """Descriptions of damaged data, which can't be searched."""


def scope(connection: Connection, conversation: str | None, owner: str | None) -> dict[int, str]:
    """Return the conversations to search: one and its sub-conversations, or all conversations."""
    if conversation is not None:
        return {no: one.id for no, one in with_children(connection, [conversation], owner).items()}
    found: Any = connection.execute("SELECT no, id FROM conversation ORDER BY no").fetchall()
    return dict(found)


class Redaction:
    """The execution of one redaction."""

    def __init__(self, writer: Writer, reader: Reader, files: BlobFiles, tell: ReportProgress) -> None:
        self._writer = writer
        self._reader = reader
        self._files = files
        self._tell = tell

    async def look(self, work: EraseJob) -> ErasureReceipt:
        """Return a receipt of what would change, without changing anything."""
        needles = Redactor(work.secret or Secret())
        renamed = await self._blobs(work, needles, set(), dry=True)
        work.receipt.blobs = len(renamed)
        for no, id in work.conversations.items():
            found = await self._reader.read(partial(_find, no, needles.with_names(renamed)))
            work.receipt.left += [_unsearched(id, what) for what in found.damaged]
            if found.counts:
                work.receipt.conversations.append(id)
                work.receipt.left += [found.open] if found.open else []
            work.count(found.counts)
        if work.whole:
            work.count(await self._reader.read(lambda connection: _tables(_changes(connection, needles, None, BY_ITSELF))))
        return work.receipt

    async def work(self, work: EraseJob) -> EraseJob:
        """Redact rows and blobs, and return the updated job."""
        needles, renamed, searched = Redactor(work.secret or Secret()), dict[str, str](), set[str]()
        waiting = dict(work.conversations)
        for _ in range(_TRIES):
            found = await self._blobs(work, needles, searched, dry=False)
            if found:
                work = await self._writer.write(partial(note, work, blobs=found), sync=True)
                renamed, waiting = renamed | found, dict(work.conversations)
            named = needles.with_names(renamed)
            for count, (no, id) in enumerate(waiting.items(), 1):
                self._tell(f"Redacted {count:,} of {len(waiting):,} conversations")
                work = await self._conversation(work, no, id, named)
            work = await self._writer.write(partial(_rest, work, named), sync=True)
            waiting = await self._reader.read(partial(_newer, work))
            work.conversations |= waiting
            if not waiting and searched.issuperset(await self._reader.read(partial(_names, work))):
                return work
        return await self._writer.write(partial(note, work, left="content that was still being added during the redaction"))

    async def _conversation(self, work: EraseJob, no: int, id: str, needles: Redactor) -> EraseJob:
        for _ in range(_TRIES):
            found = await self._reader.read(partial(_find, no, needles))
            for what in found.damaged:
                work = await self._writer.write(partial(note, work, left=_unsearched(id, what)))
            if not found.counts:
                return work
            if found.open:
                return await self._writer.write(partial(note, work, left=f"the conversation {id}: {found.open}"))
            try:
                done = await self._writer.write(partial(_change, work, no, id, needles, found), sync=True)
            except StoreCorrupt as error:  # unreadable data can't be searched
                return await self._writer.write(partial(note, work, left=f"the conversation {id}: {error.message}"))
            if done is not None:
                return done
        return await self._writer.write(partial(note, work, left=f"the conversation {id}: it kept changing during the redaction"))

    async def _blobs(self, work: EraseJob, needles: Redactor, searched: set[str], *, dry: bool) -> dict[str, str]:
        """Redact the blobs not searched yet, and map the old names of changed blobs to the new ones. If `dry` is set, store nothing."""
        renamed: dict[str, str] = {}
        names = [name for name in await self._reader.read(partial(_names, work)) if name not in searched]
        searched.update(names)
        for count, name in enumerate(names, 1):
            if not count % 64:
                self._tell(f"Searched {count:,} of {len(names):,} blobs")
            row: Any = await self._reader.row("SELECT data, size FROM blob WHERE sha256 = ?", (name,), tuple[Any, ...])
            if row is None:
                continue
            try:
                data = row[0] if row[0] is not None else await self._reader.call(partial(self._files.read_range, name, row[1], 0, None))
            except StoreError as error:
                note = f"a blob, which was not searched: {error.message}"
                work.receipt.left += [note] if note not in work.receipt.left else []
                continue
            changed = await self._reader.call(partial(needles.bytes, data))
            if changed == data:
                continue
            new = renamed[name] = hashlib.sha256(changed).hexdigest()
            searched.add(new)
            if not dry:
                await self._put(name, new, changed)
        return renamed

    async def _put(self, old: str, new: str, data: bytes) -> None:
        if len(data) > PACKED:
            await self._reader.call(partial(self._files.write, data))

        def work(transaction: Transaction) -> None:
            packed = data if len(data) <= PACKED else None
            transaction.execute(
                "INSERT INTO blob (sha256, size, media_type, created_at, data) SELECT ?, ?, media_type, ?, ? FROM blob WHERE sha256 = ?"
                " ON CONFLICT (sha256) DO NOTHING",
                (new, len(data), transaction.now_ms, packed, old),
            )
            transaction.execute(
                "INSERT INTO blob_owner (sha256, owner_id, media_type, created_at, uploaded_at)"
                " SELECT ?, owner_id, media_type, created_at, uploaded_at FROM blob_owner WHERE sha256 = ?"
                " ON CONFLICT (sha256, owner_id) DO NOTHING",
                (new, old),
            )

        await self._writer.write(work)


def _unsearched(conversation: str, what: str) -> str:
    return f"{what} of the conversation {conversation}: damaged, so not searched; to delete it, purge the conversation"


def _names(work: EraseJob, connection: Connection) -> list[str]:
    if work.whole:
        return [name for (name,) in connection.execute("SELECT sha256 FROM blob ORDER BY sha256")]
    named: set[str] = set()
    for no in work.conversations:
        named |= named_in(connection, no)
    return sorted(are_blobs(connection, named))


def _newer(work: EraseJob, connection: Connection) -> dict[int, str]:
    """Return conversations created after those that were searched; a fork may contain the same text."""
    if not work.whole:
        return {}
    last = max(work.conversations, default=0)
    found: Any = connection.execute("SELECT no, id FROM conversation WHERE no > ? ORDER BY no", (last,)).fetchall()
    return dict(found)


def _find(no: int, needles: Redactor, connection: Connection) -> _Found:
    head: Any = connection.execute("SELECT next_seq FROM log_head WHERE conversation = ?", (no,)).fetchone()
    found = _Found(0 if head is None else head[0])
    scan, lost = Scan(needles), 0
    for row in log_rows(connection, no, 0):
        scan.row(row)
        lost += not row.check
    scan.end()
    found.damaged += [f"{lost:,} {'event' if lost == 1 else 'events'} in a segment"] if lost else []
    if scan.hits:
        found.rows = {row.seq: row for row in log_rows(connection, no, 0) if row.seq in scan.hits}
        found.rows = {seq: scan.changed(row, 0) for seq, row in found.rows.items()}
        found.counts["event"] = len(found.rows)
    without = COUNTS | {"event", "segment", "blob", "idempotency", "forgetting", "search_term"}
    found.counts += _tables(_changes(connection, needles, no, without))
    found.damaged += [f"the message {id}" for id in _damaged_messages(connection, no)]
    if found.counts and (run := connection.execute(_OPEN, (no,)).fetchone()) is not None:
        found.open = f"its run {run[0]} is {run[1]}; stop it with `moot chat stop`, then redact again"
    return found


def _damaged_messages(connection: Connection, conversation: int) -> Iterator[str]:
    """Yield the ids of messages whose parts can't be decompressed."""
    for id, parts in connection.execute(_COMPRESSED, (conversation,)):
        try:
            plain(parts)
        except ValueError:
            yield id


def _change(work: EraseJob, no: int, id: str, needles: Redactor, found: _Found, transaction: Transaction) -> EraseJob | None:
    head = transaction.row("SELECT next_seq FROM log_head WHERE conversation = ?", (no,))
    if head is None or head[0] != found.next_seq or transaction.row(_OPEN, (no,)) is not None:
        return None
    work = deepcopy(work)
    work.count(Rewriting(transaction, no, needles).work(found.rows))
    work.count(_replaced(transaction, needles, no))
    for statement in _UNCOUNT:
        transaction.execute(statement, (no,))
    work.unindexed = True
    if id not in work.receipt.conversations:
        work.receipt.conversations.append(id)
    save(transaction, work)
    return work


def _rest(work: EraseJob, needles: Redactor, transaction: Transaction) -> EraseJob:
    work = deepcopy(work)
    work.count({"idempotency": answers_forgotten(transaction)})
    work.unindexed = True
    if work.whole:
        counts = _replaced(transaction, needles, None)
        if counts["knowledge_chunk"] or counts["knowledge_document"]:
            rebuild_words(transaction)
        work.count(counts)
    save(transaction, work)
    return work


def _replaced(transaction: Transaction, needles: Redactor, no: int | None) -> Counter[str]:
    counts = Counter[str]()
    for table, rowid, values in list(_changes(transaction, needles, no, BY_ITSELF)):
        for column, value in values.items():
            transaction.execute(update(table, column), (value, rowid))
        counts[table] += 1
    return counts


def _tables(changes: Iterable[tuple[str, int, Mapping[LiteralString, object]]]) -> Counter[str]:
    return Counter(table for table, _, _ in changes)


def _changes(
    queries: Queries, needles: Redactor, no: int | None, without: frozenset[str]
) -> Iterator[tuple[LiteralString, int, dict[LiteralString, object]]]:
    for table, place in PLACES.items():
        if table in without or not place.words or (no is None) == bool(place.of):
            continue
        columns: LiteralString = ", ".join(place.words)
        values = () if no is None else (no,)
        for row in queries.execute(select(f"rowid, {columns}", table, place.of or "true"), values).fetchall():
            changed: dict[LiteralString, object] = {}
            for (column, form), stored in zip(place.words.items(), row[1:], strict=True):
                value = plain_or_damaged(stored) if stored is not None and form in ("json", "parts") else stored
                new = _without(needles, form, value)
                if new != value:
                    changed[column] = None if (table, column) in _NULLED else new
            if changed:
                yield table, row[0], changed


def _without(needles: Redactor, form: Form, value: Any) -> object:
    if value is None:
        return None
    match form:
        case "text":
            return needles.text(value)
        case "json":
            return needles.json(value)
        case "parts":
            return needles.json(value, structured=True)
        case "page":
            return redactor.without(needles, value)
        case "bytes":
            return needles.bytes(value)
