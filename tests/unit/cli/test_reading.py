from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.cli.arguments import settle
from moot.cli.command import Command, Group
from moot.cli.completing.table import FILE, made
from moot.cli.parsing import parse
from moot.cli.reading import read
from moot.cli.slots import slots_of
from moot.cli.tree import TREE
from moot.errors import MootError, UsageError
from moot.plugins.registry import attribute
from moot.types.canonical import loads_object

Leaf = tuple[tuple[str, ...], Command]


def leaves(group: Group = TREE, above: tuple[str, ...] = ()) -> list[Leaf]:
    found: list[Leaf] = []
    for name, item in group.commands.items():
        found += leaves(item, (*above, name)) if isinstance(item, Group) else [((*above, name), item)]
    return found


COMMANDS = leaves()
NAMES = [" ".join(path) for path, _ in COMMANDS]
VALUES = ["3", "0", "-1", "200", "1.5", "x", "high", "ask", "a b", "--", "", "none", "-", "é\u2028", "=", "-m", "--json", "1e3", "0x10"]


def both(words: list[str]) -> tuple[Any, Any]:
    """The call of the plain reader (None when it passes) and that of the whole parser (an error's words when it refuses)."""
    try:
        whole: Any = parse(words)
    except UsageError as error:
        whole = error.message
    return read(words), whole


@pytest.mark.timeout(60)
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_read_plainly_means_the_same_to_the_whole_parser(data: st.DataObject) -> None:
    path, command = data.draw(st.sampled_from(COMMANDS))
    flags = [flag for slot in slots_of(attribute(command.path)) for flag in slot.flags]
    word = st.sampled_from([*flags, *VALUES, *(f"{flag}={value}" for flag in flags for value in VALUES[:6])])
    words = [*path, *data.draw(st.lists(word, max_size=5))]
    plain, whole = both(words)
    if plain is not None:
        assert not isinstance(whole, str), (words, whole)
        assert (plain.command, plain.args, plain.keywords) == (whole.command, whole.args, whole.keywords), words


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=NAMES)
def test_every_command_shows_how_it_is_used_and_each_example_parses(path: tuple[str, ...], command: Command) -> None:
    assert command.examples
    for example in command.examples:
        words = shlex.split(example.rpartition("| ")[2])
        assert tuple(words[: len(path) + 1]) == ("moot", *path), example
        assert parse(settle(words[1:])).command is attribute(command.path)


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=NAMES)
def test_every_argument_says_what_it_is_for(path: tuple[str, ...], command: Command) -> None:
    slots = slots_of(attribute(command.path))
    assert [slot.name for slot in slots if not slot.parameter.help] == []
    assert len({slot.name for slot in slots}) == len(slots)


@pytest.mark.parametrize(
    "words", ["version", "chat list", "chat list --limit 10 --json", "run hello -m demo --json", "run --max-cost 0.5 x"]
)
def test_short_commands_need_no_parser(words: str) -> None:
    assert read(words.split()) is not None


@pytest.mark.parametrize(
    "words", ["", "chat", "version --help", "chat list --limit 900", "chat list --limt 3", "run a b", "run -fx y", "nope"]
)
def test_what_is_not_plain_is_left_to_the_parser(words: str) -> None:
    assert read(words.split()) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [("rnu", "did you mean 'run'?"), ("chat lits", "did you mean 'list'?"), ("chat list --limti 3", "Did you mean --limit?")],
)
def test_a_slip_is_told_the_nearest_name(words: str, said: str) -> None:
    with pytest.raises(MootError, match=said.replace("?", r"\?")):
        parse(words.split())


def test_the_table_for_completion_is_what_the_commands_say() -> None:
    assert loads_object(FILE.read_bytes()) == made(), "run python docs/generate.py"
