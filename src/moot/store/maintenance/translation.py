"""Translating old exchanges with newer converters: computed on the reader thread, stored per run, in addition to the log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from moot.convert.comparison import differences, first_difference
from moot.convert.exchanges import Retranslation, TranslatorFailed
from moot.convert.fold import Folder
from moot.store import lookup
from moot.store.database.connection import Connection, Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log.events import Events, StoredTranslation, encode_chunks, newest_of
from moot.store.lookup import all_conversations
from moot.store.rows import EXCHANGE, auxiliary_exchanges, exchange_of, parse_stored, parse_stored_object, plain_or_damaged
from moot.store.search.semantic import forget_vectors
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import FAILED_BY_MOOT, Exchange, converter_of
from moot.types.message import Message, Part, is_settled, is_tool
from moot.types.provider import Translator
from moot.types.verify import Translators, Upgrade

_PAGE = 512
_REPORTED = ("finish_reason", "usage", "error")  # fields of an ending that users notice
_SHOWN = 5  # maximum number of reported differences in a message


@dataclass(frozen=True, slots=True)
class Due:
    """Exchanges that can be translated again: those of an ended run, or of a conversation outside runs."""

    conversation: str
    no: int
    """Number (`no`) of the conversation."""
    run: str
    message: str
    """Id of the run's message; empty outside runs."""
    first_seq: int
    last_seq: int
    exchanges: tuple[Exchange, ...]


@dataclass(slots=True)
class Work:
    """A new translation, with its report and the rows to store."""

    upgrade: Upgrade
    changed: dict[str, list[tuple[int, tuple[Chunk, ...]]]] = field(default_factory=dict[str, list[tuple[int, tuple[Chunk, ...]]]])
    """Translated events by exchange, in log order."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """First and last event of each exchange."""
    endings: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    converters: dict[str, str] = field(default_factory=dict[str, str])
    ended_otherwise: int = 0
    message: tuple[bytes, bytes] | None = None
    """New parts and metadata of the run's message; None outside runs, or if there is nothing to store."""


def due(queries: Queries, conversation: tuple[int, str], translators: Translators) -> Iterator[Due]:
    """Yield the exchanges that a newer converter can translate: first those outside runs, then those of each ended run, in order."""
    no, id = conversation
    found: Any = queries.execute(
        f"SELECT {EXCHANGE} LEFT JOIN run AS r ON r.id = e.run WHERE e.conversation = ? AND e.ended IS NOT NULL ORDER BY r.no, e.rowid",
        (no,),
    )
    by_run: dict[str, list[Exchange]] = {}
    for row in found.fetchall():
        try:
            exchange = exchange_of(row)
        except ValueError:
            continue  # `moot verify` reports the damage
        if _newer(queries, exchange, translators) is not None:
            by_run.setdefault(exchange.run, []).append(exchange)
    for exchanges in by_run.values():
        if (made := _due(queries, no, id, tuple(exchanges))) is not None:
            yield made


def _due(queries: Queries, no: int, id: str, exchanges: tuple[Exchange, ...]) -> Due | None:
    run = exchanges[0].run
    if not run:
        return Due(id, no, "", "", 1, 1 << 32, exchanges)
    row: Any = queries.execute(
        "SELECT message, first_seq, last_seq FROM run WHERE id = ? AND status IN ('finished', 'failed', 'cancelled')", (run,)
    ).fetchone()
    return None if row is None else Due(id, no, run, row[0], row[1], row[2], exchanges)


def _newer(queries: Queries, exchange: Exchange, translators: Translators) -> Translator[Any] | None:
    """Return the available converter if it is newer than the one whose chunks are shown."""
    translator = translators(exchange.converter)
    if translator is None or "redacted" in exchange.request:  # redacted raw produces different chunks
        return None
    shown = newest_of(queries, exchange.id)
    version = converter_of(exchange.converter if shown is None else shown.converter).version
    return translator if version < translator.version else None


