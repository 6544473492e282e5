from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.store.search.text import distinct, folded, tokens

WORDS = st.text("abcXYZ019_-.`\t\n\x00\x1c\x7f éİßΣK日本語ー한글𠮷\u0301\u2028\u00a0²", max_size=40)


@given(st.one_of(st.text(max_size=60), WORDS))
def test_the_fast_path_finds_the_same_words(text: str) -> None:
    assert distinct(text) == set(tokens(text))


@pytest.mark.parametrize("text", ["", "ABC abc_abc a-1", "café ΑΣ. naïve—plain", "日本語 mixed語word"])
def test_words_of_ascii_and_other_text(text: str) -> None:
    assert distinct(text) == set(tokens(text))


@given(st.one_of(st.text(max_size=60), WORDS))
def test_folding_keeps_character_positions(text: str) -> None:
    assert folded(text) == "".join(folded(character) for character in text)
    assert len(folded(text)) == len(text)


def test_accents_and_cases_make_no_difference_to_a_folded_text() -> None:
    assert folded("Crème İSTANBUL ΑΣ 検索 ÅNGSTRÖM") == "creme istanbul ασ 検索 angstrom"
