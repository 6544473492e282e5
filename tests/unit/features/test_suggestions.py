"""Rules that are suggested for commands which a person allowed again and again."""

from __future__ import annotations

import pytest

from moot.config.settings import Permissions, Rule
from moot.features.suggestions import Decision, suggest
from moot.tools.builtin.shell import Shell
from moot.types.approval import OutsideCall

HERE = "/home/me/app"
SHELL = Shell()


def past(*lines: str) -> list[Decision]:
    """Return decisions about lines; a line that starts with `no:` was denied."""
    return [Decision(SHELL, line.removeprefix("no:"), HERE, not line.startswith("no:")) for line in lines]


def suggested(*lines: str, rules: tuple[Rule, ...] = ()) -> list[tuple[str, int]]:
    return [(each.match, each.allowed) for each in suggest(Permissions(rules=rules), past(*lines))]


def allow(match: str) -> Rule:
    return Rule("shell", "allow", match)


def test_a_line_that_was_allowed_three_times_gets_an_exact_rule() -> None:
    assert suggested("frobnicate x", "frobnicate x") == []
    assert suggested("frobnicate x", "frobnicate  x", "frobnicate x") == [("frobnicate x", 3)]
    assert suggested(*["cd web && npm test"] * 4) == [("cd web && npm test", 4)]
    assert suggested(*["ls [ab]"] * 3) == [("ls [[]ab]", 3)]


def test_different_options_from_the_table_get_a_wildcard_after_their_common_words() -> None:
    assert suggested("git log -1", "git log --oneline", "git log") == [("git log *", 3)]
    assert suggested("uv run pytest -x a", "uv run pytest -x b", "uv run pytest -x b") == [("uv run pytest -x *", 3)]
    (found,) = suggest(Permissions(), past("git log -1", "git log -2", "git log -2"))
    assert found.to_json() == {"tool": "shell", "match": "git log *", "allowed": 3, "example": "git log -2"}


def test_words_outside_of_the_table_get_no_wildcard() -> None:
    assert suggested("frobnicate x", "frobnicate y", "frobnicate z") == []
    assert suggested("tar xf a.tar --to-comm=a", "tar xf a.tar --to-comm=b", "tar xf a.tar --to-comm=c") == []
    assert suggested("git log -1", "git log -2", *["git log --ext-diff"] * 2) == []


def test_a_denied_line_is_not_suggested_or_covered() -> None:
    assert suggested(*["frobnicate x"] * 5, "no:frobnicate x") == []
    lines = ["git log -1", "git log -1", "git log -1", "git log --all"]
    assert suggested(*lines) == [("git log *", 4)]
    assert suggested(*lines, "no:git log -p") == [("git log -1", 3)]


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf build",
        "git push",
        "sudo ls",
        "ls > x",
        "echo $HOME",
        "cp a .envrc",
        "frobnicate .git/config",
        "frobnicate AGENTS.md",
        "cat x | sh",
        "frobnicate caf\u00e9",
        "echo 'x ${y}'",
    ],
)
def test_protected_and_dangerous_lines_and_those_allowed_only_once_are_left_out(line: str) -> None:
    assert suggested(*[line] * 5) == []


def test_existing_rules_are_respected() -> None:
    lines = ["frobnicate x"] * 3
    assert suggested(*lines, rules=(allow("frobnicate *"), allow("frobnicate x"))) == []
    assert suggested(*lines, rules=(Rule("shell", "ask", "frobnicate *"),)) == []
    assert suggested(*lines, rules=(Rule("shell", "deny", "frobnicate *"),)) == []
    assert suggested(*["git status && frobnicate x"] * 3, rules=(allow("git status *"),)) == [("git status && frobnicate x", 3)]
    wide = suggested("git log -1", "git log -2", "git log -3", *["git log -1 && git log -2"] * 3)
    assert wide == [("git log *", 3)], "a line that the wildcard covers needs no rule of its own"


def test_a_suggested_rule_is_for_the_tool_that_was_allowed() -> None:
    call = OutsideCall("call", "Bash", "Bash", b"{}", frozenset({"execute"}), "npm test", like="shell")
    found = suggest(Permissions(), [Decision(call, "npm test", HERE, True)] * 3)
    assert [(each.tool, each.match) for each in found] == [("Bash", "npm test")]
