"""Server-sent events as bytes: one frame per chunk; consecutive deltas of one part are joined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from moot.convert.unfold import Version
from moot.server.streams.view import Blobs, view
from moot.types.canonical import JsonObject, dumps
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, finish
from moot.types.event import Event

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"

Position = tuple[int, int]
"""The seq of an event and the index of a chunk in it; used as the `id` of a frame."""

WHOLE = 1 << 31
"""Chunk index of a position after the whole event."""

_POSITION = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,12}))?")

_JOINED = {"text-delta": "delta", "reasoning-delta": "delta", "tool-input-delta": "inputTextDelta"}
"""Chunk types of deltas that can be joined, with the name of the field that contains the text."""
_OF = {"text-delta": "id", "reasoning-delta": "id", "tool-input-delta": "toolCallId"}
_PLAIN = 3
"""Number of fields of a delta that can be joined: type, id and text."""


def position_of(header: str) -> Position | None:
    """Parse a `Last-Event-ID`: `seq.k`, or `seq` for the whole event. Return None if it has another format."""
    match = _POSITION.fullmatch(header.strip())
    return None if match is None else (int(match[1]), int(match[2]) if match[2] else WHOLE)


def frame(value: JsonObject, id: str = "") -> bytes:
    """Encode one event of a stream."""
    return b"id: %s\ndata: %s\n\n" % (id.encode(), dumps(value)) if id else b"data: %s\n\n" % dumps(value)


def comment(text: str) -> bytes:
    """Encode a comment, which clients ignore."""
    return b": %s\n\n" % " ".join(text.split()).encode()


Step: TypeAlias = Literal["open", "closed", "left"]
"""State of a step (`start-step` to `finish-step`) at a client. `left` = the client's last stream ended inside the step and closed it."""

_CONTENT = frozenset({"text-start", "reasoning-start", "tool-input-start", "tool-input-available", "tool-input-error"})
"""Chunks that belong inside a step."""
_CLOSING = frozenset({"finish-step", "finish", "abort"})


class ChunkFrames:
    """Encoder of chunks for one version of the AI SDK. Between calls, it only remembers the state of the step.

    A client gets complete steps in each stream. If the run starts to wait inside a step, the step is closed for the client. The next stream
    contains the rest of the step: as a new step if it has content, otherwise without `finish-step`.
    """

    def __init__(self, version: Version, step: Step = "closed") -> None:
        self.step: Step = step
        self._version: Version = version
        self._written: list[bytes] = []
        self._kind = ""
        self._part: object = None
        self._pieces: list[str] = []
        self._at: Position = (0, 0)

    def write(self, events: Iterable[Event], after: Position, blobs: Blobs) -> bytes:
        """Encode the events' chunks after the position `after`.

        Consecutive deltas of the same part become one frame with the last one's id.
        """
        seq, index = after
        for event in events:
            skipped = index if event.seq == seq else -1
            if event.seq < seq:
                continue
            for k, chunk in enumerate(event.chunks):
                if k > skipped:
                    self._add(chunk, event.seq, k, blobs)
        self._end_delta()
        written, self._written = b"".join(self._written), []
        return written

    def replay(self, chunks: Sequence[Chunk], last: Position, blobs: Blobs) -> bytes:
        """Encode chunks that represent everything up to the position `last`, which is the id of the last frame. Other frames have no id."""
        whole = [piece for chunk in chunks for piece in self._bordered(chunk)]
        shown = [chunk for chunk in (view(chunk, self._version, blobs) for chunk in whole) if chunk is not None]
        frames = [frame(chunk) for chunk in shown[:-1]]
        frames += [frame(chunk, f"{last[0]}.{last[1]}" if last[0] else "") for chunk in shown[-1:]]
        return b"".join(frames)

    def leave(self) -> bytes:
        """Encode the end of a stream whose run is waiting for the client: `finish-step` if a step is open, then `finish`."""
        chunks = [FINISH_STEP, finish("tool-calls")] if self.step == "open" else [finish("tool-calls")]
        self.step = "left" if self.step == "open" else self.step
        return b"".join(frame(chunk) for chunk in chunks)

    def _bordered(self, chunk: Chunk) -> tuple[Chunk, ...]:
        """Return the chunk, preceded by `start-step` or `finish-step` if missing. Return () if the client must not get the chunk."""
        kind, before = str(chunk.get("type")), self.step
        if kind == "start-step":
            self.step = "open"
        elif kind in _CLOSING:
            self.step = "closed"
        elif before == "left" and kind in _CONTENT:
            self.step = "open"
            return (START_STEP, chunk)
        if kind == "finish-step":
            return (chunk,) if before == "open" else ()
        return (FINISH_STEP, chunk) if before == "open" and (kind == "start-step" or kind in _CLOSING) else (chunk,)

    def _add(self, chunk: Chunk, seq: int, k: int, blobs: Blobs) -> None:
        kind = chunk["type"]
        name = _JOINED.get(kind) if isinstance(kind, str) else None
        if name is None or len(chunk) != _PLAIN:
            self._end_delta()
            for piece in self._bordered(chunk):
                shown = view(piece, self._version, blobs)
                if shown is not None and piece is not chunk:
                    self._written.append(frame(shown))
                elif shown is not None:
                    self._written.append(b"id: %d.%d\ndata: %s\n\n" % (seq, k, dumps(shown)))
            return
        part, piece = chunk.get(_OF[kind]), chunk.get(name)  # type: ignore[index]
        if kind != self._kind or part != self._part:
            self._end_delta()
            self._kind, self._part = str(kind), part
        self._pieces.append(piece if isinstance(piece, str) else "")
        self._at = (seq, k)

    def _end_delta(self) -> None:
        if not self._pieces:
            return
        kind = self._kind
        chunk = {"type": kind, _OF[kind]: self._part, _JOINED[kind]: "".join(self._pieces)}
        self._written.append(b"id: %d.%d\ndata: %s\n\n" % (*self._at, dumps(chunk)))
        self._pieces.clear()
        self._kind = ""
