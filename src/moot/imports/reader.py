"""Reader of a source in a worker thread. Its messages and records pass through a bounded queue in batches, called pieces.

A piece ends when it has 256 entries or 512 KiB. At most two pieces are queued; then the reader waits. Therefore, memory use does not depend
on the size of a conversation.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream

from moot.convert.imports import digest_of
from moot.errors import MootError
from moot.formats.kit.documents import Continuable, GrowingFile, GrowingSession, lines_in
from moot.formats.kit.files import open_regular
from moot.formats.kit.unread import Checker, read_checked
from moot.imports.arrivals import digest_of_record, encode_arrival
from moot.imports.sources import Source
from moot.providers.catalogue import cost_at, listed_price
from moot.types.canonical import Json, JsonObject
from moot.types.format import (
    TOTAL_OF,
    Entry,
    HasCompanions,
    ImportedConversation,
    ImportedFacts,
    ImportedMessage,
    merge_facts,
)
from moot.types.imports import FirstMessage, IncomingEntry
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
    state: ReadingState | None = None
    """State from which the next reading can continue."""
    may_change: bool = False
    """True if the entries of this batch may still change. The next reading that continues reads them again."""


@dataclass(slots=True)
class Summary:
    """Facts about the entries of a conversation that were taken so far."""

    messages: int = 0
    started: bool = False
    """True once there is content other than the entries that a program writes into every new session."""
    title: str = ""
    """First line of the first prompt."""
    unpriced: int = 0
    first_at: int = 0
    last_at: int = 0
    first: FirstMessage | None = None
    last: bytes | None = None
    """Key of the last message."""
    problems: int = 0
    notes: tuple[str, ...] = ()


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

    def __init__(self, prices: PriceSettings | None = None, states: ReadingStates | None = None) -> None:
        """With `states`, only the lines that were appended to a source are read, if possible."""
        self._prices = Prices(prices)
        self._states = states

    async def read(self, source: Source, send: Send) -> str:
        def sent(piece: Piece) -> None:
            anyio.from_thread.run(send, piece)

        return await anyio.to_thread.run_sync(read, source, self._prices, sent, self._states)


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


def read(source: Source, prices: Prices, take: Callable[[Piece], None], states: ReadingStates | None = None) -> str:
    """Read a source and pass its entries to `take` in batches. Return a description of the problem, or an empty string. Blocks."""
    conversations: Iterator[ImportedConversation] = iter(())
    try:
        if states is None or not states.read(source, prices, take):
            conversations = source.format.read(source.path)
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
    before: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    """Key of a message that the previous reading found → digest of its content. The message may have changed since then."""
    contents: dict[bytes, bytes] | None = None
    """The same for the messages of this reading, if they may still change; None if they can't change any more."""

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
            arrival = encode_arrival(entry)
            if self.before or self.contents is not None:
                content = digest_of(arrival.parts + arrival.metadata)
                arrival = arrival._replace(compare=arrival.compare or self.before.get(arrival.key, content) != content)
                if self.contents is not None:
                    self.contents[arrival.key] = content
            self.arrivals.append(arrival)
            return
        digest = digest_of_record(entry)
        seen = self.occurrences.get(digest, 0)
        if seen or len(self.occurrences) < _REPEATED:
            self.occurrences[digest] = seen + 1
        self.arrivals.append(encode_arrival(entry, seen))

    def fill(
        self,
        conversation: ImportedConversation,
        entries: Iterable[Entry],
        prices: Prices,
        take: Callable[[Piece], None],
        state: ReadingState | None = None,
        *,
        is_first: bool = True,
    ) -> bool:
        """Collect the entries, and pass each batch that is full to `take`. Return whether the next batch is the first one."""
        for entry in entries:
            self.add(entry, prices)
            if len(self.arrivals) >= _ENTRIES or self.size >= _BYTES:
                take(self.piece(conversation, is_first=is_first, is_last=False, state=state))
                self.clear()
                is_first = False
        return is_first

    def piece(self, conversation: ImportedConversation, *, is_first: bool, is_last: bool, state: ReadingState | None = None) -> Piece:
        """Return the collected entries as a batch, with all facts known so far."""
        self.facts = self.facts if len(self.facts) == 1 else [merge_facts(self.facts)]
        may_change = self.contents is not None
        return Piece(conversation, tuple(self.arrivals), self.facts[0], self.size, is_first, is_last, state, may_change)

    def clear(self) -> None:
        """Start the next batch."""
        self.arrivals, self.size = [], 0

    def copy(self) -> _NextPiece:
        """Return an empty batch after this one, for entries that may still change."""
        return _NextPiece(self.program, [], list(self.facts), 0, dict(self.occurrences), self.before, {})


def _conversation(conversation: ImportedConversation, prices: Prices, take: Callable[[Piece], None], program: str) -> None:
    gathered = _NextPiece(program)
    is_first = gathered.fill(conversation, conversation.entries, prices, take)
    take(gathered.piece(conversation, is_first=is_first, is_last=True))


