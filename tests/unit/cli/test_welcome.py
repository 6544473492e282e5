from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.terminal.text import width_of
from moot.cli.welcome import Discovery, Offer, is_key, number_names, render, vendor_of
from moot.config.home import KEY_VARIABLES
from moot.config.settings import Settings
from moot.providers.pool import Providers

FOUND = Discovery(
    (
        Offer("anthropic", "claude-sonnet-4-5", "key in ANTHROPIC_API_KEY"),
        Offer("ollama", "llama3.2:3b", "server at http://127.0.0.1:11434, 2 more"),
        Offer("demo", "demo", "not a real model: canned answers"),
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
def test_the_format_of_a_key_identifies_its_provider(key: str, vendor: str) -> None:
    assert is_key(key)
    assert vendor_of(key, Providers(Settings(Path()))) == vendor


@pytest.mark.parametrize("key", ["sk-" + "0123456789abcdef" * 2, "sk-" + "a1B2" * 12, "a1B2" * 8, "something-else-entirely"])
def test_a_format_that_several_providers_use_identifies_none(key: str) -> None:
    assert is_key(key)
    assert vendor_of(key, Providers(Settings(Path()))) == ""


@pytest.mark.parametrize("text", ["", "s", "12", "hello", "two words that are long enough", "sk-short"])
def test_a_short_text_or_one_with_spaces_is_not_a_key(text: str) -> None:
    assert not is_key(text)


@given(st.integers(24, 200))
def test_no_line_of_the_screen_is_wider_than_the_terminal(width: int) -> None:
    lines = [*render(FOUND, width), *number_names(sorted(KEY_VARIABLES), width)]
    assert max(width_of(text) for text, _ in lines) < width


def test_a_wide_terminal_has_one_line_for_each_and_a_narrow_one_more() -> None:
    wide, narrow = [text for text, _ in render(FOUND, 120)], [text for text, _ in render(FOUND, 40)]
    assert "  1  anthropic  claude-sonnet-4-5  key in ANTHROPIC_API_KEY" in wide
    assert narrow[narrow.index("  1  anthropic  claude-sonnet-4-5") + 1] == "     key in ANTHROPIC_API_KEY"


def test_enter_never_starts_a_download_that_was_not_announced() -> None:
    embedded = Offer("local", "tiny", "runs on this machine", download=491_400_064)
    asked = " ".join(text for text, _ in render(Discovery((embedded,)), 80))
    assert "Press Enter for 1 (local, a download of 491 MB)." in asked
    ready = " ".join(text for text, _ in render(Discovery((replace(embedded, download=0),)), 80))
    assert "Press Enter for 1 (local)." in ready


def test_a_screen_without_models_asks_only_for_a_key() -> None:
    words = " ".join(text for text, _ in render(Discovery(()), 200))
    assert "Paste an API key" in words
    assert "Press Enter for" not in words
