"""Splitting a shell command line."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.guard.shell import split

TRICKY: list[tuple[str, list[list[str | None]]]] = [
    ("a", [["a"]]),
    ("a b | c && d; e & f || g", [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
    ("a\nb\n\nc", [["a"], ["b"], ["c"]]),
    ("(a; (b)) && { c; }", [["a"], ["b"], ["c"]]),
    ("a $(b $(c)) `d`", [["a", None, None], ["b", None], ["c"], ["d"]]),
    ('a "x $(b) y"', [["a", None], ["b"]]),
    ("a <(b) >(c)", [["a", None, None], ["b"], ["c"]]),
    ('a > "$(b)"', [["a"], ["b"]]),
    ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
    ("while a; do b; done; until c; do d; done", [["a"], ["b"], ["c"], ["d"]]),
    ("for x in $(a); do b; done", [[], ["a"], ["b"]]),
    ("for ((i=0; i<$(a); i++)); do b; done", [[], ["a"], ["b"]]),
    ("case $(a) in x) b;; *) c;; esac", [[], ["a"], ["b"], ["c"]]),
    ("f() { a; b; }", [[], ["a"], ["b"]]),
    ("function f { a; }", [[], ["a"]]),
    ("x=$(a) y=1 b", [["b"], ["a"]]),
    ("export X=$(a)", [[], ["a"]]),
    ("x=(1 $(a))", [[], ["a"]]),
    ("[[ -n $(a) && b == c ]]", [[], ["a"]]),
    ("a <<E | b\n$(c)\nE\nd", [["a"], ["b"], ["c"], ["d"]]),
    ("a <<'E'\n$(c)\nE", [["a"]]),
    ("a <<< $(b)", [["a"], ["b"]]),
    ("echo ${x:-$(a)} $((1 + $(b)))", [["echo", None, None], ["a"], ["b"]]),
    ("! a | b", [["a"], ["b"]]),
    ("time a", [["time", "a"], ["a"]]),
    ("a 'b c' \"d e\" f\\ g ''", [["a", "b c", "d e", "f g", ""]]),
    ("a'b'\"c\"d", [["abcd"]]),
    ("a \"\\$x\" '\\n' \\\\", [["a", "$x", "\\n", "\\"]]),
    ("a # b; c", [["a"]]),
    ("x a#b", [["x", "a#b"]]),
    ("echo == =~ -3 1e5 [x] {} a=b", [["echo", "==", "=~", "-3", "1e5", "[x]", "{}", "a=b"]]),
    ("$'a' b", [[None, "b"]]),
    ("a{1,2}", [[None]]),
    ("/bin/l? x", [[None, "x"]]),
    ("sh -c 'a; b'", [["sh", "-c", "a; b"], ["a"], ["b"]]),
    ("bash -c 'sh -c \"a\"'", [["bash", "-c", 'sh -c "a"'], ["sh", "-c", "a"], ["a"]]),
    (
        "find . -exec a {} \\; -exec b {} +",
        [["find", ".", "-exec", "a", "{}", ";", "-exec", "b", "{}", "+"], ["a", "{}", ";", "-exec", "b", "{}", "+"], ["b", "{}", "+"]],
    ),
]


@pytest.mark.parametrize(("line", "commands"), TRICKY)
def test_every_command_of_a_tricky_line_is_found(line: str, commands: list[list[str | None]]) -> None:
    pieces = split(line)
    assert pieces is not None
    found = [list(piece.words) for piece in pieces]
    for command in commands:
        assert command in found
    assert sorted(map(repr, (words for words in found if words))) == sorted(map(repr, (words for words in commands if words)))


@pytest.mark.parametrize(
    "line",
    [
        *("", " ", "# a", "a 'b", "a &&", "a |", "(a", "$(a", "if a; then b", "a\rb", "a\x00b", "a\x1b[2Jb", "a\u00a0b", "a\u202eb"),
        *("a\u200bb", "g\\\nit x", "a\x0bb", "a#b", "a\x85b", "a\ufeffb"),
    ],
)
def test_a_line_that_is_not_certain_is_not_understood(line: str) -> None:
    assert split(line) is None


def test_an_endless_line_is_not_split() -> None:
    assert split("a " * 6_000) is None
    assert split(";".join("a" * 51)) is None
    assert split("(" * 3_000 + "a" + ")" * 3_000) is None


QUOTES = {
    "bare": lambda word: "".join(f"\\{letter}" if letter in " \t'\"\\$`|&;<>()#*?[]{}~!=" else letter for letter in word) or "''",
    "single": lambda word: "'" + word.replace("'", "'\\''") + "'",
    "double": lambda word: '"' + "".join(f"\\{letter}" if letter in '"\\$`' else letter for letter in word) + '"',
}
WORDS = st.text("ab \t'\"\\$`|&;<>()#*?[]{}~!=-,.\u00e9", min_size=1, max_size=6)
JOINTS = st.sampled_from([";", " && ", " || ", "|", " & ", "\n", " ;\n", "&&"])
WRAPS = st.sampled_from(
    ["{}", "({})", "{{ {}; }}", "! {}", "if {}; then :; fi", "$({})", 'echo "$({})"', "{} >/dev/null", "cat <({})", "f() {{ {}; }}"]
)


@given(st.lists(st.lists(st.tuples(WORDS, st.sampled_from(sorted(QUOTES))), min_size=1, max_size=4), min_size=1, max_size=4), JOINTS, WRAPS)
def test_splitting_never_loses_or_changes_a_word(commands: list[list[tuple[str, str]]], joint: str, wrap: str) -> None:
    commands = [[("run", "bare"), *words] for words in commands]
    line = wrap.format(joint.join(" ".join(QUOTES[how](word) for word, how in words) for words in commands))
    pieces = split(line)
    if pieces is not None:
        found = [piece.words for piece in pieces if piece.words and piece.words[0] == "run"]
        assert found == [tuple(word for word, _ in words) for words in commands], line


@given(st.lists(st.tuples(WORDS, st.sampled_from(sorted(QUOTES))), min_size=1, max_size=3))
def test_words_are_split_like_in_bash(words: list[tuple[str, str]]) -> None:
    line = "printf '%s\\0' " + " ".join(QUOTES[how](word) for word, how in words)
    pieces = split(line)
    if pieces is not None and len(pieces) == 1 and None not in pieces[0].words:
        said = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout.decode()
        assert said.split("\0")[:-1] == list(pieces[0].words[2:])
