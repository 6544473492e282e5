"""The stored state of a purge or redaction in progress: what to do, its progress, and its receipt."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction
from moot.store.rows import parse_stored_object
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.maintenance import ErasureReceipt, FileOutcome, Secret


@dataclass(slots=True)
class EraseJob:
    """One purge or redaction. Each step can be repeated, so it does not matter if a crash happened before or after it."""

    receipt: ErasureReceipt
    conversations: dict[int, str] = field(default_factory=dict[int, str])
    """Conversations to purge or search, as a map from their number to their id."""
    whole: bool = False
    """True to redact the whole store, not only these conversations."""
    secret: Secret | None = None
    blobs: set[str] = field(default_factory=set[str])
    """Hashes of blobs that may be unreferenced."""
    owners: set[str] = field(default_factory=set[str])
    """Owners of those blobs; empty = all owners."""
    since: int = 0
    """Time in milliseconds since 1970. Copies of the store made before this time don't contain the data."""
    unindexed: bool = False
    """True if anything was removed from the search index."""

    def to_json(self) -> JsonObject:
        value: JsonObject = {
            "conversations": {str(no): id for no, id in self.conversations.items()},
            "whole": self.whole,
            "blobs": list[Json](sorted(self.blobs)),
            "owners": list[Json](sorted(self.owners)),
            "since": self.since,
            "unindexed": self.unindexed,
        }
        if self.secret is not None:
            value["secret"] = {"strings": list[Json](self.secret.strings), "patterns": list[Json](self.secret.patterns)}
        return value

    def count(self, counts: Mapping[str, int]) -> None:
        """Add changed rows by table to the receipt."""
        for table, rows in counts.items():
            if rows:
                self.receipt.rows[table] = self.receipt.rows.get(table, 0) + rows


def start(transaction: Transaction, work: EraseJob) -> EraseJob:
    """Store a new purge or redaction."""
    work.receipt.begun_at = transaction.now_ms
    work.receipt.no = transaction.row(
        "INSERT INTO forgetting (kind, begun_at, rest, receipt) VALUES (?, ?, ?, ?) RETURNING no",
        (work.receipt.kind, work.receipt.begun_at, dumps(work.to_json()), dumps(work.receipt.to_json())),
    )[0]
    return work


def save(transaction: Transaction, work: EraseJob, *, cleaned: bool = False, done: bool = False) -> None:
    """Store the progress in the same transaction as the changes. If `cleaned` is set, only the database file remains to be cleaned."""
    if done:
        work.receipt.done_at = transaction.now_ms
    transaction.execute(
        "UPDATE forgetting SET rest = ?, receipt = ?, done_at = ? WHERE no = ?",
        (None if cleaned or done else dumps(work.to_json()), dumps(work.receipt.to_json()), work.receipt.done_at, work.receipt.no),
    )


def note(
    work: EraseJob, transaction: Transaction, *, blobs: Collection[str] = (), left: str = "", files: Sequence[FileOutcome] = ()
) -> EraseJob:
    """Add blobs, a note about remaining data, or file outcomes to the job. Store and return the job."""
    work = deepcopy(work)
    work.blobs.update(blobs)
    work.receipt.left += [left] if left and left not in work.receipt.left else []
    work.receipt.files += [file for file in files if file not in work.receipt.files]
    save(transaction, work)
    return work


def open_jobs(queries: Queries) -> list[tuple[int, EraseJob | None, ErasureReceipt]]:
    """Return unfinished jobs, oldest first. The job is None if only the file must still be cleaned."""
    rows: Any = queries.execute("SELECT no, rest, receipt FROM forgetting WHERE done_at IS NULL ORDER BY no").fetchall()
    return [
        (no, None if work is None else _work_of(no, parse_stored_object(work), receipt), receipt_of(no, receipt))
        for no, work, receipt in rows
    ]


def receipts(queries: Queries, limit: int) -> list[ErasureReceipt]:
    """Return receipts, newest first."""
    rows: Any = queries.execute("SELECT no, receipt FROM forgetting ORDER BY no DESC LIMIT ?", (limit,)).fetchall()
    return [receipt_of(no, receipt) for no, receipt in rows]


def _work_of(no: int, value: JsonObject, receipt: bytes) -> EraseJob:
    conversations, secret = value.get("conversations"), value.get("secret")
    return EraseJob(
        receipt_of(no, receipt),
        {int(number): str(id) for number, id in conversations.items()} if isinstance(conversations, dict) else {},
        value.get("whole") is True,
        Secret(_texts(secret.get("strings")), _texts(secret.get("patterns"))) if isinstance(secret, dict) else None,
        set(_texts(value.get("blobs"))),
        set(_texts(value.get("owners"))),
        since if isinstance(since := value.get("since"), int) else 0,
        value.get("unindexed") is True,
    )


def receipt_of(no: int, data: bytes) -> ErasureReceipt:
    """Parse a stored receipt."""
    value: Any = parse_stored_object(data)
    kind: Literal["purge", "redact"] = "redact" if value.get("kind") == "redact" else "purge"
    return ErasureReceipt(
        kind,
        no,
        int(value.get("begun_at") or 0),
        value.get("done_at"),
        [str(id) for id in value.get("conversations") or ()],
        {str(table): rows for table, rows in cast("dict[str, int]", value.get("rows") or {}).items()},
        int(value.get("blobs") or 0),
        int(value.get("blob_bytes") or 0),
        [FileOutcome(str(file["path"]), file["what"], str(file.get("why") or "")) for file in value.get("files") or ()],
        [str(words) for words in value.get("left") or ()],
        [str(words) for words in value.get("not_looked_into") or ()],
        int(value.get("bytes_before") or 0),
        int(value.get("bytes_after") or 0),
    )


def _texts(value: Json) -> tuple[str, ...]:
    found: Sequence[Json] = value if isinstance(value, list) else ()
    return tuple(str(text) for text in found)
