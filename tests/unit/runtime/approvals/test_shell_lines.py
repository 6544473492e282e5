"""A table of shell lines, each with its verdict under the rules at the top of the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moot.config.settings import Permissions, Rule
from moot.runtime.approvals.policy import decide
from moot.tools.builtin.shell import Shell
from moot.types.approval import Action

TABLE = Path(__file__).with_name("shell_lines.txt").read_text(encoding="utf-8").splitlines()
RULES: tuple[tuple[Action, tuple[str, ...]], ...] = (
    ("allow", ("git status*", "git diff*", "git log*", "ls*", "cat *", "echo *", "make test", "timeout 5 ls*")),
    ("ask", ("git log --all*", "curl *")),
    ("deny", ("rm *", "git push --force*")),
)
PERMISSIONS = Permissions(rules=tuple(Rule("shell", action, pattern) for action, patterns in RULES for pattern in patterns))
SPELLED = {"⏎": "\n", "␍": "\r", "⇥": "\t"}


def line_of(text: str) -> str:
    """Replace placeholders by characters that a table can't contain."""
    text = re.sub(r"<U\+([0-9A-F]{4})>", lambda found: chr(int(found[1], 16)), text)
    return "".join(SPELLED.get(letter, letter) for letter in text)


LINES = [text.partition(" ")[::2] for text in TABLE if text.strip() and not text.startswith("#")]


@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_every_command_line_of_the_table_gets_its_verdict(verdict: str) -> None:
    lines = [text for wanted, text in LINES if wanted == verdict]
    found = {text: decide(PERMISSIONS, "ask", Shell(), line_of(text)).action for text in lines}
    assert {text: action for text, action in found.items() if action != verdict} == {}


def test_a_line_that_may_not_run_is_not_allowed_by_a_mode_either() -> None:
    for verdict, text in LINES:
        if verdict == "deny":
            assert decide(PERMISSIONS, "auto", Shell(), line_of(text)).action == "deny", text


def test_the_table_is_large_and_has_no_duplicates() -> None:
    assert {verdict for verdict, _ in LINES} == {"allow", "ask", "deny"}
    assert len({text for _, text in LINES}) == len(LINES) >= 200
