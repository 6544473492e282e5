"""Lookup of the translator that produced an exchange's chunks, and translation of its raw events again."""

from __future__ import annotations

from typing import Any

from moot.errors import MootError
from moot.plugins import DIALECTS, TRANSLATORS
from moot.types.canonical import Json
from moot.types.chunk import Chunk
from moot.types.event import REFUSED, SENT, Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, converter_of
from moot.types.provider import Hears, Translator


def translator_of(converter: str) -> Translator[Any] | None:
    """Return the installed translator of that name, in any version; None if there is none or its plugin is broken."""
    name = converter_of(converter).name
    try:
        # a package can't take over the name of a dialect
        if name in DIALECTS and (name not in TRANSLATORS or TRANSLATORS.package(name)):
            return DIALECTS.make(name).translator
        return TRANSLATORS.make(name) if name in TRANSLATORS else None
    except MootError:
        return None


class TranslatorFailed(Exception):
    """Raised if a translator raises, which its protocol forbids."""


class Again:
    """A second translation of one exchange, event by event. Errors of the translator are raised as TranslatorFailed."""

    def __init__(self, translator: Translator[Any], options: ExchangeOptions) -> None:
        self._translator = translator
        self._hears = translator if isinstance(translator, Hears) else None
        try:
            self._state = translator.open(options)
        except Exception as error:
            raise _failed(translator, error) from error

    def feed(self, raw: Raw, body: Json = None) -> tuple[Chunk, ...]:
        """Return the chunks of the next `raw` event, which had that body."""
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
