"""Socket reads to raw frames where each line is one: newline-delimited JSON, as Ollama streams it."""

from __future__ import annotations

from moot.providers._sse import MAX_BODY, MAX_FRAME, too_large
from moot.types.event import Raw


class Lines:
    """Splits a decoded body at its newlines as it comes in; the frames and the rest, joined, are the body to the last byte.

    A line keeps its newline, whatever stands before it; an empty one is a frame too. Nothing is held but the unfinished line.
    """

    def __init__(self, *, max_frame: int = MAX_FRAME, max_body: int = MAX_BODY) -> None:
        self._max_frame = max_frame
        self._max_body = max_body
        self._pending = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> tuple[Raw, ...]:
        """The lines that this read completes. Raises ProviderError (protocol) for a line or body over its limit."""
        self._size += len(data)
        if self._size > self._max_body:
            raise too_large("body", self._max_body, data)
        end = data.rfind(b"\n") + 1
        if not end:
            self._hold(data)
            return ()
        frames = [line + b"\n" for line in data[: end - 1].split(b"\n")]
        if self._pending:
            frames[0] = bytes(self._pending) + frames[0]
            self._pending.clear()
        for frame in frames:
            if len(frame) > self._max_frame:
                raise too_large("line", self._max_frame, frame)
        self._hold(data[end:])
        return tuple(frames)

    def rest(self) -> Raw | None:
        """What came after the last newline; None when nothing did."""
        tail = bytes(self._pending)
        self._pending.clear()
        return tail or None

    def _hold(self, data: bytes) -> None:
        if len(self._pending) + len(data) > self._max_frame:
            held = bytes(self._pending) + data
            self._pending.clear()
            raise too_large("line", self._max_frame, held)
        self._pending += data
