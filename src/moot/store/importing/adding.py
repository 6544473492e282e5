"""The transaction that adds a piece of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString, NamedTuple

from moot.convert.arriving import digest_of, key_of, took
from moot.convert.growing import continues, grown, growth
from moot.store import lookup
from moot.store.importing.finding import Variant, variants
from moot.store.rows import kept_object, message_of
from moot.store.transaction import Entry, Transaction, insert_many, quick
from moot.types.canonical import JsonObject, dumps
from moot.types.format import ImportedMessage
from moot.types.ids import new_id
from moot.types.imports import Arrival, Taken
from moot.types.message import Message
from moot.types.usage import Usage

__all__ = ["Prepared", "prepared", "take"]

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


class Prepared(NamedTuple):
    """An arrival with what is stored of it encoded already: that takes longer than anything else and must not hold up the writer."""

    arrival: Arrival
    parts: bytes = b""
    metadata: bytes = b""
    body: bytes = b""
    """Of a record; of a message it is put together once its ids are known."""


def prepared(arrival: Arrival) -> Prepared:
    """The same, encoded."""
    entry = arrival.entry
    if isinstance(entry, ImportedMessage):
        return Prepared(arrival, _encoded(list(entry.parts), b'[{"type":"data-unreadable","data":{}}]'), _encoded(entry.metadata, b"{}"))
    said = {"problem": entry.problem} if entry.problem else {}
    return Prepared(arrival, body=_encoded({"record": entry.body, **said}, dumps({"record": None, **said})))


def _encoded(value: object, instead: bytes) -> bytes:
    """The canonical bytes; of what can't be kept as JSON (nested too deeply) the raw alone stays."""
    try:
        return dumps(value)
    except ValueError:
        return instead


@dataclass(slots=True)
class _Said:
    """A message that is to be inserted."""

    id: str
    parent: str | None
    prepared: Prepared
    entry: ImportedMessage
    at: int
    """Its event among those of the piece."""


@dataclass(slots=True)
class _Piece:
    """What one transaction gathers."""

    no: int
    entries: list[Entry] = field(default_factory=list[Entry])
    said: list[_Said] = field(default_factory=list[_Said])
    notes: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    taken: Taken = field(default_factory=Taken)
    usage: Usage = field(default_factory=Usage)
    costs: list[int] = field(default_factory=list[int])
    unpriced: int = 0
    times: list[int] = field(default_factory=list[int])
    last: str | None = None
    """The newest message."""


def take(whose: tuple[str, str], arrivals: Sequence[Prepared], anew: bool, transaction: Transaction) -> Taken:
    """As `Imports.take`; with `anew` messages that are known letter for letter are looked at, for another version has read them.

    `whose`: a conversation and its owner; NotFound is raised for one of somebody else.
    """
    no = lookup.number(transaction, *whose)
    parents = [_parent_key(one.arrival) for one in arrivals]
    keys = [one.arrival.key for one in arrivals]
    known = variants(transaction, no, (key for key in (*keys, *parents) if key is not None))
    latest = {key: told[-1].message for key, told in known.items()}
    piece = _Piece(no)
    for one, parent in zip(arrivals, parents, strict=True):
        told = known.setdefault(one.arrival.key, [])
        if isinstance(one.arrival.entry, ImportedMessage):
            hangs_on = latest.get(parent) if parent is not None else None
            piece.taken += Taken(loose=int(parent is not None and hangs_on is None))
            latest[one.arrival.key] = _message(transaction, piece, one, one.arrival.entry, told, hangs_on, anew=anew)
        elif told:
            piece.taken += Taken(known=1)
        else:
            piece.entries.append(Entry("meta", one.arrival.entry.raw, one.body))
            _note(piece, one.arrival, told, None)
            piece.taken += Taken(records=1)
    _store(transaction, piece)
    _sum_up(transaction, piece)
    return piece.taken


def _parent_key(arrival: Arrival) -> bytes | None:
    entry = arrival.entry
    return key_of(entry.parent) if isinstance(entry, ImportedMessage) and entry.parent is not None else None


def _message(
    transaction: Transaction, piece: _Piece, one: Prepared, entry: ImportedMessage, told: list[Variant], parent: str | None, *, anew: bool
) -> str | None:
    """The message of ours that this one is from now on."""
    digest = one.arrival.digest
    same = next((variant for variant in told if variant.digest == digest), None)
    if same is not None and not anew:
        piece.taken += Taken(known=1)
        return same.message
    if told:
        found = _told_further(transaction, piece, one, entry, told, same)
        if found is not None:
            return found
    id = new_id()
    at = entry.created_at * 1000
    piece.said.append(_Said(id, parent, one, entry, len(piece.entries)))
    piece.entries.append(Entry("message", entry.raw, _body(id, parent, entry.role, one), at))
    piece.taken += Taken(rewritten=1) if told else Taken(added=1)
    _note(piece, one.arrival, told, id)
    _count(piece, one.arrival)
    piece.last = id
    return id


