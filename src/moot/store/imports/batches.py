"""The transaction that adds a batch of entries to a conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString, NamedTuple

from moot.convert.imports import apply_growth, digest_of, growth_body, is_continuation, usage_of_steps
from moot.errors import StoreError
from moot.store import lookup
from moot.store.database.connection import Queries, select_in
from moot.store.database.transaction import Entry, Transaction, insert_many, quick
from moot.store.imports.copies import identify, release_message
from moot.store.log import segments
from moot.store.rows import compressed, message_of, parse_stored, parse_stored_object, parts_of
from moot.store.search.semantic import forget_vectors
from moot.types.canonical import JsonObject, dumps
from moot.types.ids import new_id
from moot.types.imports import ImportCounts, ImportTarget, IncomingConversation, IncomingEntry
from moot.types.message import Message, Role
from moot.types.usage import NO_USAGE, Usage


class Place(NamedTuple):
    """A conversation imported from a source."""

    no: int
    id: str
    version: int
    deleted: bool
    is_alias: bool = False
    """True if the source is a copy of a session from another machine, to which the conversation belongs."""


class Variant(NamedTuple):
    """One version of an entry. An entry that changed in the source has several."""

    digest: bytes
    length: int
    message: str | None


_PLACE = (
    "SELECT c.no, c.id, i.version, c.deleted_at IS NOT NULL FROM import_conversation AS i"
    " JOIN conversation AS c ON c.no = i.conversation WHERE i.owner_id = ? AND i.format = ? AND i.source_id = ?"
)
_PLACE_OF_ALIAS = (
    "SELECT c.no, c.id, i.version, c.deleted_at IS NOT NULL FROM import_alias AS a"
    " JOIN import_conversation AS i ON i.conversation = a.conversation JOIN conversation AS c ON c.no = a.conversation"
    " WHERE a.owner_id = ? AND a.format = ? AND a.source_id = ?"
)


def place_of(queries: Queries, owner: str, format: str, source_id: str) -> Place | None:
    """Return the conversation imported from this source, or None if there is none."""
    for sql in (_PLACE, _PLACE_OF_ALIAS):
        row: Any = queries.execute(sql, (owner, format, source_id)).fetchone()
        if row is not None:
            return Place(row[0], row[1], row[2], bool(row[3]), sql is _PLACE_OF_ALIAS)
    return None


def made_by(queries: Queries, owner: str, arriving: IncomingConversation) -> str | None:
    """Return the id of the conversation whose run created the arriving session or its parent session, or None."""
    if not arriving.resumable:
        return None
    row: Any = queries.execute(
        "SELECT c.id FROM run AS r JOIN conversation AS c ON c.no = r.conversation"
        " WHERE r.agent_session_id IN (?1, ?2) AND r.owner_id = ?3 LIMIT 1",
        (arriving.source_id, arriving.parent or arriving.source_id, owner),
    ).fetchone()
    return None if row is None else row[0]


def note(transaction: Transaction, conversation: int, origin: JsonObject | None, owner: str) -> None:
    """Register a conversation as imported from the source that its origin names."""
    found = origin or {}
    if not found.get("format") or not found.get("source_id"):
        raise StoreError("The origin of an import must have a format and a source id.")
    transaction.execute(
        "INSERT OR REPLACE INTO import_conversation (owner_id, format, source_id, conversation, version) VALUES (?, ?, ?, ?, ?)",
        (owner, str(found["format"]), str(found["source_id"]), conversation, found.get("version") or 0),
    )


def variants(queries: Queries, conversation: int, keys: Iterable[bytes]) -> dict[bytes, list[Variant]]:
    """Return the stored versions of the imported messages with these keys, oldest first."""
    found: dict[bytes, list[Variant]] = {}
    sql = "SELECT key, digest, length, message FROM import_message WHERE conversation = ? AND key IN"
    for key, digest, length, message in select_in(queries, sql, dict.fromkeys(keys), conversation):
        found.setdefault(key, []).append(Variant(digest, length, message))
    for versions in found.values():
        versions.sort(key=lambda one: one.message or "")  # ids grow with time
    return found


def fresh(
    queries: Queries, conversation: int, arrivals: Sequence[IncomingEntry], rewritten: Iterable[bytes], *, compare: bool
) -> list[IncomingEntry]:
    """Return the entries that are not yet stored in identical form, and the messages below changed messages.

    `rewritten` contains the keys of messages that have changed in the source. With `compare`, also return all known messages.
    """
    known = variants(queries, conversation, (arrival.key for arrival in arrivals))
    changed, found = set(rewritten), list[IncomingEntry]()
    for arrival in arrivals:
        earlier = known.get(arrival.key, [])
        is_new = all(one.digest != arrival.digest for one in earlier)
        is_below = arrival.role is not None and arrival.parent in changed
        if is_below or (is_new and earlier):
            changed.add(arrival.key)
        if is_new or is_below or ((compare or arrival.compare) and arrival.key[:1] != b"\0"):
            found.append(arrival)
    return found


_MESSAGE: LiteralString = (
    "INSERT INTO message (id, conversation, parent_id, role, parts, metadata, status, first_seq, last_seq, folded_through, created_at)"
    " VALUES "
)
_MESSAGES = {count: _MESSAGE + ", ".join(["(?, ?, ?, ?, ?, ?, 'finished', ?, ?, ?, ?)"] * count) for count in (16, 1)}
_KNOWN: LiteralString = "INSERT OR REPLACE INTO import_message (conversation, key, digest, length, message) VALUES "
_KNOWNS = {count: _KNOWN + ", ".join(["(?, ?, ?, ?, ?)"] * count) for count in (16, 1)}
_SUMS = (
    "UPDATE conversation SET message_count = message_count + ?1, updated_at = max(updated_at, coalesce(?2, 0)),"
    " created_at = min(created_at, coalesce(?3, created_at)),"
    " usage_input = iif(?4 IS NULL, usage_input, coalesce(usage_input, 0) + ?4),"
    " usage_output = iif(?5 IS NULL, usage_output, coalesce(usage_output, 0) + ?5),"
    " usage_cache_read = iif(?6 IS NULL, usage_cache_read, coalesce(usage_cache_read, 0) + ?6),"
    " usage_cache_write = iif(?7 IS NULL, usage_cache_write, coalesce(usage_cache_write, 0) + ?7),"
    " usage_reasoning = iif(?8 IS NULL, usage_reasoning, coalesce(usage_reasoning, 0) + ?8),"
    " cost = iif(?9 IS NULL, cost, coalesce(cost, 0) + ?9), unpriced_runs = unpriced_runs + ?10 WHERE no = ?11"
)
_MOVE = (
    "UPDATE conversation SET head_id = ?1 WHERE no = ?2"
    " AND head_id IS (SELECT head FROM import_conversation WHERE conversation = ?2) RETURNING no"
)
_MOVED = "UPDATE import_conversation SET head = ? WHERE conversation = ?"
_MESSAGE_ROW = (
    "SELECT m.id, m.role, m.parts, m.metadata, '', m.parent_id, m.run, m.status, m.client_id, m.first_seq, m.last_seq, m.folded_through,"
    " m.created_at FROM message AS m WHERE m.id = ? AND m.conversation = ?"
)


@dataclass(slots=True)
class _NewMessage:
    id: str
    parent: str | None
    arrival: IncomingEntry
    role: Role
    at: int
    """Index of its event in the batch."""


@dataclass(slots=True)
class _Piece:
    no: int
    id: str
    entries: list[Entry] = field(default_factory=list[Entry])
    new: list[_NewMessage] = field(default_factory=list[_NewMessage])
    notes: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    counts: Counter[str] = field(default_factory=Counter[str])
    """Counts by the field names of `ImportCounts`."""
    usage: Usage = field(default_factory=Usage)
    costs: list[int] = field(default_factory=list[int])
    unpriced: int = 0
    times: list[int] = field(default_factory=list[int])
    last: str | None = None
    """Id of the newest message."""
    rewritten: dict[bytes, str] = field(default_factory=dict[bytes, str])
    """Ids of new siblings, by the keys of the messages that changed in the source or are below a changed one."""
    identities: list[tuple[str, Sequence[bytes]]] = field(default_factory=list[tuple[str, Sequence[bytes]]])
    """Ids of messages, and the identities of their model calls."""
    taken: set[bytes] = field(default_factory=set[bytes])
    """Keys of the messages that were compared."""
    released: set[bytes] = field(default_factory=set[bytes])
    """Former identities of messages that have grown."""


def take(
    conversation: tuple[str, str],
    arrivals: Sequence[IncomingEntry],
    target: ImportTarget,
    compare: bool,
    transaction: Transaction,
) -> tuple[ImportCounts, dict[bytes, str], set[bytes]]:
    """Implement `Imports.take`; with `compare`, known messages are compared too, because another version of the format read them.

    `conversation` is an id and its owner. Return the counts, and the target's new `rewritten` and `taken`. Raise NotFound if the
    conversation has another owner.
    """
    no = lookup.number(transaction, *conversation)
    keys = (key for one in arrivals for key in (one.key, one.parent) if key is not None)
    known = variants(transaction, no, keys)
    latest = {key: versions[-1].message for key, versions in known.items()}
    piece = _Piece(no, conversation[0], rewritten=dict(target.rewritten), taken=set(target.taken))
    for one in arrivals:
        earlier = known.setdefault(one.key, [])
        if one.role is not None:
            parent = latest.get(one.parent) if one.parent is not None else None
            piece.counts["loose"] += one.parent is not None and parent is None
            replaces = compare and one.key not in piece.taken
            latest[one.key] = message = _message(transaction, piece, one, one.role, earlier, parent, compare=replaces)
            if compare:
                piece.taken.add(one.key)
            if one.identities and message is not None and one.parent not in piece.rewritten:
                piece.identities.append((message, one.identities))
        elif earlier:
            piece.counts["known"] += 1
        else:
            piece.entries.append(Entry("meta", one.raw, one.body))
            _note(piece, one, earlier, None)
            piece.counts["records"] += 1
    _store(transaction, piece)
    taken = ImportCounts(**piece.counts)
    _sum_up(transaction, piece, taken)
    identify(transaction, conversation[1], piece.identities, piece.released)
    return taken, piece.rewritten, piece.taken


def _message(
    transaction: Transaction, piece: _Piece, one: IncomingEntry, role: Role, earlier: list[Variant], parent: str | None, *, compare: bool
) -> str | None:
    same = next((variant for variant in earlier if variant.digest == one.digest), None)
    if same is not None and one.parent in piece.rewritten:
        return _below(transaction, piece, one, same, piece.rewritten[one.parent])
    if same is not None and not compare and not one.compare:
        piece.counts["known"] += 1
        return same.message
    if earlier:
        found = _extended(transaction, piece, one, earlier, same, compare=compare)
        if found is not None:
            return found
    id = _added(piece, one, role, parent, earlier)
    if one.usage != NO_USAGE:
        piece.usage += one.usage
    piece.unpriced += one.unpriced
    if one.cost is not None:
        piece.costs.append(one.cost)
    return id


def _below(transaction: Transaction, piece: _Piece, one: IncomingEntry, same: Variant, parent: str) -> str | None:
    """Copy a known message below its new parent, to complete the source's branch, and return the copy's id. Don't count its usage."""
    if same.message is None or one.role is None or transaction.row("SELECT 1 FROM message WHERE id = ?", (same.message,)) is None:
        piece.counts["known"] += 1  # purged messages are not imported again
        return same.message
    source: JsonObject = {"conversation": piece.id, "message": same.message}
    copy = one._replace(metadata=dumps({**parse_stored_object(one.metadata), "source": source}))
    return _added(piece, copy, one.role, parent, [same])


