"""Stored exchanges: find their translator, rebuild their chunks, end interrupted exchanges, and add up a run's totals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from moot.errors import MootError
from moot.plugins import DIALECTS, TRANSLATORS
from moot.types.canonical import Json
from moot.types.chunk import Chunk, tool_denied, tool_error, tool_input_error
from moot.types.event import REFUSED, SENT, Event, Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure, converter_of, end_body
from moot.types.message import Part, is_settled, is_tool, tool_name
from moot.types.provider import ReadsSentLines, Translator
from moot.types.usage import Usage


def totals(journal: Iterable[Event]) -> tuple[Usage, int | None, str]:
    """Return the usage and the cost (in nano-dollars) of all attempts in a run's events, and the last model.

    For an outside agent, the model is the one that the agent reports at the end. The usage of an attempt that a crash interrupted is
    unknown: its tokens are not counted. The cost is None if any part of it is unknown.
    """
    usage, model, reported = Usage(), "", ""
    costs: dict[str, int | None] = {}
    for event in journal:
        if event.key is None or not event.key.startswith("llm:") or not isinstance(event.body, dict):
            continue
        if event.phase == "start":
            model = str(event.body.get("model", ""))
            costs.setdefault(event.key, None)
        elif event.phase == "end":
            ending = Ending.from_json(event.body)
            usage += ending.usage
            reported = str(ending.metadata.get("model") or reported)
            charged = event.body.get("charged")
            costs[event.key] = charged if isinstance(charged, int) else None
    known = [cost for cost in costs.values() if cost is not None]
    return usage, sum(known) if known and len(known) == len(costs) else None, model or reported


CUT = "the stream ended before the call was whole"


def close_open(parts: Sequence[Part]) -> tuple[Chunk, ...]:
    """Return the chunks that end all open parts. An incomplete tool input ends with a `tool-input-error`."""
    chunks: list[Chunk] = []
    for part in parts:
        if part.get("state") not in ("streaming", "input-streaming"):
            continue
        if is_tool(part):
            value = part.get("rawInput", part.get("input"))
            chunks.append(tool_input_error(str(part.get("toolCallId")), tool_name(part), value, CUT))
        else:
            chunks.append({"type": f"{part.get('type')}-end", "id": str(part.get("id", ""))})
    return tuple(chunks)


def settle_calls(parts: Sequence[Part], why: str) -> tuple[Chunk, ...]:
    """Return chunks with an output for every call that has none:
    an error, or a denial if the call was not approved. `why` is the reason.
    """
    chunks: list[Chunk] = []
    for part in parts:
        if not is_tool(part) or is_settled(part) or part.get("state") == "input-streaming":
            continue
        id, approval = str(part.get("toolCallId")), part.get("approval")
        if not isinstance(approval, dict) or approval.get("approved") is True:
            chunks.append(tool_error(id, _so_far(part, why)))
            continue
        if "approved" not in approval:
            chunks.append({"type": "tool-approval-response", "approvalId": approval.get("id", ""), "approved": False, "reason": why})
        chunks.append(tool_denied(id))
    return tuple(chunks)


def _so_far(part: Part, why: str) -> str:
    shown = part.get("output") if part.get("state") == "output-available" else None
    return f"{why}; its output so far:\n{shown}" if isinstance(shown, str) and shown else why


def translator_of(converter: str) -> Translator[Any] | None:
    """Return the installed translator with this converter's name, in any version, or None if there is none or its plugin is broken."""
    name = converter_of(converter).name
    try:
        # a package can't replace a dialect by using its name
        if name in DIALECTS and (name not in TRANSLATORS or TRANSLATORS.package(name)):
            return DIALECTS.make(name).translator
        return TRANSLATORS.make(name) if name in TRANSLATORS else None
    except MootError:
        return None


class TranslatorFailed(Exception):
    """Raised if a translator raises an exception, which its protocol forbids."""


class Retranslation:
    """A repeated translation of one stored exchange, event by event. Errors of the translator are raised as TranslatorFailed."""

    def __init__(self, translator: Translator[Any], options: ExchangeOptions) -> None:
        self._translator = translator
        self._hears = translator if isinstance(translator, ReadsSentLines) else None
        try:
            self._state = translator.open(options)
        except Exception as error:
            raise _failed(translator, error) from error

    def feed(self, raw: Raw, body: Json = None) -> tuple[Chunk, ...]:
        """Return the chunks of the next event, with its raw bytes and body."""
        if body == REFUSED or (body == SENT and self._hears is None):
            return ()
        try:
            if body == SENT and self._hears is not None:
                self._state, chunks = self._hears.said(self._state, raw)
            else:
                self._state, chunks = self._translator.feed(self._state, raw)
        except Exception as error:
            raise _failed(self._translator, error) from error
        return chunks

    def close(self, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        """Return the chunks after the last event, and the ending."""
        try:
            return self._translator.close(self._state, ended)
        except Exception as error:
            raise _failed(self._translator, error) from error


def _failed(translator: Translator[Any], error: Exception) -> TranslatorFailed:
    return TranslatorFailed(f"the converter {translator.name}/{translator.version} raised {type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class RebuiltExchange:
    """The chunks of an exchange, as its translator currently produces them."""

    chunks: tuple[tuple[Chunk, ...], ...]
    """The chunks of each raw event, in order."""
    closing: tuple[Chunk, ...]
    ending: Ending


def rebuild(translator: Translator[Any], options: ExchangeOptions, raws: Sequence[Event], ended: Ended) -> RebuiltExchange:
    """Translate the raw events of an exchange. Raise TranslatorFailed if the translator raises an exception."""
    again = Retranslation(translator, options)
    made = tuple(again.feed(event.raw or b"", event.body) for event in raws)
    closing, ending = again.close(ended)
    return RebuiltExchange(made, closing, ending)


class InterruptedExchange:
    """An exchange that may have been interrupted, read from a run's events, oldest first. `end` closes the parts that it left open."""

    def __init__(self, exchange: str, converter: str, options: ExchangeOptions) -> None:
        translator = translator_of(converter)
        self._exchange = exchange
        self._key: str | None = None
        self._again: Retranslation | None = None
        self.is_open = False
        """True if the exchange has started and no event in the log ends it."""
        with suppress(TranslatorFailed):  # the open parts are then unknown, which `moot verify` reports
            self._again = Retranslation(translator, options) if translator is not None else None

    def take(self, event: Event) -> None:
        """Process the next event. Events of other exchanges are ignored."""
        if event.exchange != self._exchange:
            return
        if event.kind == "exchange":
            self.is_open, self._key = event.phase == "start", event.key
        elif event.kind == "chunks":
            self.is_open = False  # a leg that was also interrupted has already abandoned it
        elif event.kind == "raw" and self._again is not None:
            try:
                self._again.feed(event.raw or b"", event.body)
            except TranslatorFailed:
                self._again = None

    def end(self, run: str | None, failure: Failure) -> Event:
        """Return the event that ends the exchange as `cut`, with this failure."""
        chunks, ending = (), Ending("error")
        with suppress(TranslatorFailed):
            if self._again is not None:
                chunks, ending = self._again.close("cut")
        ending = dataclasses.replace(ending, finish_reason="error", error=failure)
        return Event("exchange", chunks, None, run, self._exchange, "end", self._key, end_body(ending, "cut", ending.cost, failure))
