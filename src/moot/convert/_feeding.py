"""A frame as both dialects see it at first: the event in it, to the letter where that counts, or what came in place of a stream."""

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
"""Bytes and characters that are kept of what came in place of a stream: enough to tell a person what it was."""


class Fed(Protocol):
    """What the states of both translators have."""

    @property
    def facts(self) -> JsonObject | None:
        """None = no event yet."""
        ...

    @property
    def unreadable(self) -> int: ...

    @property
    def body(self) -> str: ...


S = TypeVar("S", bound=Fed)


def event_of(data: bytes, field: bytes, filled: re.Pattern[bytes]) -> JsonObject | None:
    """The event that the data stands for; None for what is none.

    To the letter where the field holds an object, as `filled` finds it: the integers of a call's input must keep their digits.
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
    """A whole answer in place of a stream; after the first event it is the cut tail of one, and says nothing."""
    if state.facts is not None:
        return state, ()
    if raw.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"{":
        after, chunks = feed(state, raw.removeprefix(b"\xef\xbb\xbf"), "")
        if not after.unreadable:
            return after, chunks
    return with_body((state.body + raw[:_BODY].decode("utf-8", "replace"))[:_BODY]), ()
