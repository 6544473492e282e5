"""An exchange's chunks made again from its raw: the same fold as when it ran, whoever asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.convert.translators import Again
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.provider import Translator

__all__ = ["Rebuilt", "rebuild"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a translator makes of an exchange."""

    chunks: tuple[tuple[Chunk, ...], ...]
    """Of each raw event, in order."""
    closing: tuple[Chunk, ...]
    ending: Ending


def rebuild(translator: Translator[Any], options: ExchangeOptions, raws: Sequence[Event], ended: Ended) -> Rebuilt:
    """The fold over an exchange's raw events. Raises TranslatorFailed for a translator that breaks its seam's promise."""
    again = Again(translator, options)
    made = tuple(again.feed(event.raw or b"", event.body) for event in raws)
    closing, ending = again.close(ended)
    return Rebuilt(made, closing, ending)
