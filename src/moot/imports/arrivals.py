"""Encoding of imported entries for the store, and the keys that identify them in later imports."""

from __future__ import annotations

from moot.convert.imports import DIGEST_SIZE, digest_of, usage_of_steps
from moot.convert.ui_message import valid_part
from moot.convert.writer import UNSETTLED
from moot.types.canonical import dumps
from moot.types.format import ImportedMessage, ImportedRecord
from moot.types.imports import IncomingEntry

_LONGEST = 128
"""Maximum length of a key in bytes."""
_UNREADABLE = b'[{"type":"data-unreadable","data":{}}]'


def digest_of_record(entry: ImportedRecord) -> bytes:
    """Return the digest of a record. The line ending is excluded, because the program may write it after the record was read."""
    return digest_of(entry.raw.rstrip(b"\r\n") or entry.problem.encode("utf-8", "replace"))


def key_of(source_id: str) -> bytes:
    """Return the key of a message, which is its id in the source. A long id is shortened to its beginning and a digest."""
    key = source_id.encode("utf-8", "surrogatepass")
    return key if len(key) <= _LONGEST and key[:1] > b"\1" else b"\1" + digest_of(key) + key[: _LONGEST - DIGEST_SIZE - 1]


def record_key(digest: bytes, occurrence: int) -> bytes:
    """Return the key of a record that is not a message. It has no id, so its content and the number of earlier copies identify it."""
    return b"\0" + digest + occurrence.to_bytes(4, "big")


def encode_arrival(entry: ImportedMessage | ImportedRecord, occurrence: int = 0) -> IncomingEntry:
    """Encode an entry for the store. `occurrence` is the number of earlier identical records in the conversation."""
    if isinstance(entry, ImportedRecord):
        digest = digest_of_record(entry)
        problem = {"problem": entry.problem} if entry.problem else {}
        body = _encoded({"record": entry.body, **problem}, dumps({"record": None, **problem}))
        return IncomingEntry(record_key(digest, occurrence), digest, entry.raw, body, entry.problem)
    usage, cost, unpriced = usage_of_steps(entry.metadata)
    return IncomingEntry(
        key_of(entry.source_id),
        digest_of(entry.raw),
        entry.raw,
        b"",
        role=entry.role,
        parts=_encoded([valid_part(part) for part in entry.parts], _UNREADABLE),
        metadata=_encoded(entry.metadata, b"{}"),
        parent=None if entry.parent is None else key_of(entry.parent),
        created_at=entry.created_at,
        usage=usage,
        cost=cost,
        unpriced=unpriced,
        identities=tuple([digest_of(identity.encode("utf-8", "surrogatepass")) if identity else b"" for identity in entry.identities]),
        compare=any(part.get("errorText") == UNSETTLED["eof"] for part in entry.parts),  # a call that was still running before
    )


def _encoded(value: object, instead: bytes) -> bytes:
    """Return the value as canonical JSON, or `instead` if it is nested too deeply. The raw bytes of the entry are stored in any case."""
    try:
        return dumps(value)
    except ValueError:
        return instead
