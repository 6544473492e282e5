"""Code shared by all translators of provider streams: the fields of their state, the parsing of frames to events, and the ending."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from moot.convert.dialects import frames
from moot.convert.vendor import as_object, as_text, failure
from moot.convert.writer import Parts, Writer, begin
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage

NO_FACTS: JsonObject = {"response_id": None}
"""The facts about an answer whose events contain none."""

_BODY = 1000
"""Maximum number of bytes and of characters to keep of a body that was sent instead of a stream. This is enough for an error message."""


class StreamState(Protocol):
    """The fields that all translator states have in common."""

    @property
    def parts(self) -> Parts: ...

    @property
    def provider(self) -> str: ...

    @property
    def facts(self) -> JsonObject | None: ...

    @property
    def error(self) -> JsonObject | None: ...

    @property
    def unreadable(self) -> int: ...

    @property
    def body(self) -> str: ...

    def _replace(self, **changes: Any) -> Self: ...  # public in every NamedTuple


S = TypeVar("S", bound=StreamState)


def event_of(data: bytes, field: bytes, filled: re.Pattern[bytes]) -> JsonObject | None:
    """Parse an event. Return None if the data is not an object.

    If the data contains `field` (a quick check) and matches `filled`, it may contain a call's input. In that case, integers keep all their
    digits.
    """
    try:
        event = frames.parse(data)
    except ValueError:
        return None
    if not isinstance(event, dict) or field not in data or filled.search(data) is None:
        return event if isinstance(event, dict) else None
    try:
        return as_object(canonical.loads_exact(data)) or event
    except ValueError:
        return event


def start_of_body(state: StreamState, raw: bytes) -> str:
    """Return the start of a body that was sent instead of a stream, including the piece `raw`."""
    return (state.body + raw[:_BODY].decode("utf-8", "replace"))[:_BODY]


class Turn(Generic[S]):
    """Handler of one event."""

    metadata: ClassVar[str]
    """The dialect's name in a part's metadata."""

    def __init__(self, state: S) -> None:
        self._state = state
        self.writer = Writer(state.parts)

    @property
    def state(self) -> S:
        parts = self.writer.parts
        return self._state if parts is self._state.parts else self._state._replace(parts=parts)  # pyright: ignore[reportPrivateUsage]

    def take(self, event: JsonObject, name: str) -> None:
        """Handle an event. `name` is the event name of its frame."""
        raise NotImplementedError

    def end_open(self) -> None:
        """Close the open part. Attach the metadata that must be sent back to its provider."""
        self.writer.end()

    def fail(self, error: Json) -> None:
        """Record the vendor's error, unless there is an earlier one."""
        if self._state.error is None:
            self._state = self._state._replace(error=failure(error).to_json())  # pyright: ignore[reportPrivateUsage]

    def made_by(self, fields: JsonObject) -> JsonObject:
        """Return `providerMetadata` with these fields and the provider's name."""
        return {self.metadata: {**fields, "provider": self._state.provider} if self._state.provider else fields}

    def close(
        self,
        ended: Ended,
        *,
        whole: bool,
        reason: str,
        raw_reason: str,
        usage: Usage,
        cost: int | None = None,
        error: Failure | None = None,
        facts: JsonObject | None = None,
    ) -> tuple[tuple[Chunk, ...], Ending]:
        """Close everything that is open and return the ending.

        `whole` is True if the answer is complete. `error` is the failure if the finish reason indicates one. `facts` are added to the
        metadata.
        """
        state, seen = self._state, self._state.facts is not None
        whole = whole and state.error is None
        if state.error is not None:
            error = Failure.from_json(state.error)
        if error is None and ended != "cancelled" and (not whole or (seen and state.unreadable)):
            error = _unfinished(state.unreadable, state.body, seen=seen)
        self.end_open()
        self.writer.close(cut=not whole)
        metadata: JsonObject = {name: value for name, value in (state.facts or {}).items() if value is not None} | (facts or {})
        if state.unreadable:
            metadata["unreadable_events"] = state.unreadable
        return tuple(self.writer.chunks), Ending("error" if error else reason, raw_reason or None, usage, cost, error, metadata)


def _unfinished(unreadable: int, body: str, *, seen: bool) -> Failure:
    """Return the failure of an answer that has gaps, is truncated or empty, or is not a stream."""
    if seen and unreadable:  # events that are not JSON: their content is lost
        return Failure(f"{unreadable} of the answer's events could not be read: something may be missing", "transport", retryable=True)
    if seen:
        return Failure("the answer was cut off before its end", "transport", retryable=True)
    if body:
        what = "HTML" if body.lstrip("\ufeff \r\n\t").startswith("<") else "something that is no event stream"
        return Failure(f"the endpoint answered with {what}: {body.strip()[:200]!r}; check its base_url", "protocol")
    if unreadable:
        return Failure(f"none of the {unreadable} events of the answer could be read", "protocol")
    return Failure("the answer ended before it said anything", "transport", retryable=True)


class StreamTranslator(Generic[S]):
    """Base class of the translators. Each adds `close`, and `feed` with a fast path for events that only append to the open part."""

    name: ClassVar[str]
    version = 1
    _begin: Callable[[Parts, str], S]
    """Type of the translator's state."""
    _turn: Callable[[S], Turn[S]]
    """Type of the handler of one event."""
    _input: ClassVar[tuple[bytes, re.Pattern[bytes]]]
    """Arguments `field` and `filled` of `event_of`."""

    def open(self, options: ExchangeOptions) -> S:
        return self._begin(begin(options), as_text(options.extra.get("provider")))

    def spoiled(self, state: S) -> bool:
        return state.unreadable > 0 and state.facts is not None

    def _feed_frame(self, state: S, raw: Raw) -> tuple[S, tuple[Chunk, ...]]:
        frame = frames.read(raw)
        if frame is None:
            return self._feed_body(state, raw)
        name, data = frame
        return self._feed_data(state, data, name, cut=raw[-1:] not in (b"\n", b"\r")) if data.strip() else (state, ())

    def _feed_data(self, state: S, data: bytes, name: str, *, cut: bool = False) -> tuple[S, tuple[Chunk, ...]]:
        event = event_of(data, *self._input)
        if event is None:
            unread = not cut and data.strip() != b"[DONE]"  # many servers end any stream with this marker
            return (state._replace(unreadable=state.unreadable + 1) if unread else state), ()  # pyright: ignore[reportPrivateUsage]
        turn = self._turn(state)
        turn.take(event, name)
        return turn.state, tuple(turn.writer.chunks)

    def _feed_body(self, state: S, raw: bytes) -> tuple[S, tuple[Chunk, ...]]:
        """Handle a body that was sent instead of a stream. If there were events before it, it is a truncated event and is ignored."""
        if state.facts is not None:
            return state, ()
        if raw.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"{":
            after, chunks = self._feed_data(state, raw.removeprefix(b"\xef\xbb\xbf"), "")
            if not after.unreadable:
                return after, chunks
        return state._replace(body=start_of_body(state, raw)), ()  # pyright: ignore[reportPrivateUsage]
