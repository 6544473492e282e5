"""Search results, query parsing, and the indexer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.errors import UsageError
from moot.store import SqliteStore, open_store
from moot.store.database import schema
from moot.store.database.locks import FileLock
from moot.store.database.transaction import Transaction
from moot.store.log.events import Events
from moot.store.search.indexer import Filler, optimize, pending, take_out, unindex
from moot.types.canonical import dumps
from moot.types.conversation import Conversation, Project
from moot.types.message import Message, Part, Role, text_part

DAY = 24 * 3_600_000
"""ms"""


async def fill(store: SqliteStore, *texts: str) -> None:
    await store.conversations.create(Conversation("a"))
    for number, text in enumerate(texts):
        await store.conversations.add_message(Message(f"m{number}", "user", (text_part(text),), conversation="a", created_at=1000 + number))


async def found(store: SqliteStore, query: str) -> list[str]:
    page = await store.search.search(query)
    return [] if page.loose else [hit.message for hit in page.hits]


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
async def test_any_query_is_searched_literally(store: SqliteStore, query: str) -> None:
    await fill(store, *TEXTS)
    assert await found(store, query) == []


@pytest.mark.anyio
async def test_one_process_indexes_at_a_time(store: SqliteStore, settings: Settings) -> None:
    await fill(store, *TEXTS)
    lock = FileLock(settings.home / "state" / "indexer.lock")
    assert lock.take(wait=False)
    assert await store.search.index() == (0, 7)
    began = time.perf_counter()
    page = await store.search.search("plain", wait=0.1)
    assert (page.hits, page.done, page.total) == ((), 0, 7)
    assert time.perf_counter() - began > 0.05
    searching = asyncio.create_task(store.search.search("plain"))
    await asyncio.sleep(0.05)
    lock.release()
    assert [hit.message for hit in (await searching).hits] == ["m6"]


@pytest.mark.anyio
async def test_indexing_resumes_where_it_stopped(store: SqliteStore, settings: Settings) -> None:
    await fill(store, *(f"word{number}" for number in range(600)))

    def stop(done: int, total: int) -> None:
        assert 0 < done < total == 600
        raise InterruptedError

    with pytest.raises(InterruptedError):
        await store.search.index(progress=stop)
    other = await open_store(settings)
    assert await other.search.index() == (600, 600)
    assert await found(store, "word0") == ["m0"]
    assert await found(store, "word599") == ["m599"]
    heads = await store._reader.read(lambda connection: connection.execute("SELECT indexed_through FROM log_head").fetchall())
    assert heads == [(600,)]
    await other.close()


@pytest.mark.anyio
@pytest.mark.slow
async def test_bulk_indexing_reports_progress(store: SqliteStore) -> None:
    await fill(store, *(f"word{number} " * 20 for number in range(5000)))
    told: list[tuple[int, int]] = []
    assert await store.search.index(bulk=True, progress=lambda done, total: told.append((done, total))) == (5000, 5000)
    assert told == sorted(told) and told[-1] == (5000, 5000) and len(told) > 1
    assert await found(store, "word4999") == ["m4999"]
    pieces = "SELECT (SELECT count(DISTINCT segid) FROM search_words_idx), (SELECT count(DISTINCT segid) FROM search_infix_idx)"
    assert await store._reader.read(lambda connection: connection.execute(pieces).fetchone()) == (1, 1)


@pytest.mark.anyio
async def test_a_message_that_grows_while_it_is_indexed_is_indexed_again(store: SqliteStore) -> None:
    await fill(store, "once")
    (entry,) = await store._reader.read(lambda connection: pending(connection, Events()))
    await store._writer.write(lambda transaction: transaction.execute("UPDATE message SET last_seq = last_seq + 1"))
    await store._writer.write(lambda transaction: Filler().fill([entry], 1, transaction))
    assert await store._reader.read(lambda connection: [one.no for one in pending(connection, Events())]) == [entry.no]
    assert await store._reader.read(lambda connection: pending(connection, Events(), [entry])) == []


@pytest.mark.anyio
async def test_equal_timestamps_do_not_conflict(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    for number in range(5):
        await store.conversations.add_message(Message(f"m{number}", "user", (text_part("same"),), conversation="a", created_at=77))
    assert await found(store, "same") == ["m4", "m3", "m2", "m1", "m0"]


def spoken(id: str, *parts: Part, role: Role = "user", at: int = 5000, **more: Any) -> Message:
    return Message(id, role, parts, conversation="a", created_at=at, **more)


def call(output: Any, **more: Any) -> Part:
    return {
        "type": "tool-shell",
        "toolCallId": "1",
        "state": "output-available",
        "input": {"command": "ls asked"},
        "output": output,
        **more,
    }


@pytest.mark.anyio
async def test_each_word_is_found_in_its_column(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    parts: list[Part] = [
        text_part("said\x02\x03\x00"),
        {"type": "reasoning", "text": "thought"},
        call({"deep": ['kept "quoted"']}),
        call("longé " * 1_000_000 + "end"),
        {"type": "dynamic-tool", "toolName": "x", "toolCallId": "2", "state": "output-error", "errorText": "broken"},
        {"type": "steering-message", "id": "s", "parts": [text_part("steered")]},
        {"type": "data-x", "data": "datum"},
    ]
    await store.conversations.add_message(spoken("m", *parts))
    await store.search.index()
    for word, columns in {
        "said": "text",
        "steered": "text",
        "thought": "reasoning",
        "asked": "tools",
        "shell": "tools",
        "kept": "tools",
        "quoted": "tools",
        "end": "tools",
        "broken": "tools",
        "datum": "",
    }.items():
        for column in ("text", "tools", "reasoning"):
            hits = (await store.search.search(f"{word} in:{column}")).hits
            assert [(hit.message, hit.column) for hit in hits] == ([("m", column)] if column == columns else []), (word, column)
        assert bool(await found(store, word)) is (columns in ("text", "tools")), word


async def furnished(store: SqliteStore) -> None:
    await store.projects.create(Project("shop", "My shop"))
    await store.conversations.create(Conversation("a", agent="claude-code", model="claude-sonnet-4-5@anthropic", project="shop"))
    await store.conversations.create(Conversation("b", agent="default", model="gpt-4@openai"))
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "data:,", "filename": "cat.png"}
    paper: Part = {"type": "file", "mediaType": "application/pdf", "url": "data:,", "filename": "bill.pdf"}
    steps: Any = {"agent": "reviewer", "steps": [{"model": "o3@openai", "cost": 40_000_000}, {"model": "o3@openai", "cost": 20_000_000}]}
    for message in (
        spoken("u1", text_part("apple"), picture, at=DAY),
        spoken("a1", text_part("apple\n```py\nx\n```"), call("x"), role="assistant", at=DAY + 1000),
        spoken("u2", text_part("apple"), paper, at=2 * DAY),
        spoken("a2", text_part("apple"), role="assistant", at=2 * DAY + 1000, metadata=steps, status="failed"),
    ):
        await store.conversations.add_message(message)
    await store.conversations.add_message(replace(spoken("b1", text_part("apple pie"), at=3 * DAY), conversation="b"))


@pytest.mark.anyio
async def test_conditions_filter_the_results(store: SqliteStore) -> None:
    await furnished(store)
    for query, expected in {
        "apple": "b1 a2 u2 a1 u1",
        "apple -pie": "a2 u2 a1 u1",
        '-"apple pie" role:user': "u2 u1",
        "role:assistant": "a2 a1",
        "-role:user": "a2 a1",
        "role:user role:assistant apple": "b1 a2 u2 a1 u1",
        "agent:claude": "u2 a1 u1",
        "agent:claude-code": "u2 a1 u1",
        "agent:reviewer": "a2",
        "agent:reviewer agent:default": "b1 a2",
        "model:sonnet": "u2 a1 u1",
        "model:claude-sonnet-4-5@anthropic": "u2 a1 u1",
        "model:openai": "b1 a2",
        "model:sonn": "",
        "has:image": "u1",
        "has:file": "u2",
        "cat": "u1",
        "has:code": "a1",
        "has:tool": "a1",
        "has:tool has:image": "",
        "has:error": "a2",
        "-has:tool -has:error role:assistant": "",
        "status:failed": "a2",
        "cost:>0.05": "a2",
        "cost:>0.06": "",
        "cost:>=0.06": "a2",
        "cost:<0.06": "",
        "cost:<=0.06 apple": "a2",
        'project:"my shop" apple': "a2 u2 a1 u1",
        "project:shop -has:image role:user": "u2",
        "-project:shop": "b1",
        "before:1970-01-03T00:00 role:user": "u1",
        "after:1970-01-03 apple": "b1 a2 u2",
        "after:1970-01-03 before:1970-01-04": "a2 u2",
    }.items():
        assert await found(store, query) == expected.split(), query
    inside = await store.search.search("apple", conversation="b")
    outside = await store.search.search("apple", exclude="a")
    assert [hit.message for hit in inside.hits] == [hit.message for hit in outside.hits] == ["b1"]
    with pytest.raises(UsageError, match="Known projects: My shop, default"):
        await store.search.search("project:nowhere")


@pytest.mark.anyio
async def test_a_conversation_that_moves_is_found_in_its_new_project(store: SqliteStore) -> None:
    await furnished(store)
    await store.conversations.update("b", project="shop")
    assert await found(store, "project:shop pie") == ["b1"]


@pytest.mark.anyio
async def test_best_matches_come_first_and_newer_ones_win_ties(store: SqliteStore) -> None:
    await fill(
        store, "a long text in which the word lemon stands among many others", "lemon lemon lemon", "lemon tart", "lemon cake", "none"
    )
    page = await store.search.search("lemon", best=True)
    assert [hit.message for hit in page.hits] == ["m1", "m3", "m2", "m0"]
    assert page.ranked is None
    assert [hit.message for hit in (await store.search.search("lemon")).hits] == ["m3", "m2", "m1", "m0"]


@pytest.mark.anyio
@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("query", ["word", "wor"])
async def test_pages_have_no_gaps_while_others_write(store: SqliteStore, query: str, best: bool) -> None:
    await fill(store, *(f"{'word ' * (number % 7 + 1)} tail" for number in range(40)))
    await store.tree.delete("a", ["m5", "m20"])
    seen: list[str] = []
    cursor = None
    while True:
        page = await store.search.search(query, limit=7, cursor=cursor, best=best)
        seen += [hit.message for hit in page.hits]
        cursor = page.next_cursor
        if cursor is None:
            break
        late = Message(f"late{len(seen)}", "user", (text_part("word word word"),), conversation="a", created_at=10**9 + len(seen))
        await store.conversations.add_message(late)
    assert sorted(seen) == sorted(f"m{number}" for number in range(40) if number not in (5, 20))
    with pytest.raises(UsageError, match="Invalid cursor"):
        await store.search.search(query, cursor="p1" if best else "wb1.1", best=best)


@pytest.mark.anyio
@pytest.mark.parametrize("best", [False, True])
async def test_a_page_is_full_even_if_most_matches_are_deleted(store: SqliteStore, best: bool) -> None:
    await fill(store, *(f"{'word ' * (number + 1)} tail" for number in range(60)))
    await store.tree.delete("a", [f"m{number}" for number in range(10, 60)])
    page = await store.search.search("word", limit=4, best=best)
    assert [hit.message for hit in page.hits] == ["m9", "m8", "m7", "m6"]
    rest = await store.search.search("word", limit=40, cursor=page.next_cursor, best=best)
    assert [hit.message for hit in rest.hits] == ["m5", "m4", "m3", "m2", "m1", "m0"]
    assert rest.next_cursor is None


@pytest.mark.anyio
async def test_matches_with_and_without_accents_are_marked(store: SqliteStore) -> None:
    await fill(store, f"{'far away — ' * 30} the crème and the creme")
    (hit,) = (await store.search.search("creme")).hits
    assert hit.snippet.endswith("the \x02crème\x03 and the \x02creme\x03")


@pytest.mark.anyio
async def test_partial_words_are_searched_if_few_whole_words_match(store: SqliteStore) -> None:
    await fill(store, "unbelievable", *("believe" for _ in range(49)), "exit codes follow", "believers")
    assert len((await store.search.search("believe", limit=60)).hits) == 50  # `unbelievable` contains believa
    assert await found(store, "nbelieva") == ["m0"]
    assert await found(store, '"xit code"') == ["m50"]
    await store.conversations.add_message(Message("more", "user", (text_part("believe"),), conversation="a", created_at=9000))
    page = await store.search.search("believe", limit=60)
    assert {hit.message for hit in page.hits} == {*(f"m{number}" for number in range(1, 50)), "more"}


@pytest.mark.anyio
async def test_a_partial_word_in_too_many_words_is_reported_as_cut(store: SqliteStore) -> None:
    await fill(store, " ".join(f"prefix{number}" for number in range(500)))
    page = await store.search.search("refix")
    assert ([hit.message for hit in page.hits], page.cut) == (["m0"], True)
    assert not (await store.search.search("refix499")).cut


@pytest.mark.anyio
async def test_grown_messages_are_indexed_again_and_removed_ones_are_forgotten(store: SqliteStore) -> None:
    await fill(store, "first secretword", "first other")
    await store.search.index()

    def grow(transaction: Transaction) -> None:
        transaction.execute("UPDATE message SET parts = ?, is_indexed = 0 WHERE id = 'm0'", (dumps([text_part("first second")]),))

    await store._writer.write(grow)
    assert await found(store, "secretword") == []
    assert await found(store, "second") == ["m0"]

    def purge(transaction: Transaction) -> None:
        for row in transaction.execute("SELECT no FROM message WHERE id = 'm0'").fetchall():
            take_out(transaction, row[0], purged=True)

    await store._writer.write(purge)
    await store._writer.run_outside_transaction(optimize)
    terms = await store._reader.read(lambda connection: connection.execute("SELECT term FROM search_term ORDER BY term").fetchall())
    assert [row[0] for row in terms] == ["first", "other"]
    blocks = await store._reader.read(lambda connection: connection.execute("SELECT block FROM search_words_data").fetchall())
    assert not any(b"secretword" in block or b"econd" in block for (block,) in blocks)
    check = "INSERT INTO search_words (search_words) VALUES ('integrity-check')"
    await store._writer.write(lambda transaction: transaction.execute(check).fetchall())
    assert await found(store, "first") == ["m1"]


@pytest.mark.anyio
async def test_ids_are_found_by_their_beginning_and_encoded_data_is_not_indexed(store: SqliteStore) -> None:
    await fill(store, "commit 9f86d081884c7d65", f"data:image/png;base64,{'iVBORw0KGgo' * 200} after", "version1234 of utf8")
    assert await found(store, "9f86d081884c7d65") == ["m0"]
    assert await found(store, "9f86d08") == ["m0"]
    assert await found(store, "ersion12") == ["m2"]
    assert await found(store, "after") == ["m1"]
    terms = await store._reader.read(lambda connection: connection.execute("SELECT term FROM search_term").fetchall())
    assert {term for (term,) in terms} == {"after", "base64", "commit", "data", "image", "of", "png", "utf8", "version1234"}


@pytest.mark.anyio
async def test_an_index_of_an_old_sqlite_forgets_words_by_being_built_again(
    settings: Settings, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "FORGETS_WORDS", False)
    store = await open_store(settings)
    await fill(store, "first secretword", "first other")
    await store.search.index()

    async def change(sql: str) -> None:
        await store._writer.write(lambda transaction: transaction.execute(sql))

    grown = dumps([text_part("first second")]).hex()
    await change(f"UPDATE message SET parts = x'{grown}', is_indexed = 0 WHERE id = 'm0'")
    assert sorted(await found(store, "first")) == ["m0", "m1"]
    assert await found(store, "secretword") == []
    await store._writer.write(lambda transaction: unindex(transaction, "m0"))
    assert await store.search.index(seconds=0) == (0, 2)
    assert await found(store, "second") == ["m0"]
    blocks = await store._reader.read(lambda connection: connection.execute("SELECT block FROM search_words_data").fetchall())
    assert not any(b"secretword" in block for (block,) in blocks)
    await store.close()


@pytest.mark.anyio
async def test_messages_of_one_second_keep_their_order(store: SqliteStore) -> None:
    await fill(store, *("same" for _ in range(200)))
    assert await found(store, "same limit") == []
    page = await store.search.search("same", limit=200)
    assert [hit.message for hit in page.hits] == [f"m{number}" for number in reversed(range(200))]