# ── continued reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_SMALLEST = 128 << 10
"""Minimum size in bytes of a source that is continued. Reading a smaller one as a whole takes only a few milliseconds."""
_KEPT, _KEPT_BYTES = 32, 48 << 20
"""Maximum number of states, and maximum number of bytes that they need in memory together."""
_OCCURRENCE = 100
"""Number of bytes in memory for each distinct record, approximately."""


Marks: TypeAlias = tuple[tuple[int, int], ...]
"""Size and time of modification of each file that exists."""


def _companions(source: Source) -> Marks:
    found: list[tuple[int, int]] = []
    for path in source.format.companions(source.path) if isinstance(source.format, HasCompanions) else ():
        with suppress(OSError):
            about = path.stat(follow_symlinks=False)
            found.append((about.st_size, about.st_mtime_ns))
    return tuple(found)


@dataclass(slots=True)
class ReadingState:
    """The state of reading a source up to its last complete line, from which the next reading continues."""

    session: GrowingSession
    checker: Checker
    gathered: _NextPiece
    kept: ReadingStates
    beside: Marks
    """States of the source's companions."""
    file: GrowingFile = field(default_factory=GrowingFile)
    summary: Summary = field(default_factory=Summary)
    """Summary of the entries that can't change any more."""
    id: str = ""
    """Id of the stored conversation. Empty until everything that was read is stored."""

    @property
    def size(self) -> int:
        """Number of bytes in memory, approximately."""
        return self.session.reader.size + _OCCURRENCE * len(self.gathered.occurrences)

    def fits(self, file: BinaryIO) -> bool:
        """Return whether the reading can continue with the further lines of the file, and move to the first of them."""
        if not self.file.has_only_grown(file):
            return False
        position = file.tell()
        is_fitting = self.session.fits(lines_in(file))
        file.seek(position)
        return is_fitting

    def read(self, file: BinaryIO, prices: Prices, take: Callable[[Piece], None]) -> None:
        """Read the lines from the position of the file, and pass their entries to `take` in batches."""
        conversation, gathered = self.session.conversation, self.gathered
        entries = self.checker.entries(self.session.reader.take(self.file.lines(file)))
        is_first = gathered.fill(conversation, entries, prices, take, self)
        if gathered.arrivals:
            take(gathered.piece(conversation, is_first=is_first, is_last=False, state=self))
            is_first = False
        gathered.clear()
        rest = gathered.copy()
        is_first = rest.fill(conversation, self._rest(), prices, take, self, is_first=is_first)
        gathered.before = rest.contents or {}
        take(rest.piece(conversation, is_first=is_first, is_last=True, state=self))

    def _rest(self) -> Iterator[Entry]:
        """Yield the entries that may still change."""
        yield from self.checker.copy().entries(self.session.reader.rest(self.file.tail))

    def keep(self, path: Path, id: str) -> None:
        """Let the next reading of the source continue here, because everything that was read is stored as the conversation `id`."""
        self.id = id
        self.file.tail = None  # up to 64 MiB, which the next reading reads again
        self.kept.keep(path, self)


class ReadingStates:
    """The states of the sources that were read last. They are kept in memory, and dropped if they are too many or too large."""

    def __init__(self, smallest: int = _SMALLEST) -> None:
        """`smallest` is the size in bytes of the smallest source that is continued."""
        self._smallest = smallest
        self._kept: dict[Path, ReadingState] = {}
        self.used = 0
        """Number of readings that continued an earlier one."""

    def read(self, source: Source, prices: Prices, take: Callable[[Piece], None]) -> bool:
        """Read the lines that were appended to a source since the last reading, or the whole source if that is not possible.

        Return False if this source can't be continued, so that nothing was read.
        """
        found, format = self._kept.pop(source.path, None), source.format
        if not isinstance(format, Continuable) or source.mark.size < self._smallest:
            return False
        beside = _companions(source)
        with open_regular(source.path) as file:
            if found is None or found.beside != beside or not found.fits(file):
                session = format.growing(source.path)
                if session is None:
                    return False
                found = ReadingState(session, Checker.of(format), _NextPiece(source.program), self, beside)
                file.seek(0)
            self.used += bool(found.id)
            found.read(file, prices, take)
        for conversation in read_checked(format, found.session.others(), source.name):
            found.file.is_continuable = False
            _conversation(conversation, prices, take, source.program)
        return True

    def keep(self, path: Path, state: ReadingState) -> None:
        conversation = state.session.conversation
        # the call that started a sub-agent may become known later, in another file
        is_complete = conversation.parent is None or conversation.parent_call is not None
        if state.file.is_continuable and is_complete and state.size <= _KEPT_BYTES:  # a larger one would displace all others
            self._kept[path] = state
        while len(self._kept) > _KEPT or sum(one.size for one in self._kept.values()) > _KEPT_BYTES:
            del self._kept[next(iter(self._kept))]
