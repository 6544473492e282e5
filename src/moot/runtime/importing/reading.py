"""A source read by its format, in a thread or a process of its own, in pieces behind a bounded queue.

A piece has at most 256 entries or half a megabyte, or one entry that is larger; two wait at most. Then the reader waits too, so memory
holds a few pieces, however long a conversation is.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from moot.convert.arriving import arrived, digest_of_record
from moot.errors import MootError
from moot.runtime.importing.pricing import Prices
from moot.runtime.importing.sources import Source
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedMessage, together
from moot.types.imports import Arrival

__all__ = ["Here", "Piece", "Pieces", "Reading", "Send", "pieces_of", "read"]

log = logging.getLogger("moot.importing")

_ENTRIES = 256
_BYTES = 512 << 10
_WAITING = 2
_LATEST = 1 << 42
"""ms: the year 2109. What comes later is no time."""
_REPEATED = 100_000
"""Different records of one conversation of which it is known how often they were there."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the entries of a conversation, in order."""

    conversation: ImportedConversation
    arrivals: tuple[Arrival, ...]
    facts: ImportedFacts
    """What is known of the conversation by now; in the last piece all of it."""
    size: int
    """Bytes of raw."""
    is_first: bool
    is_last: bool


@dataclass(slots=True)
class Pieces:
    """Those of one source, as they come."""

    receive: MemoryObjectReceiveStream[Piece]
    problem: str = ""
    """Why it was not read to its end; known when nothing comes any more."""

    def __aiter__(self) -> MemoryObjectReceiveStream[Piece]:
        return self.receive


Send: TypeAlias = Callable[[Piece], Coroutine[None, None, None]]
"""Waits as long as nobody has room for the piece. Raises BrokenResourceError when nobody wants it."""


class Reading(Protocol):
    """Whoever reads sources."""

    async def read(self, source: Source, send: Send) -> str:
        """Hands over each piece in order; what went wrong, empty = nothing."""
        ...


class Here:
    """`Reading` in a thread of this process."""

    def __init__(self) -> None:
        self._prices = Prices()

    async def read(self, source: Source, send: Send) -> str:
        def sent(piece: Piece) -> None:
            anyio.from_thread.run(send, piece)

        return await anyio.to_thread.run_sync(read, source, self._prices, sent)


@asynccontextmanager
async def pieces_of(source: Source, reading: Reading) -> AsyncGenerator[Pieces, None]:
    """The pieces of a source, while it is read. What its reader raises ends them and is their `problem`."""
    send, receive = anyio.create_memory_object_stream[Piece](_WAITING)
    pieces = Pieces(receive)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_reading, source, reading, pieces, send)
        async with receive:
            yield pieces


async def _reading(source: Source, reading: Reading, pieces: Pieces, send: MemoryObjectSendStream[Piece]) -> None:
    async with send:
        pieces.problem = await reading.read(source, send.send)


_Take: TypeAlias = Callable[[Piece], None]


def read(source: Source, prices: Prices, take: _Take) -> str:
    """Hands over each piece in order; what went wrong, empty = nothing. Blocks."""
    conversations = source.format.read(source.path)
    try:
        for conversation in conversations:
            _conversation(conversation, prices, take)
    except anyio.BrokenResourceError:
        return "nobody wants to know any more"
    except MootError as error:
        return error.advice()
    except OSError as error:
        return f"can't read {str(source.path)!r}: {error.strerror or error}"
    except Exception as error:  # a format may be anybody's: whatever is wrong with it costs this source and no other
        log.warning("the format %r failed with %s", source.format.name, source.path, exc_info=error)
        return f"the format {source.format.name!r} failed: {type(error).__name__}: {error}"
    finally:
        if isinstance(conversations, _Closing):
            conversations.close()
    return ""


class _Closing(Iterator[object]):
    """What a generator is, for whoever wants to close it."""

    def close(self) -> None: ...


@dataclass(slots=True)
class _Gathered:
    """What a piece is made of."""

    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    facts: list[ImportedFacts] = field(default_factory=list[ImportedFacts])
    size: int = 0
    said: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Digest of a record → how often it was in the conversation."""

    def add(self, entry: Entry, prices: Prices) -> None:
        if isinstance(entry, ImportedFacts):
            self.facts.append(entry)
            return
        self.size += len(entry.raw)
        if isinstance(entry, ImportedMessage):
            self.arrivals.append(arrived(_sound(entry, prices)))
            return
        digest = digest_of_record(entry)
        seen = self.said.get(digest, 0)
        if seen or len(self.said) < _REPEATED:
            self.said[digest] = seen + 1
        self.arrivals.append(arrived(entry, seen))

    def told(self) -> ImportedFacts:
        """All facts so far, as one."""
        if len(self.facts) != 1:
            self.facts = [together(self.facts)]
        return self.facts[0]


def _conversation(conversation: ImportedConversation, prices: Prices, take: _Take) -> None:
    gathered, is_first = _Gathered(), True
    for entry in conversation.entries:
        gathered.add(entry, prices)
        if len(gathered.arrivals) >= _ENTRIES or gathered.size >= _BYTES:
            take(Piece(conversation, tuple(gathered.arrivals), gathered.told(), gathered.size, is_first, False))
            gathered.arrivals, gathered.size, is_first = [], 0, False
    take(Piece(conversation, tuple(gathered.arrivals), gathered.told(), gathered.size, is_first, True))


def _sound(entry: ImportedMessage, prices: Prices) -> ImportedMessage:
    """With a time that can be one, and the price of what it took."""
    metadata = prices.estimated(entry.metadata)
    at = entry.created_at if 0 <= entry.created_at < _LATEST else 0
    if at != entry.created_at or metadata is not entry.metadata:
        return replace(entry, created_at=at, metadata=metadata)
    return entry
