"""The end of an exchange that never ended because its process died or its run was replaced."""

from __future__ import annotations

import dataclasses
from contextlib import suppress

from moot.convert.translators import Again, TranslatorFailed, translator_of
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import Ending, ExchangeOptions, Failure, end_body


class Cut:
    """Reader of a run's events, oldest first. `end` closes what the exchange's raw events left open."""

    def __init__(self, exchange: str, converter: str, options: ExchangeOptions) -> None:
        translator = translator_of(converter)
        self._exchange = exchange
        self._key: str | None = None
        self._again: Again | None = None
        self.is_open = False
        """The exchange has started, and no event in the log ends it."""
        with suppress(TranslatorFailed):  # what is open is then unknown, which `moot verify` reports
            self._again = Again(translator, options) if translator is not None else None

    def take(self, event: Event) -> None:
        """Process the next event; ignore other exchanges."""
        if event.exchange != self._exchange:
            return
        if event.kind == "exchange":
            self.is_open, self._key = event.phase == "start", event.key
        elif event.kind == "chunks":
            self.is_open = False  # given up by a leg that was itself interrupted
        elif event.kind == "raw" and self._again is not None:
            try:
                self._again.feed(event.raw or b"", event.body)
            except TranslatorFailed:
                self._again = None

    def end(self, run: str | None, failure: Failure) -> Event:
        """Return the event that ends the exchange as `cut`, with that failure."""
        chunks, ending = self._closing()
        ending = dataclasses.replace(ending, finish_reason="error", error=failure)
        return Event("exchange", chunks, None, run, self._exchange, "end", self._key, end_body(ending, "cut", ending.cost, failure))

    def _closing(self) -> tuple[tuple[Chunk, ...], Ending]:
        try:
            return self._again.close("cut") if self._again is not None else ((), Ending("error"))
        except TranslatorFailed:
            return (), Ending("error")
