"""Rebuilding of an exchange's chunks from its raw events, with the same result as when it ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.convert.translators import Again
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.provider import Translator


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The chunks of an exchange as a translator produces them."""

    chunks: tuple[tuple[Chunk, ...], ...]
    """One entry per raw event, in order."""
    closing: tuple[Chunk, ...]
    ending: Ending


def rebuild(translator: Translator[Any], options: ExchangeOptions, raws: Sequence[Event], ended: Ended) -> Rebuilt:
    """Translate the raw events of an exchange. Raise TranslatorFailed if the translator raises."""
    again = Again(translator, options)
    made = tuple(again.feed(event.raw or b"", event.body) for event in raws)
    closing, ending = again.close(ended)
    return Rebuilt(made, closing, ending)
