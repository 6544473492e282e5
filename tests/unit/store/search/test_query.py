"""The query language: its operators, and that any input is only text."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moot.errors import UsageError
from moot.store.database.connection import Connection, sqlite
from moot.store.search.excerpts import Marker
from moot.store.search.query import OPERATORS, Condition, Cost, Query, expression, parse, parse_moment
from moot.store.search.text import phrase

NOW = int(datetime(2026, 11, 22, 12, 0).timestamp() * 1000)
HOUR = 3_600_000
PIECES = [
    *(f"{name}:" for name in OPERATORS),
    *("user", "image", "2026-11", "7d", ">0.05", "<1", '"', "-", "--", ":", " ", "“", "NEAR(", "AND", "OR", "NOT", "{text}", "^", "*", "'"),
    *(";--", "東京", "é", "\0", "\x02", "\ud800", "text", "facts", "all", "http://x", "foo:bar", "(", ")", "+", "x"),
]
QUERIES = some.one_of(some.text(some.characters()), some.lists(some.sampled_from(PIECES), max_size=14).map("".join))


def meant(text: str) -> Query:
    return parse(text, now=NOW)


def ms(*when: int) -> int:
    return int(datetime(*when).timestamp() * 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "terms", "without"),
    [
        ("two words", ("two", "words"), ()),
        ('"exit code" 137', ("exit code", "137"), ()),
        ("“exit code”", ("exit code",), ()),
        ('"never closed', ("never closed",), ()),
        ('log -debug -"dry run"', ("log",), ("debug", "dry run")),
        ("git --verbose", ("git", "--verbose"), ()),
        ("http://x.org foo:bar", ("http://x.org", "foo:bar"), ()),
        ("mode:plan role: model", ("mode:plan", "role:", "model"), ()),
        ('"role:user"', ("role:user",), ()),
        ("same same", ("same",), ()),
        ("* ^ : -", (), ()),
        ("", (), ()),
    ],
)
def test_words_and_phrases_are_required(text: str, terms: tuple[str, ...], without: tuple[str, ...]) -> None:
    query = meant(text)
    assert (query.terms, query.without, query.conditions) == (terms, without, ())
    assert bool(query) is bool(terms)


def test_each_operator_is_a_condition_and_minus_negates_it() -> None:
    query = meant(
        'agent:claude -model:"gpt 4" role:user role:system has:image has:code -has:error status:failed project:"My shop" in:reasoning'
    )
    assert set(query.conditions) == {
        Condition("agent", ("claude",)),
        Condition("model", ("gpt 4",), negated=True),
        Condition("role", ("user", "system")),
        Condition("has", ("image",)),
        Condition("has", ("code",)),
        Condition("has", ("error",), negated=True),
        Condition("status", ("failed",)),
        Condition("project", ("My shop",)),
    }
    assert query.columns == ("reasoning",)
    assert meant("x").columns == ("text", "tools")
    assert meant("in:text in:reasoning").columns == ("text", "reasoning")
    assert meant("-in:tools").columns == ("text",)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026", ms(2026, 1, 1)),
        ("2026-11", ms(2026, 11, 1)),
        ("2026-11-05", ms(2026, 11, 5)),
        ("2026-11-05T14:30", ms(2026, 11, 5, 14, 30)),
        ("today", ms(2026, 11, 22)),
        ("Yesterday", ms(2026, 11, 21)),
        ("12h", NOW - 12 * HOUR),
        ("7d", NOW - 7 * 24 * HOUR),
        ("2w", NOW - 14 * 24 * HOUR),
        ("3m", NOW - 90 * 24 * HOUR),
        ("1y", NOW - 365 * 24 * HOUR),
        ("2026-02-31", None),
        ("2026-13", None),
        ("0000", None),
        ("soon", None),
        ("999999y", 0),
        ("７d", None),
    ],
)
def test_a_time_is_the_start_of_its_period(text: str, moment: int | None) -> None:
    assert parse_moment(text, NOW) == moment


def test_a_time_range_includes_its_start_and_excludes_its_end() -> None:
    query = meant("after:2026-10 before:2026-11 after:2025")
    assert (query.after, query.before) == (ms(2026, 10, 1), ms(2026, 11, 1))
    assert (meant("-after:2026").before, meant("-before:2026").after) == (ms(2026, 1, 1), ms(2026, 1, 1))


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("cost:>0.05", Cost(50_000_001)),
        ("cost:>=$1", Cost(1_000_000_000)),
        ("cost:<.5", Cost(most=499_999_999)),
        ("-cost:>0.05", Cost(most=50_000_000)),
        ("cost:>1 cost:<=2", Cost(1_000_000_001, 2_000_000_000)),
    ],
)
def test_costs_are_exact(text: str, cost: Cost) -> None:
    assert meant(text).cost == cost


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agnet:x", "Did you mean agent:"),
        ("models:x", "Did you mean model:"),
        ("since:7d", "Did you mean after:"),
        ("role:bob", "Known values: user, assistant, system"),
        ("has:legs", "Known values: image, file, code, tool, reasoning, error"),
        ("status:done", "Known values: finished, failed, cancelled"),
        ("in:title", "Known values: text, tools, reasoning"),
        ("after:soon", "2026-11-01"),
        ("cost:5", "cost:>0.05"),
        ("model:---", "a name"),
        ("in:text -in:text", "excludes every column"),
        (" ".join(f"w{number}" for number in range(33)), "more than 32"),
    ],
)
def test_invalid_queries_are_reported_with_valid_values(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        meant(text)
    assert said in error.value.message
    assert error.value.fix


@given(QUERIES)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        query = meant(text)
    except UsageError as error:
        assert error.fix
        return
    assert len(query.terms) + len(query.without) <= 32
    shown = Marker(query.terms).snippet("some text " + text.encode("utf-8", "replace").decode())
    assert "\n" not in shown


def empty_index() -> Connection:
    database = sqlite.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tools, reasoning, agent, model, facts)")
    database.execute("INSERT INTO t VALUES ('hidden', '', '', '', '', 'all ownerx')")
    return database


INDEX = empty_index()


@given(QUERIES)
def test_typed_text_is_never_fts_syntax(text: str) -> None:
    try:
        query = meant(text)
    except UsageError:
        return
    match = expression(query, [[phrase(term)] for term in query.terms], owner="somebody else")
    found: list[Any] = INDEX.execute("SELECT rowid FROM t WHERE t MATCH ?", (match,)).fetchall()
    assert found == []  # and so the owner can't be overridden by input


def test_a_snippet_shows_the_match_in_context() -> None:
    text = "hay " * 100 + "a NEEDLE\nwith thread " + "hay " * 100
    shown = Marker(("needle", "thread")).snippet(text)
    assert "a \x02NEEDLE\x03 with \x02thread\x03 hay" in shown
    assert shown.startswith("…") and shown.endswith("…") and len(shown) < 260


@pytest.mark.parametrize(
    ("term", "text", "shown"),
    [
        ("exit code", "the exit-code: 1", "the \x02exit-code\x03: 1"),
        ("creme", "Crème brûlée", "\x02Crème\x03 brûlée"),
        ("ÉCOLE", "une école", "une \x02école\x03"),
        ("東京", "私は東京に", "私は\x02東京\x03に"),
        ("app.p", "src/app.py", "src/\x02app.p\x03y"),
        ("İx", "an İx", "an \x02İx\x03"),
    ],
)
def test_matches_are_marked_like_in_the_index(term: str, text: str, shown: str) -> None:
    assert Marker((term,)).snippet(text) == shown
