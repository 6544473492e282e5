from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.arguments import ALL_TOOLS, LATEST, settle, wants_json
from moot.cli.following import exit_code_of
from moot.cli.lines import screen_json
from moot.cli.options import seconds
from moot.cli.times import age
from moot.errors import UsageError


@pytest.mark.parametrize(
    ("given_words", "settled"),
    [
        ("run -c", f"run --continue={LATEST}"),
        ("run -c 3 x", "run --continue=3 x"),
        ("run --continue 0193a4b2", "run --continue=0193a4b2"),
        ("run -c and", f"run --continue={LATEST} and"),
        ("run -c fade", f"run --continue={LATEST} fade"),
        ("run --continue=Title", "run --continue=Title"),
        ("run -- -c 3", "run -- -c 3"),
        ("search -c 3 word", "search -c 3 word"),
        ("run --tools x", f"run --tools={ALL_TOOLS} x"),
        ("run --tools", f"run --tools={ALL_TOOLS}"),
        ("run --tools=shell", "run --tools=shell"),
        ("run --tools shell x", "run --tools=shell x"),
        ("chat new --tools read_file,nope x", "chat new --tools=read_file,nope x"),
        ("run --tools raed_file x", "run --tools=raed_file x"),
        ("run --tools --json", f"run --tools={ALL_TOOLS} --json"),
    ],
)
def test_a_value_that_may_be_left_out_is_settled_before_parsing(given_words: str, settled: str) -> None:
    assert settle(given_words.split()) == settled.split()


def test_a_prompt_of_several_words_is_never_taken_for_tool_names() -> None:
    assert settle(["run", "--tools", "shell, please"]) == ["run", f"--tools={ALL_TOOLS}", "shell, please"]


@given(st.lists(st.text(max_size=8).filter(lambda word: word not in ("-c", "--continue", "--tools"))))
def test_other_words_go_through_as_they_are(words: list[str]) -> None:
    assert settle(words) == words
    assert settle(["--", *words, "-c"]) == ["--", *words, "-c"]


def test_json_is_wanted_only_before_two_dashes() -> None:
    assert wants_json(["run", "--json"])
    assert not wants_json(["run", "--", "--json"])


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_json_on_a_screen_is_the_same_json_without_anything_that_acts(value: Any) -> None:
    plain = json.dumps(value, ensure_ascii=False)
    if any("\ud800" <= character <= "\udfff" for character in plain):
        return
    shown = screen_json(plain)
    assert json.loads(shown) == value
    assert all(character.isprintable() for character in shown)


@pytest.mark.parametrize(("text", "expected"), [("90", 90.0), ("90s", 90.0), ("5m", 300.0), ("1h", 3600.0), ("0.5", 0.5)])
def test_a_duration_is_seconds_in_the_end(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "soon", "-1", "1d2", "1 s s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="90s"):
        seconds(text)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("usage", 2),
        ("config", 2),
        ("output_contract", 4),
        ("limit", 6),
        ("rate_limit", 5),
        ("auth", 5),
        ("anything new", 5),
        ("timeout", 5),
        ("deadline", 124),
    ],
)
def test_the_kind_of_a_failure_decides_the_exit_code(kind: str, code: int) -> None:
    assert exit_code_of(kind) == code


@pytest.mark.parametrize(
    ("ago", "words"), [(5, "5 s"), (65, "1 min"), (7200, "2 h"), (3 * 86400, "3 d"), (70 * 86400, "2 mo"), (800 * 86400, "2 y")]
)
def test_an_age_has_one_unit(ago: int, words: str) -> None:
    assert age(1_000_000_000_000 - ago * 1000, 1_000_000_000) == words
