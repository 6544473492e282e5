"""Checking one exchange: its chunks are rebuilt from raw, and its ending and row compared with the log."""

from __future__ import annotations

from typing import Any

from moot.convert.differences import Difference, first_difference
from moot.convert.translators import Again, TranslatorFailed
from moot.store.connect import Queries
from moot.store.overlays import newest_of
from moot.store.rows import EXCHANGE, exchange_of, kept_object
from moot.store.verify.findings import Findings
from moot.store.verify.rows import Row, read_chunks, read_object
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.exchange import OURS, Ending, Exchange, converter_of
from moot.types.verify import Translators

__all__ = ["ExchangeJudge"]

_ENDED = ("eof", "cut", "cancelled")
_ALWAYS = ("raw_reason", "usage", "cost", "metadata")
"""Fields of an ending that only the translator knows."""


def exchange_row(queries: Queries, id: str) -> Exchange | None:
    row: Any = queries.execute(f"SELECT {EXCHANGE} WHERE e.id = ?", (id,)).fetchone()
    return None if row is None else exchange_of(row)


class ExchangeJudge:
    """An exchange from its start to its end."""

    def __init__(self, queries: Queries, exchange: Exchange, findings: Findings, translators: Translators) -> None:
        self.exchange = exchange
        self._findings = findings
        self._again: Again | None = None
        self._translated = newest_of(queries, exchange.id)
        self._of_newest = False
        """True if the newest translation is compared instead of the original one."""
        receipt = findings.receipt
        receipt.exchanges += 1
        receipt.translated += self._translated is not None
        if "redacted" in exchange.request:  # redacted raw produces different chunks
            receipt.redacted_exchanges += 1
            return
        translator = translators(exchange.converter)
        version = 0 if translator is None else translator.version
        if self._translated is not None and version == converter_of(self._translated.converter).version:
            self._of_newest = True
        elif translator is None or version != converter_of(exchange.converter).version:
            receipt.not_rebuilt[exchange.converter] = receipt.not_rebuilt.get(exchange.converter, 0) + 1
            return
        assert translator is not None
        try:
            self._again = Again(translator, exchange.options)
            receipt.rebuilt += 1
        except TranslatorFailed as error:
            self._give_up(error, f"exchange {exchange.id}", None)

    def shown(self, queries: Queries, row: Row) -> tuple[Chunk, ...] | None:
        """Return the event's chunks in the newest translation; None if they are those of the log."""
        return None if self._translated is None else self._translated.chunks(queries, row.seq)

    def raw(self, queries: Queries, row: Row) -> tuple[Chunk, ...] | None:
        """Check a frame's chunks and return them as readers see them; None = use those of the log, because they can't be rebuilt."""
        newer = self.shown(queries, row)
        if self._again is None or row.raw is None:
            return newer
        stored = row.chunks if newer is None or not self._of_newest else dumps(newer)
        try:
            made = self._again.feed(row.raw, None if row.body is None else read_object(row.body))
            content = dumps(made)
        except (TranslatorFailed, ValueError) as error:
            self._give_up(error, f"event {row.seq}", row.seq)
            return newer
        if content != stored:
            self._differ(row, made, stored)
            return newer
        return made if newer is None else newer

    def end(self, queries: Queries, row: Row, body: JsonObject) -> None:
        """Compare the closing chunks, the ending, and the row."""
        ended = body.get("ended")
        kept: Any = queries.execute("SELECT ended FROM exchange WHERE id = ?", (self.exchange.id,)).fetchone()
        if kept != (ended,):
            expected = f"ended {ended!r}, according to event {row.seq}"
            self._findings.add("record", f"exchange {self.exchange.id}", expected, f"{kept and kept[0]!r}", row.seq)
        if self._again is None or ended not in _ENDED:
            return
        try:
            chunks, ending = self._again.close(ended)
        except TranslatorFailed as error:
            self._give_up(error, f"event {row.seq}", row.seq)
            return
        newer = self.shown(queries, row) if self._of_newest else None
        stored = row.chunks if newer is None else dumps(newer)
        if dumps(chunks) != stored:
            self._differ(row, chunks, stored, closing=True)
        if self._of_newest and self._translated is not None:
            body = self._translated.ending(queries)
        if (found := _ending(ending, body)) is not None:
            self._findings.add("ending", f"event {row.seq}", f"{found.where}: {found.expected}", f"{found.where}: {found.found}", row.seq)

    def _differ(self, row: Row, made: tuple[Chunk, ...], data: bytes, *, closing: bool = False) -> None:
        try:
            stored = list(read_chunks(data))
        except ValueError:
            return  # already reported as unreadable
        if closing and stored and stored[-1].get("type") == "data-attempt":
            stored.pop()  # moot's own mark after an abandoned attempt
        # serialized and parsed again, so that only what can be stored is compared
        found = first_difference(list[Json](read_chunks(dumps(made))), list[Json](stored))
        if found is not None:
            where = f"{'translation, ' if self._of_newest else ''}chunks{found.where}"
            self._findings.add("chunks", f"event {row.seq}", f"{where}: {found.expected}", f"{where}: {found.found}", row.seq)

    def _give_up(self, error: Exception, where: str, seq: int | None) -> None:
        self._again = None
        self._findings.add("unreadable", where, "chunks from its raw bytes", str(error), seq)


def _ending(made: Ending, stored: JsonObject) -> Difference | None:
    """Return the first difference of the ending. Errors detected by moot, such as a broken connection, are not the translator's."""
    names = _ALWAYS if OURS.items() <= stored.items() else ("finish_reason", "error", *_ALWAYS)
    expected = kept_object(dumps(made.to_json()))  # in stored form
    return first_difference({name: expected.get(name) for name in names}, {name: stored.get(name) for name in names})
