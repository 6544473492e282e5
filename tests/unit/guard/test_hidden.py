"""Invisible and control characters are found and spelled out; visible text stays as it is."""

from __future__ import annotations

import pytest

from moot.guard.hidden import hidden_characters, hidden_comments, spelled_out, warning_of

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
HIDDEN = {
    "zero-width space": "\u200b",
    "soft hyphen": "\u00ad",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "tag": TAGS[0],
    "variation selector": "\ufe01",
    "supplementary variation selector": "\U000e0101",
    "byte order mark in the middle": "\ufeff",
    "Hangul filler": "\u3164",
    "blank Braille pattern": "\u2800",
    "escape": "\x1b",
    "carriage return in the middle": "\r",
    "8-bit control": "\x9b",
    "lone surrogate": "\ud800",
    "private use": "\ue000",
}


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN)
def test_every_hidden_character_is_found_and_spelled_out(character: str):
    text = f"first\nplain {character}text"
    assert hidden_characters(text) == [(2, f"U+{ord(character):04X}")]
    assert spelled_out(text) == f"first\nplain <U+{ord(character):04X}>text"
    assert "1 hidden character" in warning_of(text)


@pytest.mark.parametrize("text", ["plain\ttext\r\nand more", "日本語とかな 한국어", "é ü ß Ж ع", "👍🏽 ❤️ 👩‍💻 ❤️‍🔥", "≤ → “quoted”"])
def test_visible_text_is_left_alone(text: str):
    assert hidden_characters(text) == []
    assert spelled_out(text) == text.replace("\r\n", "\n")
    assert warning_of(text) == ""


def test_data_hidden_after_an_emoji_is_found():
    assert len(hidden_characters("👍\ufe0f\ufe0e\ufe0f\ufe0e")) == 3
    assert len(hidden_characters(f"👍{TAGS}")) == 4


def test_comments_are_found_even_without_an_end():
    assert hidden_comments("a\n<!-- one -->\nb <!-- two\nc") == [2, 3]
