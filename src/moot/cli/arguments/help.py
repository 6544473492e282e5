"""Help pages: usage, arguments, options and examples, wrapped to the terminal's width."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

from moot.cli.arguments.parser import command_at
from moot.cli.arguments.signatures import Argument, Plain, arguments_of
from moot.cli.console.lines import Lines
from moot.cli.tree import Command, Group
from moot.plugins.registry import attribute

WIDEST = 100
"""Columns beyond which lines are hard to read."""
_COLUMN = 28
"""Widest first column of a table. Longer entries have a line of their own."""

Row = tuple[str, str]
HELP: Row = ("-h, --help", "Show this help.")


def show_help(path: tuple[str, ...], /, *, output: Annotated[Lines, Plain]) -> None:
    """Print the help page of a command or group."""
    item = command_at(path)[0]
    for line in lines_of(path, item, min(shutil.get_terminal_size().columns, WIDEST)):
        output.data(_styled(line, output) + "\n")


def lines_of(path: Sequence[str], item: Command | Group, width: int) -> Iterator[str]:
    """Yield the lines of a help page."""
    name = " ".join(("moot", *path))
    arguments = arguments_of(attribute(item.path)) if isinstance(item, Command) else ()
    yield from textwrap.wrap(item.help, width)
    if item.details:
        yield from ("", *textwrap.wrap(item.details, width))
    yield ""
    yield from textwrap.wrap(f"Usage: {name} {_usage(item, arguments)}", width, subsequent_indent="  ", break_on_hyphens=False)
    if isinstance(item, Group):
        yield from _commands(item, width)
    positional = [(_positional(each), _help(each)) for each in arguments if not each.flags]
    yield from _section("Arguments", positional, width)
    options = [(_option(each), _help(each)) for each in arguments if each.flags]
    own = item.options if isinstance(item, Group) else ()
    yield from _section("Options", [*own, *options, HELP], width)
    yield ""
    yield "Examples:"
    for example in item.examples:
        yield from _example(example, width)


def _usage(item: Command | Group, arguments: Sequence[Argument]) -> str:
    if isinstance(item, Group):
        return "[COMMAND]" if item.options else "COMMAND"
    positional = [_positional(argument) for argument in arguments if not argument.flags]
    return " ".join(["[OPTIONS]", *positional])


def _commands(group: Group, width: int) -> Iterator[str]:
    sections = group.sections or {"Commands": tuple(group.commands)}
    for title, names in sections.items():
        yield from _section(title, [(name, group.commands[name].help) for name in names], width)


def _positional(argument: Argument) -> str:
    name = f"{argument.metavar}..." if argument.rest else argument.metavar
    return name if argument.required else f"[{name}]"


def _option(argument: Argument) -> str:
    flags = ", ".join(sorted(argument.flags, key=len))
    if argument.type is bool:
        return flags
    return f"{flags} [{argument.metavar}]" if argument.parameter.implied else f"{flags} {argument.metavar}"


def _help(argument: Argument) -> str:
    notes: list[str] = []
    if argument.choices:
        notes.append(f"[choices: {', '.join(argument.choices)}]")
    if not argument.required and _is_worth_showing(argument.default):
        notes.append(f"[default: {argument.default}]")
    return " ".join([argument.parameter.help, *notes])


def _is_worth_showing(default: Any) -> bool:
    return isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""


def _section(title: str, rows: Iterable[Row], width: int) -> Iterator[str]:
    table = list(rows)
    if not table:
        return
    yield ""
    yield f"{title}:"
    column = 2 + min(max(len(name) for name, _ in table), _COLUMN)
    if width - column < 30:
        column = 4  # too narrow for two columns
    for name, text in table:
        lines = textwrap.wrap(text, max(width - column - 2, 10), break_on_hyphens=False)
        first = f"  {name}"
        if len(first) <= column and lines:
            yield f"{first:<{column}}  {lines.pop(0)}"
        else:
            yield first
        yield from (f"{'':<{column}}  {line}" for line in lines)


def _example(command: str, width: int) -> Iterator[str]:
    """Yield a command line, continued with backslashes where it is too long. Quoted words stay whole."""
    line = "  "
    for word in re.findall(r"\S*\"[^\"]*\"\S*|\S*'[^']*'\S*|\S+", command):
        if line.strip() and len(line) + len(word) + 3 > width:
            yield f"{line} \\"
            line = "     "
        line += word if not line.strip() and line == "  " else f" {word}"
    yield line


def _styled(line: str, output: Lines) -> str:
    """Return the line with colour if stdout supports it: headings bold, option and command names cyan."""
    if re.fullmatch(r"[A-Z][\w ]*:", line):
        return output.styled(line, "bold")
    if line.startswith("Usage: "):
        return output.styled("Usage:", "bold") + line.removeprefix("Usage:")
    if found := re.fullmatch(r"(  )(\S+(?: \S+)*)(  .*)?", line):
        return f"{found[1]}{output.styled(found[2], 'cyan')}{found[3] or ''}"
    return line
