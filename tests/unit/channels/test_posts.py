"""Splitting answers into messages of limited length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.channels.posts import Pace, question_text, split
from moot.types.approval import Approval


def test_a_short_text_is_one_piece_and_an_empty_one_none() -> None:
    assert split("hello", 20) == ["hello"] and split(" \n", 20) == []


def test_a_long_text_is_cut_at_lines_and_words() -> None:
    assert split("one two three\nfour five six", 20) == ["one two three", "four five six"]
    assert split("one two three four five six", 20) == ["one two three", " four five six"]
    assert split("x" * 40, 20) == ["x" * 16, "x" * 16, "x" * 8]


def test_a_code_block_is_closed_and_opened_again() -> None:
    lines = "\n".join(f"line {number}" for number in range(6))
    pieces = split(f"Look:\n```python\n{lines}\n```\nDone.", 50)
    assert len(pieces) > 1 and all(len(piece) <= 50 and piece.count("```") % 2 == 0 for piece in pieces)
    assert all(piece.startswith("```python\n") for piece in pieces[1:-1])
    for number in range(6):
        assert sum(f"line {number}" in piece for piece in pieces) == 1
    assert pieces[-1].endswith("Done.")


@given(st.text(alphabet="ab `\n", max_size=300), st.integers(60, 100))
def test_no_piece_is_too_long_and_only_the_last_one_changes_when_text_is_added(text: str, limit: int) -> None:
    before = split(text, limit)
    assert all(0 < len(piece) <= limit for piece in before)
    after = split(f"{text}more words", limit)
    assert after[: len(before) - 1] == before[:-1]


@pytest.mark.anyio
async def test_two_turns_are_at_least_one_interval_apart() -> None:
    at, slept = 100.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal at
        slept.append(seconds)
        at += seconds

    pace = Pace(1.5, now=lambda: at, sleep=sleep)
    await pace.turn()
    at += 1.0
    await pace.turn()
    await pace.turn()
    assert slept == [0.5, 1.5]


def test_a_question_shows_the_whole_call_inside_its_code_block() -> None:
    text = question_text(Approval("a", "r", "t", "shell", b'{"command": "echo ```x"}', b"", 0))
    assert text.count("```") == 2 and "echo" in text and text.endswith("```")