def _added(piece: _Piece, one: IncomingEntry, role: Role, parent: str | None, earlier: list[Variant]) -> str:
    """Add a new message and return its id."""
    id = new_id()
    piece.new.append(_NewMessage(id, parent, one, role, len(piece.entries)))
    # the same JSON as `message_body`, without encoding anything twice
    parent_json = b"null" if parent is None else b'"%s"' % parent.encode()
    head = b'{"id":"%s","role":"%s","parent":%s,' % (id.encode(), role.encode(), parent_json)
    piece.entries.append(Entry("message", one.raw, head + b'"parts":%s,"metadata":%s}' % (one.parts, one.metadata), one.created_at * 1000))
    piece.counts["rewritten" if earlier else "added"] += 1
    if earlier:
        piece.rewritten[one.key] = id
    _note(piece, one, earlier, id)
    if one.created_at:
        piece.times.append(one.created_at)
    piece.last = id
    return id


def _note(piece: _Piece, arrival: IncomingEntry, earlier: list[Variant], message: str | None) -> None:
    length = len(arrival.raw)
    earlier.append(Variant(arrival.digest, length, message))
    piece.notes.append((piece.no, arrival.key, arrival.digest, length, message))


def _extended(
    transaction: Transaction, piece: _Piece, one: IncomingEntry, earlier: list[Variant], same: Variant | None, *, compare: bool
) -> str | None:
    """Extend the stored message that the entry is a longer version of, and return its id. Return None if there is no such message.

    With `compare`, the message may differ only because an earlier version of the format read it, so it is replaced in any case.
    """
    raw = memoryview(one.raw)
    variant = same or next((old for old in reversed(earlier) if old.length < len(raw) and digest_of(raw[: old.length]) == old.digest), None)
    is_prefix = variant is not None
    variant = variant or earlier[-1]
    _store(transaction, piece)  # the extended message may be in this batch
    row: Any = transaction.row(_MESSAGE_ROW, (variant.message, piece.no))
    if row is None:  # purged messages are not imported again
        piece.counts["known"] += 1
        return variant.message or ""
    before = message_of(row)
    parts = parts_of(parse_stored(one.parts))
    if not is_prefix and not compare and not is_continuation(before.parts, parts):
        return None
    body = growth_body(before.id, (before.parts, before.metadata), (parts, parse_stored_object(one.metadata)))
    if same is not None and len(body) == 3 and not body["parts"] and body["keep"] == len(before.parts):
        piece.counts["known"] += 1
        return before.id
    fresh_raw = None if same is not None else bytes(raw[variant.length :] if is_prefix else raw)
    piece.released |= release_message(transaction, before.id)
    _grow(transaction, piece, before, body if is_prefix else {**body, "anew": True}, fresh_raw)
    transaction.execute("DELETE FROM import_message WHERE conversation = ? AND key = ? AND digest = ?", (piece.no, one.key, variant.digest))
    earlier.remove(variant)
    _note(piece, one, earlier, before.id)
    usage, cost, unpriced = usage_of_steps(before.metadata)
    piece.usage += one.usage - usage
    piece.unpriced += one.unpriced - unpriced
    if one.cost is not None or cost is not None:
        piece.costs.append((one.cost or 0) - (cost or 0))
    piece.counts["grown"] += 1
    return before.id


