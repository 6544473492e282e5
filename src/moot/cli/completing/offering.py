"""What fits at the end of half a command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moot.cli.command import Command, Group
from moot.cli.completing.lines import Line
from moot.cli.completing.table import Argument, stored_arguments
from moot.cli.tree import TREE
from moot.plugins.registry import attribute

Value = tuple[str, str]
"""What is typed, and a word about it."""

HELP = Argument(("--help",), False, "", (), False, "Show this help.")


@dataclass(frozen=True, slots=True)
class Offer:
    """What may stand at the cursor."""

    values: tuple[Value, ...] = ()
    files: bool = False
    """Names of files, which the shell knows best."""


def offer(line: Line) -> Offer:
    """Everything that may stand at the cursor and begins with what is there."""
    level: Group | Command = TREE
    path: list[str] = []
    for word in line.words:
        if isinstance(level, Command) or word not in level.commands:
            break
        path.append(word)
        level = level.commands[word]
    rest = line.words[len(path) :]
    if isinstance(level, Command):
        return _argument([*stored_arguments(tuple(path)), HELP], rest, line.part)
    if rest:
        return Offer()
    named = {name: item.help for name, item in level.commands.items()} | ({"--help": HELP.help} if line.part.startswith("-") else {})
    return Offer(tuple(value for value in named.items() if value[0].startswith(line.part)))


def _argument(known: Sequence[Argument], words: Sequence[str], part: str) -> Offer:
    by_flag = {flag: argument for argument in known for flag in argument.flags}
    places = [argument for argument in known if not argument.flags]
    used: list[Argument] = []
    waiting: Argument | None = None
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
        return _of(waiting, part)
    if part.startswith("-") and not plain:
        return _flag(by_flag, used, part)
    return _of(places[0], part) if places else Offer()


def _flag(by_flag: dict[str, Argument], used: Sequence[Argument], part: str) -> Offer:
    flag, equals, value = part.partition("=")
    if equals:
        found = _of(by_flag[flag], value) if flag in by_flag else Offer()
        return Offer(tuple((f"{flag}={value}", words) for value, words in found.values), found.files)
    free: Iterable[tuple[str, Argument]] = ((name, item) for name, item in by_flag.items() if item.many or item not in used)
    return Offer(tuple((name, item.help) for name, item in free if name.startswith(part)))


def _of(argument: Argument, part: str) -> Offer:
    chosen = tuple((choice, "") for choice in argument.choices if choice.startswith(part))
    if argument.kind in ("", "file"):
        return Offer(chosen, argument.kind == "file")
    return Offer((*chosen, *attribute("moot.cli.completing.values:values")(argument.kind, part)))
