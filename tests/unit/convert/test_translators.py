"""Lookup of an exchange's translator by its stored name."""

from __future__ import annotations

import pytest

from moot.convert.exchanges import Retranslation, TranslatorFailed, translator_of
from moot.plugins import DIALECTS, TRANSLATORS
from moot.types.event import REFUSED, SENT
from moot.types.exchange import ExchangeOptions, converter_of


@pytest.mark.parametrize("name", sorted({*DIALECTS.names(), *TRANSLATORS.names()}))
def test_every_converter_is_found_by_its_name(name: str) -> None:
    translator = translator_of(f"{name}/1")
    assert translator is not None and translator.name == name and translator.version >= 1


def test_an_unknown_name_has_no_translator() -> None:
    assert translator_of("nobody/1") is None and translator_of("") is None


@pytest.mark.parametrize(
    ("text", "name", "version"), [("a/1", "a", 1), ("a/b/12", "a/b", 12), ("a", "a", 0), ("a/x", "a/x", 0), ("/1", "/1", 0)]
)
def test_a_converter_name_is_split_into_its_parts(text: str, name: str, version: int) -> None:
    assert (converter_of(text).name, converter_of(text).version) == (name, version)


def test_rejections_and_moots_own_lines_are_not_vendor_output() -> None:
    translator = translator_of("openai-chat/1")
    assert translator is not None
    again = Retranslation(translator, ExchangeOptions())
    said = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
    assert again.feed(said, REFUSED) == again.feed(said, SENT) == ()
    assert [chunk["type"] for chunk in again.feed(said)] == ["text-start", "text-delta"]


def test_a_converter_that_raises_is_named() -> None:
    class Broken:
        name, version = "broken", 3

        def open(self, options: ExchangeOptions) -> None:
            raise ZeroDivisionError

    with pytest.raises(TranslatorFailed, match="broken/3 raised ZeroDivisionError"):
        Retranslation(Broken(), ExchangeOptions())  # type: ignore[arg-type]
