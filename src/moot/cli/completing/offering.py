"""Candidates for the end of an incomplete command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moot.cli.command import Command, Group
from moot.cli.completing.lines import Line
from moot.cli.completing.table import StoredArgument, stored_arguments
from moot.cli.tree import TREE
from moot.plugins.registry import attribute

Value = tuple[str, str]
"""A candidate and its description."""

HELP = StoredArgument(("--help",), False, "", (), False, "Show this help.")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates at the cursor."""

    values: tuple[Value, ...] = ()
    files: bool = False
    """True if the shell should add file names."""


def candidates(line: Line) -> Candidates:
    """Return the candidates that start with the part before the cursor."""
    level: Group | Command = TREE
    path: list[str] = []
    for word in line.words:
        if isinstance(level, Command) or word not in level.commands:
            break
        path.append(word)
        level = level.commands[word]
    rest = line.words[len(path) :]
    if isinstance(level, Command):
        return _arguments([*stored_arguments(tuple(path)), HELP], rest, line.part)
    if rest:
        return Candidates()
    named = {name: item.help for name, item in level.commands.items()} | ({"--help": HELP.help} if line.part.startswith("-") else {})
    return Candidates(tuple(value for value in named.items() if value[0].startswith(line.part)))


def _arguments(known: Sequence[StoredArgument], words: Sequence[str], part: str) -> Candidates:
    by_flag = {flag: argument for argument in known for flag in argument.flags}
    places = [argument for argument in known if not argument.flags]
    used: list[StoredArgument] = []
    waiting: StoredArgument | None = None
    plain = False
    for word in words:
        if waiting is not None:
            waiting = None
        elif word == "--" and not plain:
            plain = True
        elif word.startswith("-") and not plain:
            flag, equals, _ = word.partition("=")
            argument = by_flag.get(flag)
            used += [argument] if argument else []
            waiting = argument if argument and argument.valued and not equals else None
        elif places and not places[0].many:
            places.pop(0)
    if waiting is not None:
        return _values_of(waiting, part)
    if part.startswith("-") and not plain:
        return _flag(by_flag, used, part)
    return _values_of(places[0], part) if places else Candidates()


def _flag(by_flag: dict[str, StoredArgument], used: Sequence[StoredArgument], part: str) -> Candidates:
    flag, equals, value = part.partition("=")
    if equals:
        matches = _values_of(by_flag[flag], value) if flag in by_flag else Candidates()
        return Candidates(tuple((f"{flag}={value}", words) for value, words in matches.values), matches.files)
    free: Iterable[tuple[str, StoredArgument]] = ((name, item) for name, item in by_flag.items() if item.many or item not in used)
    return Candidates(tuple((name, item.help) for name, item in free if name.startswith(part)))


def _values_of(argument: StoredArgument, part: str) -> Candidates:
    chosen = tuple((choice, "") for choice in argument.choices if choice.startswith(part))
    if argument.kind in ("", "file"):
        return Candidates(chosen, argument.kind == "file")
    return Candidates((*chosen, *attribute("moot.cli.completing.values:values")(argument.kind, part)))
