from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.store.words import distinct, tokens

WORDS = st.text("abcXYZ019_-.`\t\n\x00\x1c\x7f éİßΣK日本語ー한글𠮷\u0301\u2028\u00a0²", max_size=40)


@given(st.one_of(st.text(max_size=60), WORDS))
def test_words_are_the_same_whether_they_are_looked_for_quickly_or_one_by_one(text: str) -> None:
    assert distinct(text) == set(tokens(text))


@pytest.mark.parametrize("text", ["", "ABC abc_abc a-1", "café ΑΣ. naïve—plain", "日本語 mixed語word"])
def test_words_of_plain_and_other_text(text: str) -> None:
    assert distinct(text) == set(tokens(text))
