from __future__ import annotations

import pytest

from moot.store import SqliteStore
from moot.store.search import matches
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part

pytestmark = pytest.mark.anyio

SAID = [
    "the container of the api restarts again and again",
    "the build is slow",
    "容器一直重启，内存不够",
    "the soup is too thin",
    "what is the soup made of",
]


@pytest.fixture
async def filled(store: SqliteStore) -> SqliteStore:
    await store.conversations.create(Conversation("a"))
    for number, text in enumerate(SAID):
        await store.conversations.add_message(Message(f"m{number}", "user", (text_part(text),), conversation="a", created_at=1000 + number))
    return store


@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("which container restarts all the time", ["m0"]),
        ("容器总是重启怎么办", ["m2"]),
        ("容器restarts", ["m0", "m2"]),
        ("what was the soup about", ["m4", "m3"]),
        ("which container restarts -api", []),
        ("which container restarts role:assistant", []),
        ("soup quantum", ["m4", "m3"]),
        ("quantum chromodynamics", []),
        ("quantum", []),
        ('"soup made of" "thin soup"', []),
        ('"soup is" made', ["m3"]),
        ('"soup is" quantum', ["m3"]),
        ('"quantum" soup', []),
    ],
)
@pytest.mark.slow
async def test_without_full_matches_partial_matches_are_ranked(filled: SqliteStore, query: str, expected: list[str], best: bool) -> None:
    page = await filled.search.search(query, best=best, limit=len(expected) or 5)
    assert [hit.message for hit in page.hits][: len(expected) or None] == expected or {hit.message for hit in page.hits} == set(expected)
    assert page.loose is bool(expected)
    assert page.next_cursor is None


async def test_full_matches_exclude_partial_matches(filled: SqliteStore) -> None:
    page = await filled.search.search("soup the")
    assert ([hit.message for hit in page.hits], page.loose) == (["m4", "m3"], False)


async def test_common_words_do_not_push_old_messages_out_of_the_ranking(filled: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "RANKED", 3)
    page = await filled.search.search("the quantum container")
    assert [hit.message for hit in page.hits] == ["m0"]
    assert page.hits[0].snippet.count("\x02") == 1


async def test_words_of_other_columns_are_not_counted(filled: SqliteStore) -> None:
    page = await filled.search.search("assistant all user soup")
    assert {hit.message for hit in page.hits} == {"m3", "m4"}
