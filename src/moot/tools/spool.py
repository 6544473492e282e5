"""What a command writes: all of it up to a size, then the beginning and the end."""

from __future__ import annotations

from moot.guard.terminal import clean
from moot.types.limits import TAIL_BYTES as SHOWN_TAIL_BYTES
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.store import Blobs
from moot.types.tool import Whole

__all__ = ["Spool", "shown"]

HEAD_BYTES = 4_000_000
TAIL_BYTES = 200_000
_HEAD_CHARACTERS = 8_000
_TAIL_CHARACTERS = TOOL_OUTPUT_CHARACTERS - _HEAD_CHARACTERS - 1_000


class Spool:
    """Takes bytes without end and holds a bounded part of them."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = HEAD_BYTES - len(self._head)
        self._head += piece[:room]
        self._tail += piece[max(room, 0) :]
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def data(self) -> bytes:
        """What is held; where bytes are missing it says how many."""
        tail = bytes(self._tail[-TAIL_BYTES:])
        missing = self.total - len(self._head) - len(tail)
        return bytes(self._head) + (b"\n[%d bytes left out]\n" % missing if missing else b"") + tail


async def shown(spool: Spool, blobs: Blobs) -> tuple[str, Whole | None]:
    """The output as a model reads it: no control sequences, invalid UTF-8 replaced; all of a long one is in a blob."""
    data = spool.data()
    text = clean(data.decode("utf-8", "replace"))
    if len(text) <= _HEAD_CHARACTERS + _TAIL_CHARACTERS:
        return text, None
    blob = await blobs.put(data, "text/plain")
    left_out = len(text) - _HEAD_CHARACTERS - _TAIL_CHARACTERS
    middle = f"\n[… {left_out:,} characters left out; read_file shows all with path blob:{blob.sha256} …]\n"
    tail = text[-SHOWN_TAIL_BYTES:].encode()[-SHOWN_TAIL_BYTES:].decode("utf-8", "ignore")
    return text[:_HEAD_CHARACTERS] + middle + text[-_TAIL_CHARACTERS:], Whole(blob.sha256, blob.size, data.count(b"\n") + 1, tail)
