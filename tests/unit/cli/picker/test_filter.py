from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.terminal.prompts.items import Item, Listing, PageLoader, fold, matcher


def items(*titles: str) -> list[Item]:
    return [Item(f"{at}", (title,)) for at, title in enumerate(titles)]


def found(filter: str, *titles: str) -> list[str]:
    listing = Listing(filter)
    listing.add(items(*titles))
    return [item.cells[0] for item in listing.rows(0, 100)]


def test_the_best_matches_come_first_and_equal_ones_keep_their_order() -> None:
    titles = ["a reparse", "c-o-n-f parse d", "the parser", "parse it", "the parse", "nothing"]
    assert found("parse", *titles) == ["parse it", "c-o-n-f parse d", "the parse", "the parser", "a reparse"]


def test_words_match_in_any_order_and_all_must_occur() -> None:
    assert found("tests fix", "fix the tests", "fix the parser", "run tests") == ["fix the tests"]


def test_a_filter_may_skip_letters_but_not_half_the_word() -> None:
    assert found("cnfg", "configuration", "c o n n e c t i n g", "cooking frogs") == ["configuration"]


def test_case_and_composition_do_not_matter() -> None:
    assert found("CAFÉ", "cafe\u0301 corner") == ["cafe\u0301 corner"]
    assert found("strasse", "Straße") == ["Straße"]


@given(st.text())
def test_a_text_matches_itself(text: str) -> None:
    assert matcher(text)(fold(text)) is not None


@given(st.text(max_size=12), st.lists(st.text("abc é漢\t", max_size=8), max_size=12), st.integers(0, 12))
def test_pages_give_the_same_result_as_one_list(filter: str, titles: list[str], split: int) -> None:
    whole, paged = Listing(filter), Listing(filter)
    given_items = items(*titles)
    whole.add(given_items)
    paged.add(given_items[:split])
    len(paged)
    paged.add(given_items[split:])
    assert whole.rows(0, 100) == paged.rows(0, 100)


def test_the_selected_item_stays_selected_when_more_are_loaded() -> None:
    listing = Listing("b")
    listing.add(items("xb", "yb"))
    listing.move(1)
    listing.add([Item("best", ("b",))])
    assert (listing.at, listing.selected) == (2, Item("1", ("yb",)))


def test_typing_selects_the_best_match_or_nothing() -> None:
    listing = Listing()
    listing.add(items("one", "two", "three"))
    listing.move(5)
    assert listing.selected == Item("2", ("three",))
    listing.set_filter("t")
    assert listing.selected == Item("1", ("two",))
    listing.set_filter("zzz")
    listing.move(-1)
    assert (listing.selected, listing.at) == (None, 0)


@pytest.mark.anyio
async def test_only_needed_pages_are_loaded() -> None:
    asked: list[int] = []

    async def pages() -> AsyncGenerator[Sequence[Item], None]:
        for page in range(5):
            asked.append(page)
            yield items(*(f"{page}.{at}" for at in range(50)))

    loader = PageLoader(pages, Listing())
    while loader.needs_more(10):
        await loader.load()
    assert asked == [0]
    loader.listing.move(40)
    while loader.needs_more(10):
        await loader.load()
    assert asked == [0, 1]
    loader.listing.set_filter("4.49")
    while loader.needs_more(10):
        await loader.load()
    assert (loader.ended, loader.listing.count, len(loader.listing)) == (True, 250, 1)
    await loader.aclose()
