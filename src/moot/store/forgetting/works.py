"""A purge or redaction as it is stored while it goes on: what is to be done, how far it is, and its receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from moot.store.connect import Queries
from moot.store.rows import kept_object
from moot.store.transaction import Transaction
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.forgetting import FileFate, Forgotten, Secret

__all__ = ["Work", "begun", "open_works", "receipt_of", "receipts", "save"]


@dataclass(slots=True)
class Work:
    """What one purge or redaction does. Each step can be done again when nobody knows whether it was."""

    receipt: Forgotten
    conversations: dict[int, str] = field(default_factory=dict[int, str])
    """No → id: those to be purged, or to be looked through."""
    whole: bool = False
    """Of a redaction: everything, not those conversations alone."""
    secret: Secret | None = None
    blobs: set[str] = field(default_factory=set[str])
    """Names of what may be nobody's any more."""
    owners: set[str] = field(default_factory=set[str])
    """Whose they were; empty = everybody's."""
    since: int = 0
    """ms; copies of the store that are older hold nothing of it."""
    unindexed: bool = False
    """Something was taken out of the search index."""

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

    def count(self, table: str, rows: int) -> None:
        """Puts rows into the receipt."""
        if rows:
            self.receipt.rows[table] = self.receipt.rows.get(table, 0) + rows


def begun(transaction: Transaction, work: Work) -> Work:
    """The work, stored."""
    work.receipt.begun_at = transaction.now_ms
    work.receipt.no = transaction.row(
        "INSERT INTO forgetting (kind, begun_at, rest, receipt) VALUES (?, ?, ?, ?) RETURNING no",
        (work.receipt.kind, work.receipt.begun_at, dumps(work.to_json()), dumps(work.receipt.to_json())),
    )[0]
    return work


def save(transaction: Transaction, work: Work, *, cleaned: bool = False, done: bool = False) -> None:
    """Stores how far it is, in the transaction that brought it there. `cleaned` = only the file itself is left to be cleaned."""
    if done:
        work.receipt.done_at = transaction.now_ms
    transaction.execute(
        "UPDATE forgetting SET rest = ?, receipt = ?, done_at = ? WHERE no = ?",
        (None if cleaned or done else dumps(work.to_json()), dumps(work.receipt.to_json()), work.receipt.done_at, work.receipt.no),
    )


def open_works(queries: Queries) -> list[tuple[int, Work | None, Forgotten]]:
    """What is not done, the oldest first; without a work where only the file is left to be cleaned."""
    rows: Any = queries.execute("SELECT no, rest, receipt FROM forgetting WHERE done_at IS NULL ORDER BY no").fetchall()
    return [(no, None if work is None else _work_of(no, kept_object(work), receipt), receipt_of(no, receipt)) for no, work, receipt in rows]


def receipts(queries: Queries, limit: int) -> list[Forgotten]:
    """The newest first."""
    rows: Any = queries.execute("SELECT no, receipt FROM forgetting ORDER BY no DESC LIMIT ?", (limit,)).fetchall()
    return [receipt_of(no, receipt) for no, receipt in rows]


def _work_of(no: int, value: JsonObject, receipt: bytes) -> Work:
    conversations, secret = value.get("conversations"), value.get("secret")
    return Work(
        receipt_of(no, receipt),
        {int(number): str(id) for number, id in conversations.items()} if isinstance(conversations, dict) else {},
        value.get("whole") is True,
        Secret(_texts(secret.get("strings")), _texts(secret.get("patterns"))) if isinstance(secret, dict) else None,
        set(_texts(value.get("blobs"))),
        set(_texts(value.get("owners"))),
        since if isinstance(since := value.get("since"), int) else 0,
        value.get("unindexed") is True,
    )


def receipt_of(no: int, data: bytes) -> Forgotten:
    """A receipt as it is stored."""
    value: Any = kept_object(data)
    kind: Literal["purge", "redact"] = "redact" if value.get("kind") == "redact" else "purge"
    return Forgotten(
        kind,
        no,
        int(value.get("begun_at") or 0),
        value.get("done_at"),
        [str(id) for id in value.get("conversations") or ()],
        {str(table): rows for table, rows in cast("dict[str, int]", value.get("rows") or {}).items()},
        int(value.get("blobs") or 0),
        int(value.get("blob_bytes") or 0),
        [FileFate(str(file["path"]), file["what"], str(file.get("why") or "")) for file in value.get("files") or ()],
        [str(words) for words in value.get("left") or ()],
        [str(words) for words in value.get("not_looked_into") or ()],
        int(value.get("bytes_before") or 0),
        int(value.get("bytes_after") or 0),
    )


def _texts(value: Json) -> tuple[str, ...]:
    found: Sequence[Json] = value if isinstance(value, list) else ()
    return tuple(str(text) for text in found)
