"""What an entry of a source is known by again, what of it is stored, and what it took. Pure."""

from __future__ import annotations

from hashlib import blake2b

from moot.types.canonical import JsonObject, dumps
from moot.types.format import ImportedMessage, ImportedRecord
from moot.types.imports import Arrival
from moot.types.usage import NO_USAGE, Usage

__all__ = ["arrived", "digest_of", "digest_of_record", "key_of", "record_key", "took"]

_LONGEST = 128
"""Bytes of a key."""
_DIGEST = 16
_UNREADABLE = b'[{"type":"data-unreadable","data":{}}]'


def digest_of(raw: bytes | memoryview) -> bytes:
    """16 bytes that tell raw from other raw."""
    return blake2b(raw, digest_size=_DIGEST).digest()


def digest_of_record(entry: ImportedRecord) -> bytes:
    """The same of a record, without its line's end: that may be written after the record was read."""
    return digest_of(entry.raw.rstrip(b"\r\n") or entry.problem.encode("utf-8", "replace"))


def key_of(source_id: str) -> bytes:
    """Under which a message is known; one with a long id by its beginning and a digest."""
    key = source_id.encode("utf-8", "surrogatepass")
    return key if len(key) <= _LONGEST and key[:1] > b"\1" else b"\1" + digest_of(key) + key[: _LONGEST - _DIGEST - 1]


def record_key(digest: bytes, occurrence: int) -> bytes:
    """Under which a record that is no message is known: it has no id, so what it says and how often that was said before."""
    return b"\0" + digest + occurrence.to_bytes(4, "big")


def arrived(entry: ImportedMessage | ImportedRecord, occurrence: int = 0) -> Arrival:
    """The entry with all of that, encoded; `occurrence` is how often a record was in its conversation before."""
    if isinstance(entry, ImportedRecord):
        digest = digest_of_record(entry)
        said = {"problem": entry.problem} if entry.problem else {}
        body = _encoded({"record": entry.body, **said}, dumps({"record": None, **said}))
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
    """The canonical bytes; of what can't be kept as JSON (nested too deeply) the raw alone stays."""
    try:
        return dumps(value)
    except ValueError:
        return instead


def took(metadata: JsonObject) -> tuple[Usage, int | None, bool]:
    """What the steps of a message took: tokens, nano-dollars (None = no step has a price), whether one has tokens and no price."""
    usage, cost, unpriced = NO_USAGE, None, False
    steps = metadata.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if not isinstance(step, dict):
            continue
        told = step.get("usage")
        of_step = Usage.from_json(told) if isinstance(told, dict) else NO_USAGE
        usage = of_step if usage is NO_USAGE else usage + of_step
        if type(spent := step.get("cost")) is int:
            cost = spent if cost is None else cost + spent
        else:
            unpriced = unpriced or of_step != NO_USAGE
    return usage, cost, unpriced
