"""Events in stored form: rows of the log that are not decoded yet."""

from __future__ import annotations

from typing import NamedTuple

from moot.store.database.transaction import SEQ_BITS, checksum
from moot.store.rows import parse_stored, parse_stored_object
from moot.types.canonical import JsonObject, dumps

LAST_SEQ = (1 << SEQ_BITS) - 1


class Row(NamedTuple):
    """A row of `event`."""

    id: int
    at: int
    run: int | None
    exchange: str | None
    kind: str
    chunks: bytes
    raw: bytes | None
    phase: str | None
    key: str | None
    body: bytes | None
    check: bytes

    @property
    def seq(self) -> int:
        return self.id & LAST_SEQ

    def is_sound(self) -> bool:
        """Return True if the stored check matches the content."""
        return checksum(self.seq, self.kind, self.chunks, self.raw, self.phase, self.key, self.body) == self.check

    def exchange_id(self, run: str | None) -> str | None:
        """Return the full exchange id; `run` is the id of its run."""
        if self.exchange is None:
            return None
        return f"{run}{self.exchange[1:]}" if self.exchange[:1] == ":" else self.exchange[1:]


def checked(row: Row) -> Row:
    """Return the row with its check computed from its content."""
    return row._replace(check=checksum(row.seq, row.kind, row.chunks, row.raw, row.phase, row.key, row.body))


def before_redaction(row: Row) -> Row:
    """Return a tombstone as the event it replaced, with the content that remains.

    Keep the row's check. Return any other row, and a damaged tombstone, unchanged.
    """
    if row.kind != "tombstone" or row.body is None:
        return row
    try:
        body = parse_stored_object(row.body)
    except ValueError:
        return row
    inner = body.get("body")
    return row._replace(kind=str(body.get("was", "tombstone")), body=None if inner is None else dumps(inner))


def tombstone(row: Row, chunks: bytes, body: bytes | None, at: int) -> Row:
    """Return a tombstone that replaces an event, even one that is already redacted.

    It has only the given chunks and body, and no raw data.
    """
    was = before_redaction(row)
    inner = None if body is None else parse_stored(body)
    content: JsonObject = {"was": was.kind, "reason": "redacted", "at": at, "body": inner}
    return checked(row._replace(kind="tombstone", chunks=chunks, raw=None, body=dumps(content)))
