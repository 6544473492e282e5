import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.guard.terminal import COMBINING_MARKS, SEQUENCE_CHARACTERS, Cleaner, clean, visible

HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from("\x1b\x9b\x9d\x90\x9c\x07\x08\r\n\t\x18\x1a[]P^_X\\;:?0159mHJhlq \x7f\x85\u202e\u2066\u0301\ud800Aé漢"),
        st.characters(),
    ),
    max_size=60,
)

TABLE = [
    ("plain é 漢字 🎉\n\tkept", "plain é 漢字 🎉\n\tkept"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[2J\x1b[Hcleared", "cleared"),
    ("\x1b]0;title\x07after", "after"),
    ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]52;c;cm0gLXJmIH4=\x07paste", "paste"),
    ("\x1b]1337;File=name=eA==:AAAA\x07x", "x"),
    ("\x1b]7;file:///\x1b\\x\x1b]9;4;1\x07", "x"),
    ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
    ("\x1b_Gi=1;AAAA\x1b\\kitty", "kitty"),
    ("\x1b^private\x1b\\a\x1bXstart\x1b\\b", "ab"),
    ("\x9b31mred", "red"),
    ("\x9d0;title\x9cx", "x"),
    ("\x90q\x9cx\x9fG\x9cy\x9eP\x9cz\x98S\x9c", "xyz"),
    ("\x1b(0\x1b#8\x1b7\x1bc\x1b Fx", "x"),
    ("safe\revil", "safe\nevil"),
    ("one\r\ntwo", "one\ntwo"),
    ("rm -rf /\x08\x08\x08\x08", "rm -rf /"),
    ("bell\x07nul\x00del\x7f", "bellnuldel"),
    ("admin\u202etxt.exe\u202c", "admin<U+202E>txt.exe<U+202C>"),
    ("\u2066a\u2069", "<U+2066>a<U+2069>"),
    ("\ud800", "\ufffd"),
    ("\x1b\x1b[31m[32m", "[32m"),
    ("\x1b[31\x1b[1mx", "x"),
    ("\x1b[3é1m", "é1m"),
    ("\x1b]0;a\x1b[31mb", "b"),
    ("\x1b[", ""),
    ("a\x1b", "a"),
    ("a\x85b", "a\nb"),
    ("\x1b[12\nnext", "\nnext"),
]


@pytest.mark.parametrize(("hostile", "harmless"), TABLE)
def test_control_sequences_are_removed(hostile: str, harmless: str):
    assert clean(hostile) == harmless


@given(HOSTILE, st.lists(st.integers(0, 60)))
def test_any_chunking_gives_the_same_text(text: str, cuts: list[int]):
    edges = [0, *sorted(cut for cut in cuts if cut <= len(text)), len(text)]
    cleaner = Cleaner()
    pieces = [cleaner.feed(text[start:stop]) for start, stop in itertools.pairwise(edges)]
    assert "".join(pieces) + cleaner.end() == clean(text)


@given(HOSTILE)
def test_only_text_newlines_and_tabs_remain(text: str):
    cleaned = clean(text)
    assert not [c for c in cleaned if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize("opener", ["\x1b]52;c;", "\x1b[", "\x1bP", "\x9d", "\x1b_", "\x1b("])
def test_an_unterminated_sequence_swallows_no_more_than_its_cap(opener: str):
    rest = "1" * (SEQUENCE_CHARACTERS + 1000) if opener not in ("\x1b(",) else " " * (SEQUENCE_CHARACTERS + 1000)
    assert len(clean(opener + rest)) >= 1000


def test_an_unterminated_sequence_ends_at_a_newline():
    assert clean("\x1b]0;no end\nthe next line") == "\nthe next line"


def test_a_million_combining_marks_are_cut_and_ordinary_ones_kept():
    assert clean("e" + "\u0301" * 1_000_000) == "e" + "\u0301" * COMBINING_MARKS
    assert clean("e\u0301e\u0301") == "e\u0301e\u0301"


def test_a_pending_carriage_return_is_emitted_at_the_end():
    cleaner = Cleaner()
    assert cleaner.feed("a\r") == "a"
    assert cleaner.end() == "\n"
    assert cleaner.feed("b") == "b"


@given(HOSTILE)
def test_visible_hides_nothing(text: str):
    shown = visible(text)
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs") or c in "\n\t" for c in shown)
    assert len(shown) >= len(text)


def test_visible_spells_controls_out():
    assert visible("echo hi \x1b]0;x\x07 \u202e") == "echo hi \\x1b]0;x\\x07 <U+202E>"


def test_what_looks_like_nothing_or_like_a_space_is_made_visible() -> None:
    hidden = "rm\u00a0a\u2028b\u3164c\u200bd\u00ade\U000e0041f\ufe01g\u2003h"
    assert visible(hidden) == "rm\\xa0a<U+2028>b<U+3164>c<U+200B>d\\xade<U+E0041>f<U+FE01>g<U+2003>h"
    assert visible(plain := "日本語　です ❤️ é\u0301\tx\n") == plain
