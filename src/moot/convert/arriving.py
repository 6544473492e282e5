"""Imported entries: the key by which each is recognized, the encoded form that is stored, and its usage."""

from __future__ import annotations

from hashlib import blake2b

from moot.types.canonical import JsonObject, dumps
from moot.types.format import ImportedMessage, ImportedRecord
from moot.types.imports import Arrival
from moot.types.usage import NO_USAGE, Usage

_LONGEST = 128
"""Maximum length of a key in bytes."""
_DIGEST = 16
_UNREADABLE = b'[{"type":"data-unreadable","data":{}}]'


def digest_of(raw: bytes | memoryview) -> bytes:
    """Return a 16-byte digest of raw bytes."""
    return blake2b(raw, digest_size=_DIGEST).digest()


def digest_of_record(entry: ImportedRecord) -> bytes:
    """Return the digest of a record without its line ending, which may be written after the record was read."""
    return digest_of(entry.raw.rstrip(b"\r\n") or entry.problem.encode("utf-8", "replace"))


def key_of(source_id: str) -> bytes:
    """Return the key of a message. A long id is shortened to its beginning and a digest."""
    key = source_id.encode("utf-8", "surrogatepass")
    return key if len(key) <= _LONGEST and key[:1] > b"\1" else b"\1" + digest_of(key) + key[: _LONGEST - _DIGEST - 1]


def record_key(digest: bytes, occurrence: int) -> bytes:
    """Return the key of a record that is not a message. It has no id, so content and number of earlier occurrences identify it."""
    return b"\0" + digest + occurrence.to_bytes(4, "big")


def arrived(entry: ImportedMessage | ImportedRecord, occurrence: int = 0) -> Arrival:
    """Encode the entry. `occurrence` is the number of earlier identical records in the conversation."""
    if isinstance(entry, ImportedRecord):
        digest = digest_of_record(entry)
        problem = {"problem": entry.problem} if entry.problem else {}
        body = _encoded({"record": entry.body, **problem}, dumps({"record": None, **problem}))
        return Arrival(record_key(digest, occurrence), digest, entry.raw, body, entry.problem)
    usage, cost, unpriced = took(entry.metadata)
    return Arrival(
        key_of(entry.source_id),
        digest_of(entry.raw),
        entry.raw,
        b"",
        role=entry.role,
        parts=_encoded(entry.parts, _UNREADABLE),
        metadata=_encoded(entry.metadata, b"{}"),
        parent=None if entry.parent is None else key_of(entry.parent),
        created_at=entry.created_at,
        usage=usage,
        cost=cost,
        unpriced=unpriced,
    )


def _encoded(value: object, instead: bytes) -> bytes:
    """Return the canonical bytes, or `instead` if the value can't be stored as JSON (nested too deeply); the raw is kept."""
    try:
        return dumps(value)
    except ValueError:
        return instead


def took(metadata: JsonObject) -> tuple[Usage, int | None, bool]:
    """Return the usage of a message's steps: tokens, nano-dollars (None if no step has a price), True if one has tokens but no price."""
    usage, cost, unpriced = NO_USAGE, None, False
    steps = metadata.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if not isinstance(step, dict):
            continue
        reported = step.get("usage")
        of_step = Usage.from_json(reported) if isinstance(reported, dict) else NO_USAGE
        usage = of_step if usage is NO_USAGE else usage + of_step
        if type(spent := step.get("cost")) is int:
            cost = spent if cost is None else cost + spent
        else:
            unpriced = unpriced or of_step != NO_USAGE
    return usage, cost, unpriced