def _body(id: str, parent: str | None, role: str, one: Prepared) -> bytes:
    """As `message_body` has it, without encoding anything twice."""
    hangs = b"null" if parent is None else b'"%s"' % parent.encode()
    return b'{"id":"%s","role":"%s","parent":%s,"parts":%s,"metadata":%s}' % (id.encode(), role.encode(), hangs, one.parts, one.metadata)


def _note(piece: _Piece, arrival: Arrival, told: list[Variant], message: str | None) -> None:
    length = len(arrival.entry.raw)
    told.append(Variant(arrival.digest, length, message))
    piece.notes.append((piece.no, arrival.key, arrival.digest, length, message))


def _count(piece: _Piece, arrival: Arrival) -> None:
    entry = arrival.entry
    piece.usage += arrival.usage
    piece.unpriced += arrival.unpriced
    if arrival.cost is not None:
        piece.costs.append(arrival.cost)
    if isinstance(entry, ImportedMessage) and entry.created_at:
        piece.times.append(entry.created_at)


def _count_more(piece: _Piece, arrival: Arrival, before: Message) -> None:
    """What it took since it was last told."""
    usage, cost, unpriced = took(before.metadata)
    piece.usage += arrival.usage - usage
    piece.unpriced += arrival.unpriced - unpriced
    if arrival.cost is not None:
        piece.costs.append(arrival.cost - (cost or 0))


# ── what was told before ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _told_further(
    transaction: Transaction, piece: _Piece, one: Prepared, entry: ImportedMessage, told: list[Variant], same: Variant | None
) -> str | None:
    """The message that goes on with this; None when it is another one, which becomes a sibling."""
    raw = memoryview(entry.raw)
    variant = same or next((old for old in reversed(told) if old.length < len(raw) and digest_of(raw[: old.length]) == old.digest), None)
    is_prefix = variant is not None
    variant = variant or told[-1]
    _store(transaction, piece)  # what it goes on with may be in this very piece
    row: Any = transaction.row(_MESSAGE_ROW, (variant.message, piece.no))
    if row is None:  # purged: it does not come back
        piece.taken += Taken(known=1)
        return variant.message or ""
    before = message_of(row)
    if not is_prefix and not continues(before.parts, entry.parts):
        return None
    body = growth(before.id, (before.parts, before.metadata), (entry.parts, kept_object(one.metadata)))
    if same is not None and len(body) == 2 and not body["parts"] and body["keep"] == len(before.parts):
        piece.taken += Taken(known=1)
        return before.id
    fresh_raw = None if same is not None else bytes(raw[variant.length :] if is_prefix else raw)
    _grow(transaction, piece, before, body if is_prefix else {**body, "anew": True}, fresh_raw)
    transaction.execute(
        "DELETE FROM import_message WHERE conversation = ? AND key = ? AND digest = ?", (piece.no, one.arrival.key, variant.digest)
    )
    told.remove(variant)
    _note(piece, one.arrival, told, before.id)
    _count_more(piece, one.arrival, before)
    piece.taken += Taken(grown=1)
    return before.id


def _grow(transaction: Transaction, piece: _Piece, before: Message, body: JsonObject, raw: bytes | None) -> None:
    parts, metadata = grown(before.parts, before.metadata, body)
    (seq,) = transaction.add_said(piece.no, (Entry("message", raw, dumps(body)),))
    transaction.execute(
        "UPDATE message SET parts = ?, metadata = ?, last_seq = ?, folded_through = ?, is_indexed = 0 WHERE id = ?",
        (quick(dumps(parts)), quick(dumps(metadata)), seq, seq, before.id),
    )


# ── storing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _store(transaction: Transaction, piece: _Piece) -> None:
    """Stores what has gathered."""
    if piece.entries:
        first = transaction.add_said(piece.no, piece.entries).start
        rows = [
            (
                *(one.id, piece.no, one.parent, one.entry.role, quick(one.prepared.parts), quick(one.prepared.metadata)),
                *[first + one.at] * 3,
                one.entry.created_at or transaction.now_ms,
            )
            for one in piece.said
        ]
        insert_many(transaction.execute, _MESSAGES, rows)
    if piece.notes:
        insert_many(transaction.execute, _KNOWNS, piece.notes)
    piece.entries, piece.said, piece.notes = [], [], []


def _sum_up(transaction: Transaction, piece: _Piece) -> None:
    """The conversation's row with what was added; its branch follows while only imports have moved it."""
    taken, usage, times = piece.taken, piece.usage, piece.times
    if not (taken.added or taken.rewritten or taken.grown):
        return
    values = (taken.added + taken.rewritten, max(times, default=None), min(times, default=None))
    sums = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    transaction.execute(_SUMS, (*values, *sums, sum(piece.costs) if piece.costs else None, piece.unpriced, piece.no))
    if piece.last is not None and transaction.row(_MOVE, (piece.last, piece.no)) is not None:
        transaction.execute(_MOVED, (piece.last, piece.no))
