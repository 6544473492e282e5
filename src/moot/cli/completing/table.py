"""The arguments of every command as data, so that completion imports no commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import moot
from moot.cli.arguments.signatures import arguments_of
from moot.cli.command import Command, Group
from moot.cli.tree import TREE
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, loads_object

FILE = Path(moot.__file__).parent / "cli" / "arguments" / "table.json"


@dataclass(frozen=True, slots=True)
class StoredArgument:
    """One argument, as needed for completion."""

    flags: tuple[str, ...]
    """Option names. Empty for a positional argument."""
    valued: bool
    """True if it has a value, as positional arguments do."""
    kind: str
    """Kind of its values, see `parameters.Kind`."""
    choices: tuple[str, ...]
    many: bool
    help: str


def stored_arguments(path: tuple[str, ...]) -> tuple[StoredArgument, ...]:
    """Return the arguments of a command from the table."""
    rows = cast("list[Any]", loads_object(FILE.read_bytes()).get(" ".join(path), []))
    return tuple(StoredArgument(tuple(row[0]), row[1], row[2], tuple(row[3]), row[4], row[5]) for row in rows)


def build_table() -> JsonObject:
    """Build the table from the commands, which imports all of them."""
    return {" ".join(path): list[Json](_rows(command)) for path, command in leaves(TREE)}


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
