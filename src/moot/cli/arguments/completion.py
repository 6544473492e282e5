"""Shell completion of commands, options and values.

`table.json` lists the arguments of all commands, because importing the commands takes too long. `docs/generate.py` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, cast

from moot.cli.arguments.signatures import arguments_of
from moot.cli.tree import TREE
from moot.cli.tree.nodes import Command, Group
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, loads_object


@dataclass(frozen=True, slots=True)
class Line:
    """A command line up to the cursor."""

    words: tuple[str, ...]
    """Complete words after `moot`."""
    part: str
    """Part of the last word before the cursor, without quotes. May be empty."""
    quoted: bool = False
    """True if the cursor is inside quotes."""


def split(text: str) -> Line | None:
    """Split a command line. Return None if it does not contain `moot`."""
    words, part, quoted = _words(text)
    names = [PurePath(word).name for word in words]
    if "moot" not in names:
        return None
    return Line(tuple(words[names.index("moot") + 1 :]), part, quoted)


def _words(text: str) -> tuple[list[str], str, bool]:
    words: list[str] = []
    part, started, quote = "", False, ""
    characters = iter(text)
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
            else:
                part += next(characters, "") if character == "\\" and quote == '"' else character
        elif character in "\"'":
            quote, started = character, True
        elif character == "\\":
            part, started = part + next(characters, ""), True
        elif character.isspace():
            if part or started:
                words.append(part)
            part, started = "", False
        else:
            part, started = part + character, True
    return words, part, bool(quote)


FILE = Path(__file__).with_name("table.json")


@dataclass(frozen=True, slots=True)
class StoredArgument:
    """One argument of a command, as stored in `table.json`."""

    flags: tuple[str, ...]
    """Option names. Empty for a positional argument."""
    valued: bool
    """True if the argument takes a value. Always true for positional arguments."""
    kind: str
    """Kind of the argument's values; see `signatures.Kind`."""
    choices: tuple[str, ...]
    many: bool
    help: str


def stored_arguments(path: tuple[str, ...]) -> tuple[StoredArgument, ...]:
    """Return the arguments of the command at this path, read from `table.json`."""
    rows = cast("list[Any]", loads_object(FILE.read_bytes()).get(" ".join(path), []))
    return tuple(StoredArgument(tuple(row[0]), row[1], row[2], tuple(row[3]), row[4], row[5]) for row in rows)


def build_table() -> JsonObject:
    """Return the content of `table.json`. This imports every command."""
    table: JsonObject = {" ".join(path): list[Json](_rows(command)) for path, command in leaves(TREE)}
    if TREE.prompt is not None:
        table[""] = list[Json](_rows(TREE.prompt))
    return table


def leaves(group: Group, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield every command with its path."""
    for name, item in group.commands.items():
        if isinstance(item, Group):
            yield from leaves(item, (*above, name))
        else:
            yield (*above, name), item


def _rows(command: Command) -> list[Json]:
    rows: list[Json] = []
    for argument in arguments_of(attribute(command.path)):
        kind = "file" if argument.type is Path else argument.parameter.kind
        repeats = argument.many or argument.rest
        rows.append(
            [list[Json](argument.flags), argument.type is not bool, kind, list[Json](argument.choices), repeats, argument.parameter.help]
        )
    return rows


Value = tuple[str, str]
"""A completion candidate and its description."""

HELP = StoredArgument(("--help",), False, "", (), False, "Show this help.")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Completion candidates for the word at the cursor."""

    values: tuple[Value, ...] = ()
    files: bool = False
    """True if the shell should also offer file names."""


def candidates(line: Line) -> Candidates:
    """Return the commands, options or values that can complete the word at the cursor."""
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
    if level.prompt is not None and (rest or line.part.startswith("-")):
        return _arguments([*stored_arguments(()), HELP], rest, line.part)
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
    if not part.startswith("-") or plain:
        return _values_of(places[0], part) if places else Candidates()
    flag, equals, value = part.partition("=")
    if equals:
        matches = _values_of(by_flag[flag], value) if flag in by_flag else Candidates()
        return Candidates(tuple((f"{flag}={value}", words) for value, words in matches.values), matches.files)
    free = [(name, item.help) for name, item in by_flag.items() if (item.many or item not in used) and name.startswith(part)]
    return Candidates(tuple(free))


def _values_of(argument: StoredArgument, part: str) -> Candidates:
    chosen = tuple((choice, "") for choice in argument.choices if choice.startswith(part))
    if argument.kind in ("", "file"):
        return Candidates(chosen, argument.kind == "file")
    return Candidates((*chosen, *attribute("moot.cli.commands.maintenance.completion_values:values")(argument.kind, part)))
