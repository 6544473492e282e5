"""One raw frame of a server-sent event stream, read: its event name and its data, and that data as JSON."""

from __future__ import annotations

import json

from moot.types import canonical
from moot.types.canonical import Json

_BOM = b"\xef\xbb\xbf"
_FIELDS = frozenset({b"data", b"event", b"id", b"retry"})


def is_event(raw: bytes) -> bool:
    """Whether a frame is part of an event stream at all; a whole JSON or HTML body answered in its place is not."""
    text = raw.removeprefix(_BOM).lstrip()
    if not text:
        return True
    return text[:1] not in (b"<", b"{", b"[") and any(line[:1] == b":" or line.partition(b":")[0] in _FIELDS for line in text.splitlines())


def read(raw: bytes) -> tuple[str, bytes]:
    """Event name and data of a frame, both empty where the frame has none: a comment, a keep-alive."""
    event, data = b"", list[bytes]()
    for line in raw.removeprefix(_BOM).splitlines():
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
    return event.decode("utf-8", "replace"), b"\n".join(data)


def parse(data: bytes) -> Json:
    """Any JSON value that a vendor can write, without lone surrogates, NaN or invalid UTF-8. Raises ValueError."""
    try:
        return canonical.loads(data)
    except ValueError:
        pass
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return canonical.loads(canonical.dumps(value))
