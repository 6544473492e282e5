"""Reading of a source in a thread or process, in pieces through a bounded queue.

A piece has at most 256 entries or 512 KiB, or one larger entry. At most two pieces are queued; then the reader waits. So memory use does
not depend on the size of a conversation.
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
"""ms: the year 2109. Later times are invalid."""
_REPEATED = 100_000
"""Maximum number of distinct records of a conversation whose repetitions are counted."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive entries of a conversation."""

    conversation: ImportedConversation
    arrivals: tuple[Arrival, ...]
    facts: ImportedFacts
    """Facts known so far; complete in the last piece."""
    size: int
    """Bytes of raw."""
    is_first: bool
    is_last: bool


@dataclass(slots=True)
class Pieces:
    """The pieces of one source, received while it is read."""

    receive: MemoryObjectReceiveStream[Piece]
    problem: str = ""
    """Why the source was not read completely; set after the last piece."""

    def __aiter__(self) -> MemoryObjectReceiveStream[Piece]:
        return self.receive


Send: TypeAlias = Callable[[Piece], Coroutine[None, None, None]]
"""Function that sends a piece, waiting while the queue is full. Raise BrokenResourceError if the receiver is closed."""


class Reading(Protocol):
    """A reader of sources."""

    async def read(self, source: Source, send: Send) -> str:
        """Send each piece in order. Return the problem, or an empty string."""
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
    """Read a source and yield its pieces. An error of its reader ends them and becomes their `problem`."""
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
    """Send each piece in order. Return the problem, or an empty string. Blocks."""
    conversations = source.format.read(source.path)
    try:
        for conversation in conversations:
            _conversation(conversation, prices, take)
    except anyio.BrokenResourceError:
        return "the reader was cancelled"
    except MootError as error:
        return error.advice()
    except OSError as error:
        return f"can't read {str(source.path)!r}: {error.strerror or error}"
    except Exception as error:  # formats may be plugins: their bugs must affect only this source
        log.warning("the format %r failed with %s", source.format.name, source.path, exc_info=error)
        return f"the format {source.format.name!r} failed: {type(error).__name__}: {error}"
    finally:
        if isinstance(conversations, _Closing):
            conversations.close()
    return ""


class _Closing(Iterator[object]):
    """An iterator that can be closed, such as a generator."""

    def close(self) -> None: ...


@dataclass(slots=True)
class _Gathered:
    """Contents of the next piece."""

    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    facts: list[ImportedFacts] = field(default_factory=list[ImportedFacts])
    size: int = 0
    occurrences: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Digest of a record → number of occurrences in the conversation."""

    def add(self, entry: Entry, prices: Prices) -> None:
        if isinstance(entry, ImportedFacts):
            self.facts.append(entry)
            return
        self.size += len(entry.raw)
        if isinstance(entry, ImportedMessage):
            self.arrivals.append(arrived(_sound(entry, prices)))
            return
        digest = digest_of_record(entry)
        seen = self.occurrences.get(digest, 0)
        if seen or len(self.occurrences) < _REPEATED:
            self.occurrences[digest] = seen + 1
        self.arrivals.append(arrived(entry, seen))

    def merged_facts(self) -> ImportedFacts:
        """Return all facts so far as one."""
        if len(self.facts) != 1:
            self.facts = [together(self.facts)]
        return self.facts[0]


def _conversation(conversation: ImportedConversation, prices: Prices, take: _Take) -> None:
    gathered, is_first = _Gathered(), True
    for entry in conversation.entries:
        gathered.add(entry, prices)
        if len(gathered.arrivals) >= _ENTRIES or gathered.size >= _BYTES:
            take(Piece(conversation, tuple(gathered.arrivals), gathered.merged_facts(), gathered.size, is_first, False))
            gathered.arrivals, gathered.size, is_first = [], 0, False
    take(Piece(conversation, tuple(gathered.arrivals), gathered.merged_facts(), gathered.size, is_first, True))


def _sound(entry: ImportedMessage, prices: Prices) -> ImportedMessage:
    """Return the message with a valid time and estimated costs."""
    metadata = prices.estimated(entry.metadata)
    at = entry.created_at if 0 <= entry.created_at < _LATEST else 0
    if at != entry.created_at or metadata is not entry.metadata:
        return replace(entry, created_at=at, metadata=metadata)
    return entry
