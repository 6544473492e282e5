"""What is found, how a query is read, and who fills the index."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moot.config.settings import Settings
from moot.store import SqliteStore, open_store, words
from moot.store.locks import FileLock
from moot.store.words import OUTPUT_BYTES, found_text, parse, snippet
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.part import text_part


async def fill(store: SqliteStore, *texts: str) -> None:
    await store.conversations.create(Conversation("a"))
    for number, text in enumerate(texts):
        await store.conversations.add_message(Message(f"m{number}", "user", (text_part(text),), conversation="a", created_at=1000 + number))


async def found(store: SqliteStore, query: str) -> list[str]:
    return [hit.message for hit in (await store.search.search(query)).hits]


TEXTS = [
    "The quick brown fox jumps",
    "snake_case_name and camelCaseName in src/app.py",
    "東京都に行きました。とても楽しい",
    "Crème brûlée à la carte",
    "한국어 검색 테스트",
    'quotes " and AND OR NOT NEAR( * ^ : {brackets}',
    "plain",
]


@pytest.mark.anyio
async def test_words_substrings_and_pairs_are_found(store: SqliteStore) -> None:
    await fill(store, *TEXTS)
    for query, expected in {
        "QUICK fox": ["m0"],
        "fox quick": ["m0"],
        "quick plain": [],
        "_case_na": ["m1"],
        "selCaseN": [],
        "elCaseNa": ["m1"],
        "src/app.py": ["m1"],
        "app.p": ["m1"],
        "東京": ["m2"],
        "京都": ["m2"],
        "都": ["m2"],
        "東都": [],
        "楽しい": ["m2"],
        "creme BRULEE": ["m3"],
        "검색": ["m4"],
        "NEAR(": ["m5"],
        '"': [],
        "AND": ["m5", "m1"],
        "plain": ["m6"],
        "pl": [],
        "": [],
        "* ^ :": [],
        "{brackets}": ["m5"],
    }.items():
        assert await found(store, query) == expected, query


@pytest.mark.anyio
@pytest.mark.parametrize(
    "query",
    [
        "'; DROP TABLE search; --",
        'x"OR"plain',
        'a" OR "b',
        "col:x",
        "a NEAR/2 b",
        "\x00nul\x00",
        "\ud800",
        "(" * 500,
        "x " * 5000,
        "-",
        "text:x^2*",
    ],
)
async def test_any_query_is_taken_to_the_letter(store: SqliteStore, query: str) -> None:
    await fill(store, *TEXTS)
    assert await found(store, query) == []


@given(some.text())
def test_parsing_is_total(query: str) -> None:
    parsed = parse(query)
    if parsed is not None:
        assert parsed.words or parsed.substrings
        shown = snippet("some text " + query.encode("utf-8", "replace").decode(), parsed.terms)
        assert "\n" not in shown


def test_a_snippet_shows_the_match_and_its_surroundings() -> None:
    query = parse("needle thread")
    assert query is not None
    text = "hay " * 100 + "a NEEDLE\nwith thread " + "hay " * 100
    shown = snippet(text, query.terms)
    assert "a \x02NEEDLE\x03 with \x02thread\x03 hay" in shown
    assert shown.startswith("…") and shown.endswith("…") and len(shown) < 220


def test_only_what_people_read_is_indexed() -> None:
    parts: list[Any] = [
        text_part("said\x02\x03\x00"),
        {"type": "reasoning", "text": "thought"},
        {
            "type": "tool-shell",
            "toolCallId": "1",
            "state": "output-available",
            "input": {"x": "asked"},
            "output": "é" * OUTPUT_BYTES + "beyond",
        },
        {"type": "dynamic-tool", "toolName": "x", "toolCallId": "2", "state": "output-error", "errorText": "failed"},
        {"type": "tool-x", "toolCallId": "3", "state": "output-available", "output": {"deep": ["kept"]}},
        {"type": "steering-message", "id": "s", "parts": [text_part("steered")]},
        {"type": "data-x", "data": "datum"},
    ]
    text = found_text(parts)
    for word, there in {
        "said": True,
        "thought": False,
        "asked": False,
        "beyond": False,
        "failed": True,
        "kept": True,
        "steered": True,
        "datum": False,
    }.items():
        assert (word in text) is there, word
    assert text.count("é") == OUTPUT_BYTES // 2
    assert not words._MARKS.search(text)


@pytest.mark.anyio
async def test_one_process_indexes_at_a_time(store: SqliteStore, settings: Settings) -> None:
    await fill(store, *TEXTS)
    lock = FileLock(settings.home / "state" / "indexer.lock")
    assert lock.take(wait=False)
    assert await store.search.index() == (0, 7)
    began = time.perf_counter()
    page = await store.search.search("plain", wait=0.1)
    assert (page.hits, page.done, page.total) == ((), 0, 7)
    assert 0.05 < time.perf_counter() - began < 2
    searching = asyncio.create_task(store.search.search("plain"))
    await asyncio.sleep(0.05)
    lock.release()
    assert [hit.message for hit in (await searching).hits] == ["m6"]


@pytest.mark.anyio
async def test_indexing_goes_on_where_it_stopped(store: SqliteStore, settings: Settings) -> None:
    await fill(store, *(f"word{number} " * 200 for number in range(300)))
    done, total = await store.search.index(seconds=0.01)
    assert total == 300 and done < total
    other = await open_store(settings)
    assert await other.search.index() == (300, 300)
    assert await found(store, "word299") == ["m299"]
    heads = await store._reader.read(lambda connection: connection.execute("SELECT indexed_through FROM log_head").fetchall())
    assert heads == [(300,)]
    await other.close()


@pytest.mark.anyio
async def test_equal_times_are_no_clash(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    for number in range(5):
        await store.conversations.add_message(Message(f"m{number}", "user", (text_part("same"),), conversation="a", created_at=77))
    assert await found(store, "same") == ["m4", "m3", "m2", "m1", "m0"]
