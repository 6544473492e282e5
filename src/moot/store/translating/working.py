"""One run, or the calls beside the runs of a conversation, translated by the converters that are here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from moot.convert.differences import Difference, differences, first_difference
from moot.convert.fold import Folder
from moot.convert.translators import Again, TranslatorFailed
from moot.store.connect import Queries
from moot.store.events import Events
from moot.store.overlays import Translated, newest_of
from moot.store.rows import exchange_of, kept, kept_object
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import OURS, Exchange, converter_of
from moot.types.part import Part, is_settled, is_tool
from moot.types.provider import Translator
from moot.types.verify import Translators, Upgrade

__all__ = ["Due", "Work", "due", "worked"]

_PAGE = 512
_TOLD = ("finish_reason", "usage", "error")
"""Of an ending: what somebody would notice."""
_SHOWN = 5
"""Differences of a message that are told."""
_EXCHANGE = (
    "e.id, e.run, c.id, e.purpose, e.dialect, e.converter, e.provider, e.model, e.options, e.request, e.chunk_format, e.ended"
    " FROM exchange AS e JOIN conversation AS c ON c.no = e.conversation"
)


@dataclass(frozen=True, slots=True)
class Due:
    """What can be translated anew: the exchanges of an ended run, or those of a conversation beside its runs."""

    conversation: str
    no: int
    """Of the conversation."""
    run: str
    message: str
    """Empty = none."""
    first_seq: int
    last_seq: int
    exchanges: tuple[Exchange, ...]


@dataclass(slots=True)
class Work:
    """What came of it: what is told, and what is to be stored."""

    upgrade: Upgrade
    changed: dict[str, list[tuple[int, tuple[Chunk, ...]]]] = field(default_factory=dict[str, list[tuple[int, tuple[Chunk, ...]]]])
    """By exchange, in the order of the log."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """First and last event of each exchange."""
    endings: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    converters: dict[str, str] = field(default_factory=dict[str, str])
    ended_otherwise: int = 0
    message: tuple[bytes, bytes] | None = None
    """Parts and metadata, when they become others."""


def due(queries: Queries, conversation: tuple[int, str], translators: Translators) -> Iterator[Due]:
    """Each run of the conversation with an exchange that a newer converter is here for, in order; then the calls beside the runs."""
    no, id = conversation
    found: Any = queries.execute(
        f"SELECT {_EXCHANGE} LEFT JOIN run AS r ON r.id = e.run WHERE e.conversation = ? AND e.ended IS NOT NULL ORDER BY r.no, e.rowid",
        (no,),
    )
    by_run: dict[str, list[Exchange]] = {}
    for row in found.fetchall():
        try:
            exchange = exchange_of(row)
        except ValueError:
            continue  # `moot verify` names it
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
    """The converter that is here, when it is newer than the one whose chunks are shown."""
    translator = translators(exchange.converter)
    if translator is None or "redacted" in exchange.request:  # what is left of its raw gives other chunks
        return None
    shown = newest_of(queries, exchange.id)
    version = converter_of(exchange.converter if shown is None else shown.converter).version
    return translator if version < translator.version else None


class _Anew:
    """One exchange on its way through its newer converter."""

    def __init__(self, queries: Queries, exchange: Exchange, translators: Translators) -> None:
        translator = translators(exchange.converter)
        assert translator is not None
        self.exchange = exchange
        self.converter = f"{translator.name}/{translator.version}"
        self.shown = newest_of(queries, exchange.id)
        self._again = Again(translator, exchange.options)

    def made(self, event: Event, work: Work) -> tuple[Chunk, ...] | None:
        """The event's chunks by the newer converter; None for what moot added itself. Raises TranslatorFailed."""
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
        work.endings[self.exchange.id] = kept_object(dumps(ending.to_json()))
        if not OURS.items() <= event.body.items():  # an error of moot's own stands over whatever the converter says
            told = {name: event.body.get(name) for name in _TOLD}
            work.ended_otherwise += first_difference(told, {name: work.endings[self.exchange.id].get(name) for name in _TOLD}) is not None
        marks = [chunk for chunk in event.chunks[-1:] if chunk.get("type") == "data-attempt"]
        return (*chunks, *marks)


