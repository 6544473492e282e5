"""Regenerate the expected chunks of each recording and print which changed: read the diff before you commit it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson

from moot.convert.dialects.frames import Frames
from moot.plugins import DIALECTS
from moot.providers.shapes import shape_of
from moot.types.canonical import JsonObject
from moot.types.event import Raw
from moot.types.exchange import Ended, ExchangeOptions

RECORDED = Path(__file__).parent / "recorded"

OPTIONS = ExchangeOptions("1.0", 1, (), {"provider": "recorded"})


def cutter(dialect: str) -> Frames:
    """Return a splitter for the bodies of a dialect."""
    shape = shape_of(dialect)
    assert shape is not None
    return shape.frames()


def raws_of(dialect: str, body: bytes) -> list[Raw]:
    """Return the frames of a recorded body, including its truncated tail."""
    frames = cutter(dialect)
    whole = list(frames.feed(body))
    rest = frames.rest()
    return whole if rest is None else [*whole, rest]


def expected(dialect: str, raws: list[Raw], ended: Ended = "eof") -> JsonObject:
    """Return a recording's events with their chunks, those of the close, and the ending."""
    translator: Any = DIALECTS.load(dialect)().translator
    state = translator.open(OPTIONS)
    events: list[Any] = []
    for raw in raws:
        state, chunks = translator.feed(state, raw)
        events.append(list(chunks))
    closing, ending = translator.close(state, ended)
    return {"converter": f"{translator.name}/{translator.version}", "events": events, "close": list(closing), "ending": ending.to_json()}


def recordings() -> list[Path]:
    """Return every recorded body of a dialect."""
    return sorted(path for path in RECORDED.glob("*/*.*") if path.suffix in (".sse", ".ndjson") and path.parent.name in DIALECTS)


def main() -> None:
    for path in recordings():
        beside = path.with_suffix(".chunks.json")
        written = orjson.dumps(expected(path.parent.name, raws_of(path.parent.name, path.read_bytes())), option=orjson.OPT_INDENT_2) + b"\n"
        if not beside.exists() or beside.read_bytes() != written:
            beside.write_bytes(written)
            sys.stdout.write(f"changed {beside.relative_to(RECORDED.parent.parent)}\n")


if __name__ == "__main__":
    main()