class _Retranslation:
    def __init__(self, queries: Queries, exchange: Exchange, translators: Translators) -> None:
        translator = translators(exchange.converter)
        assert translator is not None
        self.exchange = exchange
        self.converter = f"{translator.name}/{translator.version}"
        self.shown = newest_of(queries, exchange.id)
        self._again = Retranslation(translator, exchange.options)

    def made(self, event: Event, work: Work) -> tuple[Chunk, ...] | None:
        """Return the event's new chunks; None for events that moot itself added. Raise TranslatorFailed if the converter raises it."""
        first, last = work.ranges.get(self.exchange.id, (event.seq, event.seq))
        work.ranges[self.exchange.id] = (min(first, event.seq), max(last, event.seq))
        if event.kind == "raw" and event.raw is not None:
            return self._again.feed(event.raw, event.body)
        if event.kind != "exchange" or event.phase != "end" or not isinstance(event.body, dict):
            return None
        ended = event.body.get("ended")
        if ended not in ("eof", "cut", "cancelled"):
            return None
        chunks, ending = self._again.close(ended)
        work.endings[self.exchange.id] = parse_stored_object(dumps(ending.to_json()))
        if not FAILED_BY_MOOT.items() <= event.body.items():  # an error detected by moot takes precedence over the converter's ending
            old = {name: event.body.get(name) for name in _REPORTED}
            new = {name: work.endings[self.exchange.id].get(name) for name in _REPORTED}
            work.ended_otherwise += first_difference(old, new) is not None
        marks = [chunk for chunk in event.chunks[-1:] if chunk.get("type") == "data-attempt"]
        return (*chunks, *marks)


def translate(queries: Queries, events: Events, what: Due, translators: Translators) -> Work:
    """Translate with the newer converters; the result contains nothing to store if the run must stay unchanged."""
    steps = tuple(dict.fromkeys(f"{one.converter} → {_to(one, translators)}" for one in what.exchanges))
    report = Upgrade(what.conversation, what.run, tuple(one.id for one in what.exchanges), steps)
    try:
        return _Translation(queries, events, what, translators, report).work()
    except TranslatorFailed as error:
        return Work(replace(report, skipped=str(error)))
    except ValueError as error:
        return Work(replace(report, skipped=f"it is damaged: {error}; see `moot verify`"))


def _to(exchange: Exchange, translators: Translators) -> str:
    translator = translators(exchange.converter)
    return "" if translator is None else f"{translator.name}/{translator.version}"


class _Translation:
    """Two parallel folds: the current content, and the content with the newer converters."""

    def __init__(self, queries: Queries, events: Events, what: Due, translators: Translators, report: Upgrade) -> None:
        self._queries = queries
        self._events = events
        self._what = what
        self._report = report
        self._now, self._then = Folder(), Folder()
        self._newer = {one.id: _Retranslation(queries, one, translators) for one in what.exchanges}
        self._others: dict[str, StoredTranslation | None] = {}
        self._auxiliary = auxiliary_exchanges(queries, what.run)
        self._chunks = [0, 0]
        self.result = Work(report)

    def work(self) -> Work:
        """Translate all events and return the result. Raise TranslatorFailed, or ValueError for damaged data."""
        for event in self._log():
            self._event(event)
        self._judge()
        return self.result

    def _log(self) -> Iterator[Event]:
        what, after = self._what, self._what.first_seq - 1
        while page := self._events.page(self._queries, what.no, after, _PAGE, what.run or None):
            for event in page:
                if event.run != (what.run or None):
                    continue
                if event.kind == "meta" and isinstance(event.body, dict) and event.body.get("damaged") is True:
                    raise ValueError(f"event {event.seq} does not match its checksum")
                if what.run or event.exchange in self._newer:
                    yield event
            after = page[-1].seq
            if after >= what.last_seq:
                return

    def _event(self, event: Event) -> None:
        newer = self._newer.get(event.exchange or "")
        shown = self._shown(event, newer)
        now = event.chunks if shown is None else shown
        then = now
        if newer is not None:
            made = newer.made(event, self.result)
            if made is not None:
                then = made
                if dumps(then) != dumps(event.chunks):
                    self.result.changed.setdefault(newer.exchange.id, []).append((event.seq, then))
                self._chunks[0] += len(now)
                self._chunks[1] += len(then)
        if event.exchange not in self._auxiliary:
            self._now.feed_all(now)
            self._then.feed_all(then)

    def _shown(self, event: Event, newer: _Retranslation | None) -> tuple[Chunk, ...] | None:
        """Return the chunks that readers currently see, if they differ from the log."""
        if event.exchange is None:
            return None
        if newer is not None:
            translated = newer.shown
        elif event.exchange in self._others:
            translated = self._others[event.exchange]
        else:
            translated = self._others[event.exchange] = newest_of(self._queries, event.exchange)
        return None if translated is None else translated.chunks(self._queries, event.seq)

    def _judge(self) -> None:
        report, then = self._report, self._then.parts()
        now = self._now.parts()
        if (lost := _settled(now) - _settled(then)) and self._what.run:
            self.result = Work(replace(report, skipped=f"tool calls would lose their outputs: {', '.join(sorted(lost)[:3])}"))
            return
        self.result.converters = {id: newer.converter for id, newer in self._newer.items()}
        places = islice(differences(_stored(now), _stored(then)), _SHOWN) if self._what.run else ()
        self.result.upgrade = replace(
            report,
            events=sum(len(events) for events in self.result.changed.values()),
            chunks=(self._chunks[0], self._chunks[1]),
            endings=self.result.ended_otherwise,
            differences=tuple((one.where, one.expected, one.found) for one in places),
        )
        if self._what.message:
            self.result.message = (dumps(then), dumps(self._then.metadata()))


