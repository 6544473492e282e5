"""Parsing of one frame of a server-sent event stream: its event name, its data, and the data as JSON."""

from __future__ import annotations

import json
import re

from moot.types import canonical
from moot.types.canonical import Json

_BOM = b"\xef\xbb\xbf"
_LINES = re.compile(rb"\r\n|\n|\r")
_FIELDS = frozenset({b"data", b"event", b"id", b"retry"})


def read(raw: bytes) -> tuple[str, bytes] | None:
    """Return event name and data of a frame, both empty if it has none (a comment, a keep-alive).

    Return None if it is not a frame but a JSON or HTML body sent in place of a stream.
    """
    if raw.endswith(b"\n\n") and b"\r" not in raw:
        head, _, rest = raw.partition(b"\n")
        if head.startswith(b"data: ") and rest == b"\n":
            return "", head[6:]
        if head.startswith(b"event: ") and rest.startswith(b"data: ") and rest.find(b"\n") == len(rest) - 2:
            return head[7:].decode("utf-8", "replace"), rest[6:-2]
    return _read_lines(raw.removeprefix(_BOM).lstrip())


def _read_lines(text: bytes) -> tuple[str, bytes] | None:
    if text[:1] in (b"<", b"{", b"["):
        return None
    event, data, known = b"", list[bytes](), not text
    for line in _LINES.split(text):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        known = known or not name or name in _FIELDS
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
    return (event.decode("utf-8", "replace"), b"\n".join(data)) if known else None


def parse(data: bytes) -> Json:
    """Parse any JSON value that a vendor sends, replacing lone surrogates, NaN and invalid UTF-8. Raise ValueError."""
    try:
        return canonical.loads(data)
    except ValueError:
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return canonical.loads(canonical.dumps(value))