def _grow(transaction: Transaction, piece: _Piece, before: Message, body: JsonObject, raw: bytes | None) -> None:
    parts, metadata = apply_growth(before.parts, before.metadata, body)
    (seq,) = transaction.add_encoded(piece.no, (Entry("message", raw, dumps(body)),))
    row: Any = transaction.row(
        "UPDATE message SET parts = ?, metadata = ?, last_seq = ?, folded_through = ?, is_indexed = 0 WHERE id = ? RETURNING no",
        (quick(dumps(parts)), quick(dumps(metadata)), seq, seq, before.id),
    )
    forget_vectors(transaction, row[0])


def _store(transaction: Transaction, piece: _Piece) -> None:
    if piece.entries:
        first = segments.append(transaction, piece.no, piece.entries).start
        rows = [
            (
                *(one.id, piece.no, one.parent, one.role, quick(compressed(one.arrival.parts)), quick(one.arrival.metadata)),
                *[first + one.at] * 3,
                one.arrival.created_at or transaction.now_ms,
            )
            for one in piece.new
        ]
        insert_many(transaction.execute, _MESSAGES, rows)
    if piece.notes:
        insert_many(transaction.execute, _KNOWNS, piece.notes)
    piece.entries, piece.new, piece.notes = [], [], []


def _sum_up(transaction: Transaction, piece: _Piece, taken: ImportCounts) -> None:
    usage, times = piece.usage, piece.times
    if not (taken.added or taken.rewritten or taken.grown):
        return
    values = (taken.added + taken.rewritten, max(times, default=None), min(times, default=None))
    sums = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    transaction.execute(_SUMS, (*values, *sums, sum(piece.costs) if piece.costs else None, piece.unpriced, piece.no))
    if piece.last is not None and transaction.row(_MOVE, (piece.last, piece.no)) is not None:
        transaction.execute(_MOVED, (piece.last, piece.no))