def _stored(parts: Sequence[Part]) -> Json:
    return parse_stored(dumps(parts))


def _settled(parts: Sequence[Part]) -> set[str]:
    return {str(part.get("toolCallId")) for part in parts if is_tool(part) and is_settled(part)}


_STRETCH = 256  # events per stored row


def put(what: Due, work: Work, transaction: Transaction) -> bool:
    """Store a translation; return False, without changes, if another process has stored it already."""
    if any(
        (transaction.row("SELECT 1 FROM translation WHERE exchange = ? AND converter = ? LIMIT 1", (id, converter)) is not None)
        for id, converter in work.converters.items()
    ):
        return False
    for id, converter in work.converters.items():
        _put_exchange(transaction, what, work, id, converter)
    if work.message is not None:
        _put_message(transaction, what.message, *work.message)
    return True


def _put_exchange(transaction: Transaction, what: Due, work: Work, exchange: str, converter: str) -> None:
    """Store rows that cover the exchange from its first to its last event without gaps, even if nothing changed."""
    first, last = work.ranges[exchange]
    changed = work.changed.get(exchange, [])
    stretches = [changed[begin : begin + _STRETCH] for begin in range(0, len(changed), _STRETCH)] or [[]]
    for number, stretch in enumerate(stretches, 1):
        is_last = number == len(stretches)
        through = last if is_last else stretch[-1][0]
        ending = dumps(work.endings[exchange]) if is_last and exchange in work.endings else None
        transaction.execute(
            "INSERT INTO translation (conversation, converter, first_seq, last_seq, chunks, exchange, ending, made_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (what.no, converter, first, through, encode_chunks(stretch), exchange, ending, transaction.now_ms),
        )
        first = through + 1


def _put_message(transaction: Transaction, id: str, parts: bytes, metadata: bytes) -> None:
    row: Any = transaction.row("SELECT parts, metadata, no FROM message WHERE id = ?", (id,))
    if row is None or (plain_or_damaged(row[0]), row[1]) == (parts, metadata):
        return
    transaction.execute("UPDATE message SET parts = ?, metadata = ? WHERE id = ?", (parts, metadata, id))
    transaction.execute("UPDATE message SET is_indexed = 0 WHERE id = ? AND is_indexed = 1", (id,))
    forget_vectors(transaction, row[2])


class StoreTranslations:
    """The SQLite implementation of `Translations`."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader
        self._events = Events()

    async def upgrade(
        self, translators: Translators, *, conversation: str | None = None, store: bool = True
    ) -> AsyncGenerator[Upgrade, None]:
        async for each in self._conversations(conversation):
            for what in await self._reader.read(lambda connection, each=each: list(due(connection, each, translators))):
                work = await self._reader.read(partial(translate, events=self._events, what=what, translators=translators))
                if store and work.converters and not await self._writer.write(partial(put, what, work), what.conversation):
                    continue
                yield work.upgrade

    async def _conversations(self, only: str | None) -> AsyncGenerator[tuple[int, str], None]:
        if only is not None:
            found = await self._reader.read(lambda connection: lookup.conversation(connection, only))
            yield found.no, found.id
            return
        async for each in all_conversations(self._reader):
            yield each

    async def first(self, messages: Sequence[Message]) -> list[Message]:
        return [await self._reader.read(partial(self._first, message)) for message in messages]

    def _first(self, message: Message, connection: Connection) -> Message:
        if message.run is None or message.status in ("streaming", "interrupted"):
            return message
        folder = Folder()
        self._events.fold(connection, lookup.number(connection, message.conversation), message.run, folder)
        return replace(message, parts=folder.parts(), metadata=folder.metadata())

    async def converters(self, conversation: str) -> dict[str, str]:
        def look(connection: Connection) -> dict[str, str]:
            found: Any = connection.execute(
                "SELECT DISTINCT exchange, converter FROM translation WHERE conversation = ?", (lookup.number(connection, conversation),)
            )
            return dict(sorted(found.fetchall(), key=lambda row: converter_of(row[1]).version))

        return await self._reader.read(look)
