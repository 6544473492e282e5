from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moot.store.search.text import distinct, folded, indexable, spaced, tokens

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


@given(st.lists(st.tuples(st.sampled_from("aé= \n\t漢"), st.integers(1, 1500)), max_size=6))
@example([("a", 511), (" ", 1), ("a", 1023), ("\n", 1), ("a", 1024)])
@example([("a", 1024)])
@example([("é", 600), ("a", 1024), ("\t", 5)])
def test_encoded_data_is_left_out_wherever_it_is(pieces: list[tuple[str, int]]) -> None:
    text = "".join(letter * count for letter, count in pieces)
    assert indexable(text) == spaced(re.sub(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{1024,}", " ", text))
