"""Reader of a source in a worker thread. Its messages and records pass through a bounded queue in batches, called pieces.

A piece ends when it has 256 entries or 512 KiB. At most two pieces are queued; then the reader waits. Therefore, memory use does not depend
on the size of a conversation.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream

from moot.errors import MootError
from moot.formats.kit.unread import read_checked
from moot.imports.arrivals import digest_of_record, encode_arrival
from moot.imports.sources import Source
from moot.providers.catalogue import cost_at, listed_price
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, Entry, ImportedConversation, ImportedFacts, ImportedMessage, merge_facts
from moot.types.imports import IncomingEntry
from moot.types.model import Price
from moot.types.usage import Usage

_PRICE_PERIOD = 1_800_000  # ms; some prices depend on the time of day, and change at full and half hours
ESTIMATED = "cost_estimated"
"""Field of a step whose cost is unknown in the source and was estimated from the current list price of its tokens."""


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """Sources of prices in addition to the list in the package."""

    home: Path | None = None
    """moot's home, which may have a newer list."""
    own: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """Prices in the configuration, by `MODEL@PROVIDER` or model name."""


class Prices:
    """Cost estimates from the price list. Each model is looked up only once. Not thread-safe."""

    def __init__(self, settings: PriceSettings | None = None) -> None:
        self._settings = settings or PriceSettings()
        self._known: dict[tuple[str, str, int], Price | None] = {}

    def estimated(self, metadata: JsonObject, at: int = 0) -> JsonObject:
        """Add an estimated cost to each step that has usage, a known model and no cost. Return the same object if nothing was added.

        The prices are those at the time `at`, in ms since the epoch; 0 = now.
        """
        steps = metadata.get("steps")
        if not isinstance(steps, list):
            return metadata
        priced = [self._step(step, metadata, at // _PRICE_PERIOD * _PRICE_PERIOD) for step in steps]
        return metadata if all(one is other for one, other in zip(priced, steps, strict=True)) else {**metadata, "steps": priced}

    def _step(self, step: Json, metadata: JsonObject, at_time: int) -> Json:
        if not isinstance(step, dict) or step.get("cost") is not None:
            return step
        usage, model = step.get("usage"), step.get("model") or metadata.get("model")
        if not isinstance(usage, dict) or not isinstance(model, str):
            return step
        name, at, provider = model.rpartition("@")
        key = (name, provider, at_time) if at else (model, str(step.get("provider") or metadata.get("provider") or ""), at_time)
        if key not in self._known:
            own = self._settings.own
            self._known[key] = (
                own.get(f"{key[0]}@{key[1]}") or own.get(key[0]) or listed_price(key[1], key[0], at_time, self._settings.home)
            )
        table = self._known[key]
        if table is not None and step.get(TOTAL_OF):  # the sizes of the calls are unknown, so that prices for long inputs can't apply
            table = replace(table, tiers=())
        cost = cost_at(table, Usage.from_json(usage), str(step.get("service_tier") or "")) if table is not None else None
        return step if cost is None else {**step, "cost": cost, ESTIMATED: True}


log = logging.getLogger("moot.importing")

_ENTRIES = 256
_BYTES = 512 << 10
_WAITING = 2
_LATEST = 1 << 42
"""Upper limit for times in ms since the epoch, in the year 2109. Messages with a later time are stored without a time."""
_REPEATED = 100_000
"""Maximum number of distinct records per conversation for which duplicates are counted."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A batch of consecutive entries of a conversation."""

    conversation: ImportedConversation
    arrivals: tuple[IncomingEntry, ...]
    facts: ImportedFacts
    """Title, model and other facts about the conversation known so far; complete in the last batch."""
    size: int
    """Total size of the entries' raw data in bytes."""
    is_first: bool
    is_last: bool


@dataclass(slots=True)
class Pieces:
    """The entries of one source, received in batches while it is read."""

    receive: MemoryObjectReceiveStream[Piece]
    problem: str = ""
    """Why the source was not read completely, or empty if it was; set after the last batch."""

    def __aiter__(self) -> MemoryObjectReceiveStream[Piece]:
        return self.receive


Send: TypeAlias = Callable[[Piece], Coroutine[None, None, None]]
"""Function that sends a batch to the importer, waiting while the queue is full. Raise BrokenResourceError if the receiver is closed."""


class SourceReader(Protocol):
    """A reader that sends the entries of a source in batches."""

    async def read(self, source: Source, send: Send) -> str:
        """Read a source and send its entries in batches, in order. Return a description of the problem, or an empty string."""
        ...


class ThreadReader:
    """`SourceReader` that reads in a worker thread of this process."""

    def __init__(self, prices: PriceSettings | None = None) -> None:
        self._prices = Prices(prices)

    async def read(self, source: Source, send: Send) -> str:
        def sent(piece: Piece) -> None:
            anyio.from_thread.run(send, piece)

        return await anyio.to_thread.run_sync(read, source, self._prices, sent)


@asynccontextmanager
async def pieces_of(source: Source, reading: SourceReader) -> AsyncGenerator[Pieces, None]:
    """Read a source in the background and provide its entries in batches. If reading fails, they stop and `problem` is the error."""
    send, receive = anyio.create_memory_object_stream[Piece](_WAITING)
    pieces = Pieces(receive)

    async def read_all() -> None:
        async with send:
            pieces.problem = await reading.read(source, send.send)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_all)
        async with receive:
            yield pieces


def read(source: Source, prices: Prices, take: Callable[[Piece], None]) -> str:
    """Read a source and pass its entries to `take` in batches. Return a description of the problem, or an empty string. Blocks."""
    conversations = source.format.read(source.path)
    try:
        for conversation in read_checked(source.format, conversations, source.name):
            _conversation(conversation, prices, take, source.program)
    except anyio.BrokenResourceError:
        return "The reader was cancelled."
    except MootError as error:
        return error.advice()
    except OSError as error:
        return f"Can't read {str(source.path)!r}: {error.strerror or error}."
    except Exception as error:  # formats may be plugins: their bugs must affect only this source
        log.warning("the format %r failed to read %s", source.format.name, source.path, exc_info=error)
        return f"The format {source.format.name!r} failed: {type(error).__name__}: {error}"
    finally:
        if isinstance(conversations, _Closing):
            conversations.close()
    return ""


class _Closing(Iterator[object]):
    """An iterator that can be closed, such as a generator."""

    def close(self) -> None: ...


@dataclass(slots=True)
class _NextPiece:
    """The entries of a conversation collected for the next batch."""

    program: str
    """Like `Source.program`."""
    arrivals: list[IncomingEntry] = field(default_factory=list[IncomingEntry])
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
            # remove invalid times, and estimate missing costs
            at = entry.created_at if 0 <= entry.created_at < _LATEST else 0
            metadata = prices.estimated(entry.metadata, at)
            metadata = {**metadata, "agent": self.program} if self.program and "agent" in metadata else metadata
            if at != entry.created_at or metadata is not entry.metadata:
                entry = replace(entry, created_at=at, metadata=metadata)
            self.arrivals.append(encode_arrival(entry))
            return
        digest = digest_of_record(entry)
        seen = self.occurrences.get(digest, 0)
        if seen or len(self.occurrences) < _REPEATED:
            self.occurrences[digest] = seen + 1
        self.arrivals.append(encode_arrival(entry, seen))

    def piece(self, conversation: ImportedConversation, *, is_first: bool, is_last: bool) -> Piece:
        """Return the collected entries as a batch, with all facts known so far."""
        self.facts = self.facts if len(self.facts) == 1 else [merge_facts(self.facts)]
        return Piece(conversation, tuple(self.arrivals), self.facts[0], self.size, is_first, is_last)


def _conversation(conversation: ImportedConversation, prices: Prices, take: Callable[[Piece], None], program: str) -> None:
    gathered, is_first = _NextPiece(program), True
    for entry in conversation.entries:
        gathered.add(entry, prices)
        if len(gathered.arrivals) >= _ENTRIES or gathered.size >= _BYTES:
            take(gathered.piece(conversation, is_first=is_first, is_last=False))
            gathered.arrivals, gathered.size, is_first = [], 0, False
    take(gathered.piece(conversation, is_first=is_first, is_last=True))
