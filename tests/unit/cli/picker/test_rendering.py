from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from moot.cli.terminal.prompts.items import Action, Choice, Column, Item, Listing, Scope
from moot.cli.terminal.prompts.layout import Canvas, Line, View, column_widths, draw, truncate

COLUMNS = (
    Column("AGE", 6, right=True),
    Column("MODEL", 14, rank=2),
    Column("COST", 8, rank=1, right=True),
    Column("TITLE", 8, grows=True),
)
KEYS = {"e": Action("edit a message"), "d": Action("delete"), "r": Action("rename")}
HOSTILE = "a\x1b[2Jb\x1b]0;evil\x07c\x9b31m\rd\u202ee [bold]f[/bold] <b>g</b> {h} %s"


def measure(text: str) -> int:
    return sum(map(get_cwidth, text))


def view(*titles: str, filter: str = "", menu: bool = False) -> View:
    listing = Listing(filter)
    listing.add([Item(str(at), ("2 h", "model@provider", "$0.01", title)) for at, title in enumerate(titles)])
    return View(Choice((Scope("Conversations", ()), Scope("all of them", ())), COLUMNS, KEYS), 0, listing, True, menu)


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for _, text in line) for line in lines]


@given(st.lists(st.text(), max_size=8), st.integers(16, 200), st.integers(5, 60), st.booleans(), st.booleans(), st.text(max_size=300))
def test_the_list_fits_the_terminal(titles: list[str], width: int, height: int, unicode: bool, menu: bool, filter: str) -> None:
    canvas = Canvas(width, height, unicode, measure)
    shown = texts(draw(view(*titles, filter="".join(filter.split()), menu=menu), canvas))
    assert len(shown) < height or height < 8
    assert [line for line in shown if measure(line) > width] == []


@given(st.text(), st.integers(1, 40))
def test_a_truncated_text_fits_and_ends_with_an_ellipsis(text: str, width: int) -> None:
    made = truncate(text, width, Canvas(80, 24, True, measure))
    assert measure(made) <= width
    assert made == text or made.endswith("…")


def test_titles_are_shown_literally_and_have_no_effect() -> None:
    row = texts(draw(view(HOSTILE), Canvas(120, 24, True, measure)))[3]
    assert row.endswith("abc d<U+202E>e [bold]f[/bold] <b>g</b> {h} %s")


def test_without_utf_8_everything_is_ascii() -> None:
    assert all(line.isascii() for line in texts(draw(view("漢字 is a title"), Canvas(40, 24, False, measure))))


@given(st.text(st.characters(categories=("Lo", "So", "Mn", "Ll"))))
def test_columns_are_aligned_for_titles_of_any_characters(title: str) -> None:
    columns = (Column("TITLE", 8, grows=True), Column("N", 3, right=True))
    listing = Listing()
    listing.add([Item("1", (title, "1")), Item("2", ("plain", "1"))])
    canvas = Canvas(40, 24, True, measure)
    rows = texts(draw(View(Choice((Scope("t", ()),), columns), 0, listing, True), canvas))[2:4]
    assert len({measure(row) for row in rows}) == 1, [unicodedata.name(character, "?") for character in title]


@pytest.mark.parametrize(("width", "shown"), [(80, 4), (40, 3), (28, 2), (20, 2)])
def test_the_least_important_columns_are_hidden_first(width: int, shown: int) -> None:
    widths = column_widths(COLUMNS, width)
    assert sum(1 for one in widths if one) == shown
    assert widths[0] and widths[3]


def test_the_menu_names_every_action_also_in_twenty_columns() -> None:
    words = " ".join(texts(draw(view("one", menu=True), Canvas(20, 24, True, measure))))
    assert all(f"{letter} {action.words}" in words for letter, action in KEYS.items())


def test_a_filter_without_matches_says_so() -> None:
    assert "  No matches" in texts(draw(view("one", filter="zzz"), Canvas(80, 24, True, measure)))


@given(st.lists(st.sampled_from(["Needs you", "Running", "Done"])), st.integers(16, 120), st.integers(5, 40))
def test_headings_of_groups_fit_the_terminal_and_a_change_keeps_the_selection(groups: list[str], width: int, height: int) -> None:
    items = [Item(str(at), ("2 h", "model", "$0.01", f"title {at}"), group=group) for at, group in enumerate(sorted(groups))]
    listing = Listing()
    assert listing.replace(items) == bool(items) and not listing.replace(items)
    listing.move(1)
    chosen = listing.selected
    listing.replace([Item("new", ("1 s", "", "", "first"), group="A"), *items])
    assert not items or listing.selected == chosen
    listing.set_filter("title")
    assert listing.rows(0, len(items)) == items  # in their order, not sorted by how well they match
    shown = texts(
        draw(
            View(Choice((Scope("Runs", ()),), COLUMNS, KEYS, letters=True), 0, listing, True, typing=False),
            Canvas(width, height, True, measure),
        )
    )
    assert len(shown) < height or height < 8
    assert [line for line in shown if measure(line) > width] == []
