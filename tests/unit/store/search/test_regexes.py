"""Regular expressions in queries, and lines of context around matches."""

from __future__ import annotations

import time

import pytest

from moot.errors import UsageError
from moot.store import SqliteStore
from moot.store.search import matches
from moot.store.search.query import parse
from moot.store.search.regexes import compiled, words_of
from moot.types.conversation import Conversation
from moot.types.message import Message, Part, text_part

pytestmark = pytest.mark.anyio

OUTPUT = "\n".join(f"line {number}" for number in range(1, 200)) + "\nError   E1234 at end\nlast line"
TOOL: Part = {"type": "tool-shell", "toolCallId": "1", "state": "output-available", "input": {}, "output": OUTPUT}


@pytest.fixture
async def filled(store: SqliteStore) -> SqliteStore:
    await store.conversations.create(Conversation("a"))
    said: list[Part] = [text_part("see /usr/bin/ and a/b"), TOOL, text_part("Exit code 7\nbye"), text_part("exit code seven")]
    for number, part in enumerate(said):
        await store.conversations.add_message(Message(f"m{number}", "user", (part,), conversation="a", created_at=1000 * (number + 1)))
    return store


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (r"/exit code \w+$/", ["m3", "m2"]),
        (r"/exit code \d/", ["m2"]),
        (r"/(?-i)exit code/", ["m3"]),
        (r"/e\d{4}\b/", ["m1"]),
        (r"/e\d{4}\b/ in:text", []),
        (r"/^bye$/", ["m2"]),
        (r"/code/ /seven/", ["m3"]),
        (r"/exit.*bye/", []),
        (r"/(?s)exit.*bye/", ["m2"]),
        (r"/exit/ seven", ["m3"]),
        (r"/exit/ -seven", ["m2"]),
        (r"/a\/b/", ["m0"]),
        (r"/usr/bin/", ["m0"]),
        (r"/nothing such/", []),
    ],
)
async def test_regular_expressions_find_messages_newest_first(filled: SqliteStore, query: str, expected: list[str]) -> None:
    for best in (False, True):
        assert [hit.message for hit in (await filled.search.search(query, best=best)).hits] == expected


async def test_the_excerpt_shows_the_match_in_its_column(filled: SqliteStore) -> None:
    [hit] = (await filled.search.search(r"/error\s+e\d+/")).hits
    assert (hit.column, hit.context) == ("tools", "")
    assert "\x02Error E1234\x03 at end" in hit.snippet


@pytest.mark.parametrize(
    ("pattern", "reason"), [("(", "missing"), ("(?=x)", r"\(\?="), (r"(a)\1", "escape"), ("((a{100}){100}){100}", "repetition")]
)
async def test_an_unsupported_expression_is_a_usage_error(pattern: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse(f"/{pattern}/", now=0)
    with pytest.raises(UsageError, match="excluded"):
        parse("-/x/", now=0)


@pytest.mark.parametrize(
    "pattern", ["x*", "^$", r"^\s*$", "()", "$", r"\b", r"\B", "x|y?", "(?-i)x{0,3}", r"foo|\b", r"a|\b", r"[a-z]+|\b"]
)
def test_an_expression_that_matches_empty_text_is_a_usage_error(pattern: str) -> None:
    with pytest.raises(UsageError, match="also matches empty text") as raised:
        parse(f"word /{pattern}/", now=0)
    assert "+" in raised.value.fix


async def test_an_expression_that_backtracks_elsewhere_takes_no_time(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    await store.conversations.add_message(Message("m", "user", (text_part("a" * 900_000 + "!"),), conversation="a", created_at=1))
    await store.search.index()
    began = time.thread_time()
    assert not (await store.search.search(r"/^(a+)+$/")).hits
    assert time.thread_time() - began < 5


async def test_a_page_that_reaches_its_time_limit_is_continued_by_the_next(filled: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "_SCAN_SECONDS", -1.0)
    found: list[str] = []
    times: list[int | None] = []
    cursor: str | None = None
    for _ in range(9):
        page = await filled.search.search("/line 7|code/", cursor=cursor)
        found += [hit.message for hit in page.hits]
        times.append(page.stopped_at)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert (found, times) == (["m3", "m2", "m1"], [4000, 3000, 2000, 1000, None])


async def test_pages_of_an_expression_have_each_match_once(filled: SqliteStore) -> None:
    first = await filled.search.search("/code/", limit=1)
    second = await filled.search.search("/code/", limit=1, cursor=first.next_cursor)
    assert [hit.message for page in (first, second) for hit in page.hits] == ["m3", "m2"]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"exit code \d+", ["code"]),
        (r"\bTypeError\b", ["~typeerror"]),
        (r" \bTypeError\b: x", ["typeerror"]),
        (r"\BTypeError\b", []),
        (r"^panic: .*nil (pointer) x", ["panic", "pointer"]),
        (r"(?:first one )?second half ", ["half"]),
        (r"(?i) (?P<name>one (two three) )? four ", ["four"]),
        (r" (?:one (?s:two three) )four ", ["one", "two", "three", "four"]),
        (r" some | other ", []),
        (r" (some | other ) word ", ["word"]),
        (r" many+ ", []),
        (r" many{2,}? (lazy )+? word ", ["word"]),
        (r" {many} a{many} ", ["many"]),
        (r"é word é", ["word"]),
        (r"\pL \Q.\E", []),
        (r" word \x41", []),
        (r"[[:digit:]]word ", []),
        (r"[]a] word [^]|(\]] more ", ["word", "more"]),
        (r"\/src\/moot\.py\t", ["src", "moot"]),
    ],
)
def test_words_of_every_match_select_the_messages(pattern: str, words: list[str]) -> None:
    compiled(pattern)
    assert [word.text if word.is_whole else f"~{word.text}" for word in words_of(pattern)] == words


