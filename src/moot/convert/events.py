"""An event as faces give it out."""

from __future__ import annotations

import base64

from moot.types.canonical import JsonObject
from moot.types.event import Event

__all__ = ["event_json"]


def event_json(event: Event, *, raw: bool = False) -> JsonObject:
    """`{seq, at, run, kind, exchange, chunks, phase?, key?}`; with `raw` the vendor's bytes, as `raw_base64` when no UTF-8."""
    value: JsonObject = {
        "seq": event.seq,
        "at": event.at,
        "run": event.run,
        "kind": event.kind,
        "exchange": event.exchange,
        "chunks": list(event.chunks),
    }
    if event.phase is not None:
        value["phase"] = event.phase
    if event.key is not None:
        value["key"] = event.key
    if raw and event.raw is not None:
        try:
            value["raw"] = event.raw.decode()
        except UnicodeDecodeError:
            value["raw_base64"] = base64.b64encode(event.raw).decode()
    return value
