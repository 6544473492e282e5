from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.screen.cells import width_of
from moot.cli.welcome.drawing import drawn, listed
from moot.cli.welcome.finding import Found, Offered
from moot.cli.welcome.keys import is_key, vendor_of
from moot.config.home import KEY_VARIABLES
from moot.config.settings import Settings
from moot.providers.pool import Providers

FOUND = Found(
    (
        Offered("anthropic", "claude-sonnet-4-5", "key in ANTHROPIC_API_KEY"),
        Offered("ollama", "llama3.2:3b", "answers at http://127.0.0.1:11434, 2 more"),
        Offered("demo", "demo", "no model: fixed words, to look around"),
    ),
    ("claude", "codex"),
    "the embedded model can't run here: this processor lacks avx2",
)

KEYS = [
    ("sk-ant-api03-abcdefghijkl", "anthropic"),
    ("sk-or-v1-abcdefghijklmnop", "openrouter"),
    ("sk-proj-abcdefghijklmnop", "openai"),
    ("sk-abcdefghijT3BlbkFJabcdefghij", "openai"),
    ("gsk_abcdefghijklmnopqrst", "groq"),
    ("xai-abcdefghijklmnopqrst", "xai"),
    ("vck_abcdefghijklmnopqrst", "vercel"),
    ("0123456789abcdef0123456789abcdef.ABCDEFGHIJ012345", "zhipu"),
    ("sk-api-abcdefghijklmnop", "minimax"),
]


@pytest.mark.parametrize(("key", "vendor"), KEYS)
def test_the_form_of_a_key_tells_whose_it_is(key: str, vendor: str) -> None:
    assert is_key(key)
    assert vendor_of(key, Providers(Settings(Path()))) == vendor


@pytest.mark.parametrize("key", ["sk-" + "0123456789abcdef" * 2, "sk-" + "a1B2" * 12, "a1B2" * 8, "something-else-entirely"])
def test_a_form_that_several_vendors_may_use_tells_nothing(key: str) -> None:
    assert is_key(key)
    assert vendor_of(key, Providers(Settings(Path()))) == ""


@pytest.mark.parametrize("text", ["", "s", "12", "hello", "two words that are long enough", "sk-short"])
def test_what_is_short_or_has_blanks_is_no_key(text: str) -> None:
    assert not is_key(text)


@given(st.integers(24, 200))
def test_no_line_of_the_screen_is_wider_than_the_terminal(width: int) -> None:
    lines = [*drawn(FOUND, width), *listed(sorted(KEY_VARIABLES), width)]
    assert max(width_of(text) for text, _ in lines) < width


def test_a_wide_terminal_has_one_line_for_each_and_a_narrow_one_more() -> None:
    wide, narrow = [text for text, _ in drawn(FOUND, 120)], [text for text, _ in drawn(FOUND, 40)]
    assert "  1  anthropic  claude-sonnet-4-5  key in ANTHROPIC_API_KEY" in wide
    assert narrow[narrow.index("  1  anthropic  claude-sonnet-4-5") + 1] == "     key in ANTHROPIC_API_KEY"


def test_a_screen_without_anything_to_choose_asks_for_a_key_alone() -> None:
    words = " ".join(text for text, _ in drawn(Found(()), 200))
    assert "Paste an API key" in words
    assert "Enter alone" not in words
