"""An event as faces give it out."""

from __future__ import annotations

import base64
from typing import Literal

from moot.types.canonical import JsonObject
from moot.types.event import Event, Raw, told

__all__ = ["direction", "event_json", "raw_json"]


def event_json(event: Event, *, raw: bool = False) -> JsonObject:
    """`{seq, at, run, kind, exchange, chunks, phase?, key?}`; with `raw` also `dir` and the bytes, as `raw_base64` when no UTF-8.

    A tombstone says what it `was`, the `reason` and `redacted_at` (ms).
    """
    event = told(event)
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
    if event.kind == "tombstone" and isinstance(event.body, dict):
        value |= {name: event.body.get(name) for name in ("was", "reason")} | {"redacted_at": event.body.get("at")}
    if raw and event.raw is not None:
        value |= {"dir": direction(event), **raw_json(event.raw)}
    return value


def raw_json(raw: Raw) -> JsonObject:
    """The bytes as JSON can hold them: `raw`, or `raw_base64` when they are no UTF-8."""
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(raw).decode()}


def direction(event: Event) -> Literal["in", "out"]:
    """Who said an event's raw: `out` = we did, to a vendor's program; all else came in."""
    return "out" if event.kind == "raw" and isinstance(event.body, dict) and event.body.get("dir") == "out" else "in"
