"""What a command writes: all of it up to a size, then the beginning and the end; never more in memory than a little of both."""

from __future__ import annotations

import codecs
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from anyio import to_thread

from moot.guard.terminal import Cleaner
from moot.types.limits import TAIL_BYTES as SHOWN_TAIL_BYTES
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.store import Blobs
from moot.types.tool import Whole

__all__ = ["KEPT_BYTES", "Spool", "shown"]

KEPT_BYTES = 64 << 20
"""Of more, the beginning and the end are kept; `tools.shell.kept_bytes` says otherwise."""
MEMORY_BYTES = 1 << 20
"""Of the beginning; more lies in a file without a name."""
TAIL_BYTES = 200_000
_PIECE = 1 << 18
_HEAD_CHARACTERS = 8_000
_TAIL_CHARACTERS = TOOL_OUTPUT_CHARACTERS - _HEAD_CHARACTERS - 1_000


@dataclass(frozen=True, slots=True)
class Held:
    """What a spool holds at one moment."""

    head: int
    """Bytes of the beginning."""
    missing: int
    tail: bytes


class Spool:
    """Takes bytes without end. A disk that takes no more ends the beginning, and never the command."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self.total = 0
        self._kept = kept
        self._head = 0
        self._tail = bytearray()
        self._file = tempfile.SpooledTemporaryFile(MEMORY_BYTES, prefix="moot-output-")  # noqa: SIM115 - `close` closes it
        # who is cancelled does not wait for its thread, which may still be writing when others read
        self._lock = threading.Lock()

    async def add(self, piece: bytes) -> None:
        if self.total + len(piece) <= MEMORY_BYTES:
            self._add(piece)
        else:
            await to_thread.run_sync(self._add, piece)

    def held(self) -> Held:
        """The state that `pieces` reads."""
        with self._lock:
            tail = bytes(self._tail[-TAIL_BYTES:])
            return Held(self._head, self.total - self._head - len(tail), tail)

    def pieces(self, held: Held) -> Iterator[bytes]:
        """What was held then; where bytes are missing it says how many. Reads a file: for a thread."""
        for at in range(0, held.head, _PIECE):
            with self._lock:
                self._file.seek(at)
                piece = self._file.read(min(_PIECE, held.head - at))
            yield piece
        if held.missing:
            yield b"\n[%d bytes left out]\n" % held.missing
        if held.tail:
            yield held.tail

    def end(self, size: int) -> bytes:
        """The last of it, at most so many bytes."""
        with self._lock:
            if len(self._tail) >= size:
                return bytes(self._tail[-size:])
            self._file.seek(max(0, self._head + len(self._tail) - size))
            return (self._file.read() + bytes(self._tail))[-size:]

    def close(self) -> None:
        """Gives the file back; nothing can be read any more."""
        with self._lock:
            self._file.close()

    def _add(self, piece: bytes) -> None:
        with self._lock:
            if self._file.closed:
                return
            self.total += len(piece)
            room = max(self._kept - self._head, 0)
            written = self._write(piece[:room]) if room and not self._tail else 0
            self._tail += piece[written:]
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]

    def _write(self, piece: bytes) -> int:
        """How many bytes the file took."""
        try:
            self._file.seek(self._head)
            self._file.write(piece)
            self._file.flush()
        except OSError:
            return 0  # what may have been written of it is written over, or never read
        self._head += len(piece)
        return len(piece)


class _Reading:
    """The text of a spool as a model and people see it: its ends, and how much it is."""

    def __init__(self) -> None:
        self.characters = 0
        self.rows = 1
        self.head = ""
        self.tail = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cleaner = Cleaner()

    def read(self, pieces: Iterator[bytes]) -> _Reading:
        for piece in pieces:
            self.rows += piece.count(b"\n")
            self._take(self._cleaner.feed(self._decoder.decode(piece)))
        self._take(self._cleaner.feed(self._decoder.decode(b"", final=True)) + self._cleaner.end())
        return self

    def _take(self, text: str) -> None:
        self.characters += len(text)
        if (room := _HEAD_CHARACTERS + _TAIL_CHARACTERS - len(self.head)) > 0:
            self.head += text[:room]
        self.tail = (self.tail + text)[-_TAIL_CHARACTERS:]


async def shown(spool: Spool, blobs: Blobs) -> tuple[str, Whole | None]:
    """The output as a model reads it: no control sequences, invalid UTF-8 replaced; all of a long one is in a blob."""
    held = spool.held()
    read = await to_thread.run_sync(_Reading().read, spool.pieces(held))
    left_out = read.characters - _HEAD_CHARACTERS - _TAIL_CHARACTERS
    if left_out <= 0:
        return read.head, None
    blob = await blobs.put_from(_threaded(spool.pieces(held)), "text/plain")
    middle = f"\n[… {left_out:,} characters left out; read_file shows all with path blob:{blob.sha256} …]\n"
    tail = read.tail[-SHOWN_TAIL_BYTES:].encode()[-SHOWN_TAIL_BYTES:].decode("utf-8", "ignore")
    return read.head[:_HEAD_CHARACTERS] + middle + read.tail, Whole(blob.sha256, blob.size, read.rows, tail)


async def _threaded(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (piece := await to_thread.run_sync(next, pieces, None)) is not None:
        yield piece
