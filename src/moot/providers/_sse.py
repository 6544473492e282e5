"""Socket reads to raw frames: where one server-sent event ends and the next begins (HTML Standard, section 9.2)."""

from __future__ import annotations

import re

from moot.errors import ProviderError
from moot.types.event import Raw

MAX_FRAME = 16 * 1024 * 1024
MAX_BODY = 512 * 1024 * 1024
KEPT = 64 * 1024
"""What a ProviderError keeps of bytes that were refused."""

_EOL = rb"(?:\r\n|\n|\r(?!\n))"
_BOUNDARY = re.compile(_EOL + _EOL)
_LF_FRAME = re.compile(rb"[^\n]*\n(?:[^\n]+\n)*\n")
_BLANK = b" \t\r\n\xef\xbb\xbf"
_SEAM = 3
"""A boundary has at most four bytes, so at most this many of them lie before a read."""


class Frames:
    """Splits a decoded body as it comes in; the frames and the rest, joined, are the body to the last byte.

    A frame ends with the first blank line after its start, whatever the line ends (LF, CRLF, CR). A body that begins like JSON or HTML
    is no event stream: it is one frame, given by `rest`. A blank line that ends in a bare CR waits for the next byte, which may belong
    to it. Nothing is held but the unfinished frame.
    """

    def __init__(self, *, max_frame: int = MAX_FRAME, max_body: int = MAX_BODY) -> None:
        self._max_frame = max_frame
        self._max_body = max_body
        self._pending = bytearray()
        self._size = 0
        self._started = False
        self._whole = False
        self._mixed = False

    def feed(self, data: bytes) -> tuple[Raw, ...]:
        """The frames that this read completes. Raises ProviderError (protocol) for a frame or body over its limit."""
        self._size += len(data)
        if self._size > self._max_body:
            self._pending.clear()
            raise too_large("body", self._max_body, data)
        if not self._started:
            return self._begin(data)
        if self._whole:
            self._hold(data)
            return ()
        self._mixed = self._mixed or b"\r" in data
        return self._split(data)

    def rest(self) -> Raw | None:
        """What came after the last whole frame: a cut tail, or the one frame of a body that is no event stream; None when nothing did."""
        tail = bytes(self._pending)
        self._pending.clear()
        return tail or None

    def _begin(self, data: bytes) -> tuple[Raw, ...]:
        """Holds leading blanks until the first byte that says what kind of body this is."""
        first = data.lstrip(_BLANK)[:1]
        if not first:
            self._hold(data)
            return ()
        self._started = True
        self._whole = first in b"{[<"
        if self._whole:
            self._hold(data)
            return ()
        window = bytes(self._pending) + data
        self._pending.clear()
        self._mixed = b"\r" in window
        return self._split(window)

    def _split(self, data: bytes) -> tuple[Raw, ...]:
        pending = self._pending
        window = bytes(pending[-_SEAM:]) + data if pending else data
        frames, tail = _split_any(window) if self._mixed else _split_lf(window)
        if not frames:
            self._hold(data)
            return ()
        if pending:
            frames[0] = bytes(pending[:-_SEAM]) + frames[0]
            pending.clear()
        if len(frames[0]) > self._max_frame or len(window) > self._max_frame:
            self._check(frames)
        self._hold(tail)
        return tuple(frames)

    def _hold(self, data: bytes) -> None:
        if len(self._pending) + len(data) > self._max_frame:
            held = bytes(self._pending[:KEPT]) + data[:KEPT]
            self._pending.clear()
            raise too_large("frame", self._max_frame, held)
        self._pending += data

    def _check(self, frames: list[bytes]) -> None:
        for frame in frames:
            if len(frame) > self._max_frame:
                self._pending.clear()
                raise too_large("frame", self._max_frame, frame)


def too_large(what: str, limit: int, raw: bytes) -> ProviderError:
    """The error for an answer that has outgrown what we hold of one."""
    message = f"the answer's {what} is larger than {limit:,} bytes"
    return ProviderError(message, fix="check that the base_url is a model's endpoint", kind="protocol", raw=raw[:KEPT])


def _split_lf(window: bytes) -> tuple[list[bytes], bytes]:
    """The common case, in few passes of C code: a frame costs about a tenth of a microsecond."""
    first = window.find(b"\n\n")
    if first < 0:
        return [], window
    if window.find(b"\n", 0, first) < 0:  # a line a frame, as openai-chat sends it
        lines = window.split(b"\n")
        count = (len(lines) - 1) // 2 * 2
        if not any(lines[1:count:2]):
            return [line + b"\n\n" for line in lines[0:count:2]], b"\n".join(lines[count:])
    # the end is fixed first, so that the pattern always fits and never tries again from every byte of a long tail
    frames = _LF_FRAME.findall(window, 0, window.rfind(b"\n\n") + 2)
    return frames, window[sum(map(len, frames)) :]


def _split_any(window: bytes) -> tuple[list[bytes], bytes]:
    frames: list[bytes] = []
    start = 0
    for match in _BOUNDARY.finditer(window):
        end = match.end()
        if end == len(window) and window.endswith(b"\r"):
            break
        frames.append(window[start:end])
        start = end
    return frames, window[start:]
