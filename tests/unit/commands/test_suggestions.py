from __future__ import annotations

import pytest

from moot.commands import built_in, parse
from moot.commands.catalogue import ALIASES
from moot.commands.settings import MODES, next_mode
from moot.errors import UsageError


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("/help", ("help", "")),
        ("  /model  other@mine ", ("model", "other@mine")),
        ("/title two words\nand a line", ("title", "two words\nand a line")),
        ("/hepl", ("hepl", "")),
        ("/?", ("?", "")),
        ("?", ("keys", "")),
        ("? what", None),
        ("/usr/bin is full", None),
        ("/", None),
        ("a /help", None),
        ("/git:squash now", ("git:squash", "now")),
        ("//", None),
        ("/Users/me", None),
    ],
)
def test_a_line_is_a_command_or_a_prompt(line: str, typed: tuple[str, str] | None) -> None:
    assert parse(line) == typed


def test_every_command_and_alias_loads_and_has_a_help_line() -> None:
    commands = built_in()
    for name in (*commands.names(), *ALIASES):
        command = commands.find(name)
        assert command.help
        assert "\n" not in command.help
        assert name not in ALIASES or ALIASES[name] in commands.names()


def test_a_misspelled_command_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="Did you mean 'status'"):
        built_in().find("statsu")


def test_modes_form_a_cycle_without_auto() -> None:
    assert [next_mode(mode) for mode in MODES] == ["edits", "plan", "ask", "ask"]
