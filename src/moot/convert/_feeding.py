"""The first look at a frame, for all stream translators: the event in it, or a body sent in place of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, TypeVar

from moot.convert import _sse
from moot.convert._vendor import as_object
from moot.types import canonical
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk

_BODY = 1000
"""Bytes and characters kept of a body sent in place of a stream: enough for an error message."""


class Fed(Protocol):
    """The fields that all translator states have in common."""

    @property
    def facts(self) -> JsonObject | None: ...

    @property
    def unreadable(self) -> int: ...

    @property
    def body(self) -> str: ...


S = TypeVar("S", bound=Fed)


def event_of(data: bytes, field: bytes, filled: re.Pattern[bytes]) -> JsonObject | None:
    """Parse an event, or return None if the data is not an object.

    If `filled` finds an object in the field, integers keep all their digits: they are a call's input.
    """
    try:
        event = _sse.parse(data)
    except ValueError:
        return None
    if not isinstance(event, dict) or field not in data or filled.search(data) is None:
        return event if isinstance(event, dict) else None
    try:
        return as_object(canonical.loads_exact(data)) or event
    except ValueError:
        return event


def feed_body(
    state: S, raw: bytes, feed: Callable[[S, bytes, str], tuple[S, tuple[Chunk, ...]]], with_body: Callable[[str], S]
) -> tuple[S, tuple[Chunk, ...]]:
    """Feed a complete answer sent in place of a stream. After the first event it is the truncated end of one and is ignored."""
    if state.facts is not None:
        return state, ()
    if raw.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"{":
        after, chunks = feed(state, raw.removeprefix(b"\xef\xbb\xbf"), "")
        if not after.unreadable:
            return after, chunks
    return with_body((state.body + raw[:_BODY].decode("utf-8", "replace"))[:_BODY]), ()