def worked(queries: Queries, events: Events, what: Due, translators: Translators) -> Work:
    """What the newer converters make of it; nothing to be stored where it is left as it is."""
    steps = tuple(dict.fromkeys(f"{one.converter} → {_to(one, translators)}" for one in what.exchanges))
    told = Upgrade(what.conversation, what.run, tuple(one.id for one in what.exchanges), steps)
    try:
        return _Working(queries, events, what, translators, told).work()
    except TranslatorFailed as error:
        return Work(_skipped(told, str(error)))
    except ValueError as error:
        return Work(_skipped(told, f"it is damaged: {error}; see `moot verify`"))


def _to(exchange: Exchange, translators: Translators) -> str:
    translator = translators(exchange.converter)
    return "" if translator is None else f"{translator.name}/{translator.version}"


def _skipped(told: Upgrade, why: str) -> Upgrade:
    return Upgrade(told.conversation, told.run, told.exchanges, told.converters, skipped=why)


class _Working:
    """Two folds side by side: what is shown now, and what the newer converters give."""

    def __init__(self, queries: Queries, events: Events, what: Due, translators: Translators, told: Upgrade) -> None:
        self._queries = queries
        self._events = events
        self._what = what
        self._told = told
        self._now, self._then = Folder(), Folder()
        self._anew = {one.id: _Anew(queries, one, translators) for one in what.exchanges}
        self._others: dict[str, Translated | None] = {}
        self._aside = {row[0] for row in queries.execute("SELECT id FROM exchange WHERE run = ? AND purpose <> 'answer'", (what.run,))}
        self._chunks = [0, 0]
        self.result = Work(told)

    def work(self) -> Work:
        """Raises TranslatorFailed, and ValueError for what is damaged."""
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
                    raise ValueError(f"event {event.seq} does not fit its check")
                if what.run or event.exchange in self._anew:
                    yield event
            after = page[-1].seq
            if after >= what.last_seq:
                return

    def _event(self, event: Event) -> None:
        anew = self._anew.get(event.exchange or "")
        shown = self._shown(event, anew)
        now = event.chunks if shown is None else shown
        then = now
        if anew is not None:
            made = anew.made(event, self.result)
            if made is not None:
                then = made
                if dumps(then) != dumps(event.chunks):
                    self.result.changed.setdefault(anew.exchange.id, []).append((event.seq, then))
                self._chunks[0] += len(now)
                self._chunks[1] += len(then)
        if event.exchange not in self._aside:
            self._now.feed_all(now)
            self._then.feed_all(then)

    def _shown(self, event: Event, anew: _Anew | None) -> tuple[Chunk, ...] | None:
        """What readers get of it now, when that is not what the log has."""
        if event.exchange is None:
            return None
        if anew is not None:
            translated = anew.shown
        elif event.exchange in self._others:
            translated = self._others[event.exchange]
        else:
            translated = self._others[event.exchange] = newest_of(self._queries, event.exchange)
        return None if translated is None else translated.chunks(self._queries, event.seq)

    def _judge(self) -> None:
        told, then = self._told, self._then.parts()
        now = self._now.parts()
        if (lost := _lost(now, then)) and self._what.run:
            self.result = Work(_skipped(told, f"calls would lose what came of them: {', '.join(sorted(lost)[:3])}"))
            return
        self.result.converters = {id: anew.converter for id, anew in self._anew.items()}
        places = islice(differences(_stored(now), _stored(then)), _SHOWN) if self._what.run else iter(())
        shown: list[Difference] = list(places)
        self.result.upgrade = Upgrade(
            told.conversation,
            told.run,
            told.exchanges,
            told.converters,
            sum(len(events) for events in self.result.changed.values()),
            (self._chunks[0], self._chunks[1]),
            self.result.ended_otherwise,
            tuple((one.where, one.expected, one.found) for one in shown),
        )
        if self._what.message:
            self.result.message = (dumps(then), dumps(self._then.metadata()))


def _stored(parts: Sequence[Part]) -> Json:
    return kept(dumps(parts))


def _lost(before: Sequence[Part], after: Sequence[Part]) -> set[str]:
    """Calls that had come to an end and would not have any more: moot's own outputs name them by the ids that the first converter gave."""
    return _settled(before) - _settled(after)


def _settled(parts: Sequence[Part]) -> set[str]:
    return {str(part.get("toolCallId")) for part in parts if is_tool(part) and is_settled(part)}
