"""Events as JSON, in the form that all faces return."""

from __future__ import annotations

import base64
from typing import Literal

from moot.types.canonical import JsonObject
from moot.types.event import Event, Raw, told


def event_json(event: Event, *, raw: bool = False) -> JsonObject:
    """Return `{seq, at, run, kind, exchange, chunks, phase?, key?}`, and with `raw` also `dir` and the bytes (`raw_base64` if not UTF-8).

    A tombstone has the event's former kind in `was`, the `reason` and `redacted_at` (ms).
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
    """Return the bytes in JSON form: `raw`, or `raw_base64` if they are not UTF-8."""
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(raw).decode()}


def direction(event: Event) -> Literal["in", "out"]:
    """Return the direction of an event's raw: `out` if moot sent it to a vendor's program, else `in`."""
    return "out" if event.kind == "raw" and isinstance(event.body, dict) and event.body.get("dir") == "out" else "in"
