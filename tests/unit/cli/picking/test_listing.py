from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.picking.feeding import Feed
from moot.cli.picking.items import Item
from moot.cli.picking.listing import Listing
from moot.cli.picking.matching import fold, judge


def items(*titles: str) -> list[Item]:
    return [Item(f"{at}", (title,)) for at, title in enumerate(titles)]


def found(filter: str, *titles: str) -> list[str]:
    listing = Listing(filter)
    listing.add(items(*titles))
    return [item.cells[0] for item in listing.rows(0, 100)]


def test_the_best_come_first_and_equals_stay_in_order() -> None:
    titles = ["a reparse", "c-o-n-f parse d", "the parser", "parse it", "the parse", "nothing"]
    assert found("parse", *titles) == ["parse it", "c-o-n-f parse d", "the parse", "the parser", "a reparse"]


def test_words_may_stand_in_any_order_and_all_must_be_there() -> None:
    assert found("tests fix", "fix the tests", "fix the parser", "run tests") == ["fix the tests"]


def test_letters_may_be_left_out_but_not_half_the_word() -> None:
    assert found("cnfg", "configuration", "c o n n e c t i n g", "cooking frogs") == ["configuration"]


def test_case_and_composition_do_not_matter() -> None:
    assert found("CAFÉ", "cafe\u0301 corner") == ["cafe\u0301 corner"]
    assert found("strasse", "Straße") == ["Straße"]


@given(st.text())
def test_a_text_finds_itself(text: str) -> None:
    assert judge(text)(fold(text)) is not None


@given(st.text(max_size=12), st.lists(st.text("abc é漢\t", max_size=8), max_size=12), st.integers(0, 12))
def test_pages_give_what_the_whole_gives(filter: str, titles: list[str], split: int) -> None:
    whole, paged = Listing(filter), Listing(filter)
    given_items = items(*titles)
    whole.add(given_items)
    paged.add(given_items[:split])
    len(paged)
    paged.add(given_items[split:])
    assert whole.rows(0, 100) == paged.rows(0, 100)


def test_what_was_selected_stays_selected_when_more_come() -> None:
    listing = Listing("b")
    listing.add(items("xb", "yb"))
    listing.move(1)
    listing.add([Item("best", ("b",))])
    assert (listing.at, listing.selected) == (2, Item("1", ("yb",)))


def test_typing_selects_the_best_and_nothing_when_nothing_fits() -> None:
    listing = Listing()
    listing.add(items("one", "two", "three"))
    listing.move(5)
    assert listing.selected == Item("2", ("three",))
    listing.type("t")
    assert listing.selected == Item("1", ("two",))
    listing.type("zzz")
    listing.move(-1)
    assert (listing.selected, listing.at) == (None, 0)


@pytest.mark.anyio
async def test_no_more_pages_are_fetched_than_are_looked_at() -> None:
    asked: list[int] = []

    async def pages() -> AsyncGenerator[Sequence[Item], None]:
        for page in range(5):
            asked.append(page)
            yield items(*(f"{page}.{at}" for at in range(50)))

    feed = Feed(pages, Listing())
    while feed.wants(10):
        await feed.more()
    assert asked == [0]
    feed.listing.move(40)
    while feed.wants(10):
        await feed.more()
    assert asked == [0, 1]
    feed.listing.type("4.49")
    while feed.wants(10):
        await feed.more()
    assert (feed.ended, feed.listing.count, len(feed.listing)) == (True, 250, 1)
    await feed.aclose()