TEXTS = [
    "7test passed",
    "\u00eatre l\u00e0",
    "a test, passed",
    "tre",
    "x=\u017fkip y",
    "a]b foo bar",
    "\u00e9TypeError\u4f60",
    "one\ntwo three",
    "trees",
    "\u00e912345 z",
    "\u00e9" + "b" * 45,
]
PATTERNS = [
    *(
        r"[[:digit:]]test ",
        r"\btre\b",
        r"\bTRE",
        r"=skip ",
        r"\b12345\b",
        rf"\b{'b' * 45}\b",
        r"[]b]+ foo ",
        r"\btypeerror\b",
        r"^two three$",
        r"(?:two )three\b",
        r"\D\btest\b",
    ),
    *(r"[^[:space:]]test passed\z", r"\pLtre\b", r"\Qa]b\E foo ", r"a{0}tre", r"\x74re\b", r" (?:test|none), ", r"[a&&b]?\]b foo "),
]


async def test_the_index_excludes_no_match(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    for text in TEXTS:
        await store.conversations.add_message(Message(text, "user", (text_part(text),), conversation="a", created_at=1000))
    for pattern in PATTERNS:
        expected = [text for text in TEXTS if compiled(pattern).search(text)]
        assert expected and sorted(hit.message for hit in (await store.search.search(f"/{pattern}/")).hits) == sorted(expected), pattern


async def test_a_common_part_of_words_still_selects_the_messages(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    texts = ["an error here", "\u00e9error", *(f"errorkind{number:x}x" for number in range(450))]
    for text in texts:
        await store.conversations.add_message(Message(text, "user", (text_part(text),), conversation="a", created_at=1000))
    await store.search.index()
    query = parse(r"/\berror\b/", now=0)
    expression = await store._reader.read(lambda connection: matches.scope_of(connection, query, matches.SearchOptions()).match)
    assert '"error" OR "\u00e9error"' in expression


@pytest.mark.parametrize(
    ("query", "lines", "expected"),
    [
        ("e1234", 1, "line 199\nError   \x02E1234\x03 at end\nlast line"),
        ("e1234", 5, "line 195\nline 196\nline 197\nline 198\nline 199\nError   \x02E1234\x03 at end\nlast line"),
        (r"/^line 7$/", 2, "line 5\nline 6\n\x02line 7\x03\nline 8\nline 9"),
        ('"line 1"', 1, "shell\n\x02line 1\x03\nline 2"),
    ],
)
async def test_context_is_the_lines_around_the_match(filled: SqliteStore, query: str, lines: int, expected: str) -> None:
    hit = next(hit for hit in (await filled.search.search(query, context=lines)).hits if hit.message == "m1")
    assert hit.context == expected


@pytest.mark.parametrize("lines", [-1, 101, 10**6])
async def test_context_has_bounds(filled: SqliteStore, lines: int) -> None:
    with pytest.raises(UsageError, match="between 0 and 100 lines"):
        await filled.search.search("code", context=lines)


async def test_context_of_a_long_line_is_cut(store: SqliteStore) -> None:
    await store.conversations.create(Conversation("a"))
    text = "word " * 50_000 + "needle" + " word" * 50_000
    await store.conversations.add_message(Message("m", "user", (text_part(text),), conversation="a", created_at=1))
    [hit] = (await store.search.search("needle", context=3)).hits
    assert "\x02needle\x03" in hit.context and 30_000 < len(hit.context) < 50_000
