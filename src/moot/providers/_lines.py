"""Splitting a response into raw frames of one line each: newline-delimited JSON, as Ollama streams it."""

from __future__ import annotations

from moot.convert._sse import MAX_BODY, MAX_FRAME, too_large
from moot.types.event import Raw


class Lines:
    """Splitter of a response body into lines as it arrives. All frames and the rest, joined, are exactly the body.

    Each frame includes its newline; an empty line is a frame too. Only the unfinished line is buffered.
    """

    def __init__(self, *, max_frame: int = MAX_FRAME, max_body: int = MAX_BODY) -> None:
        self._max_frame = max_frame
        self._max_body = max_body
        self._pending = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> tuple[Raw, ...]:
        """Return the lines that this read completes. Raise ProviderError (protocol) if a line or the body exceeds its limit."""
        self._size += len(data)
        if self._size > self._max_body:
            raise too_large("body", self._max_body, data)
        end = data.rfind(b"\n") + 1
        if not end:
            self._buffer(data)
            return ()
        frames = [line + b"\n" for line in data[: end - 1].split(b"\n")]
        if self._pending:
            frames[0] = bytes(self._pending) + frames[0]
            self._pending.clear()
        for frame in frames:
            if len(frame) > self._max_frame:
                raise too_large("line", self._max_frame, frame)
        self._buffer(data[end:])
        return tuple(frames)

    def rest(self) -> Raw | None:
        """Return the data after the last newline, or None."""
        tail = bytes(self._pending)
        self._pending.clear()
        return tail or None

    def _buffer(self, data: bytes) -> None:
        if len(self._pending) + len(data) > self._max_frame:
            buffered = bytes(self._pending) + data
            self._pending.clear()
            raise too_large("line", self._max_frame, buffered)
        self._pending += data
