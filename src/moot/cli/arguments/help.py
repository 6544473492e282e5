"""Help pages: usage, arguments, options and examples, wrapped to the terminal's width."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated

from moot.cli.arguments.parser import command_at
from moot.cli.arguments.signatures import LATEST, Argument, Plain, arguments_of
from moot.cli.console.lines import Lines
from moot.cli.tree.nodes import Command, Group
from moot.plugins.registry import attribute

WIDEST = 100
"""Maximum width of a help page in columns. Longer lines are hard to read."""
_COLUMN = 28
"""Maximum width of a table's first column. The text for a longer entry starts on the next line."""
_DEFAULTS = {LATEST: "the latest conversation in this directory"}
"""Descriptions of default values that are special references instead of plain values."""

Row = tuple[str, str]
HELP: Row = ("-h, --help", "Show this help.")
SERVER: tuple[Row, ...] = (
    ("--url URL", "Use this server instead of the data on this machine. Defaults to MOOT_URL."),
    ("--token-file PATH", "File with the server's token. Defaults to the token in MOOT_TOKEN."),
)
"""Options of commands that can use a server."""
VERSION: Row = ("--version", "Show the version.")


def show_help(path: tuple[str, ...], /, *, output: Annotated[Lines, Plain]) -> None:
    """Print the help page of a command or group."""
    item = command_at(path)[0]
    for line in lines_of(path, item, min(shutil.get_terminal_size().columns, WIDEST)):
        output.data(_styled(line, output) + "\n")


def lines_of(path: Sequence[str], item: Command | Group, width: int) -> Iterator[str]:
    """Yield the lines of a help page."""
    name = " ".join(("moot", *path))
    called = item if isinstance(item, Command) else item.prompt or item.commands.get(item.default)
    arguments = arguments_of(attribute(called.path)) if isinstance(called, Command) else ()
    yield from textwrap.wrap(item.help, width, break_on_hyphens=False)
    if item.details:
        yield from ("", *textwrap.wrap(item.details, width, break_on_hyphens=False))
    yield ""
    takes_words = isinstance(item, Command) or item.prompt is not None
    positional = [(_positional(each), _help(each)) for each in arguments if not each.flags and takes_words]
    shown = item.options if isinstance(item, Group) else None
    options = [(_option(each), _help(each)) for each in arguments if each.flags and (shown is None or {*each.flags} & {*shown})]
    if takes_words:
        usage = " ".join(["[OPTIONS]", *(words for words, _ in positional)])
        yield from textwrap.wrap(f"Usage: {name} {usage}", width, subsequent_indent="  ", break_on_hyphens=False)
    if isinstance(item, Group):
        yield f"{'      ' if takes_words else 'Usage:'} {name} {'[COMMAND]' if item.default else 'COMMAND'}"
    if isinstance(item, Group):
        for title, names in (item.sections or {"Commands": tuple(item.commands)}).items():
            yield from _section(title, [(name, item.commands[name].help) for name in names], width)
    yield from _section("Arguments", positional, width)
    version = [VERSION] if isinstance(item, Group) and not path else []
    server = SERVER if isinstance(called, Command) and called.remote else ()
    yield from _section("Options", [*options, *server, *version, HELP], width)
    yield ""
    yield "Examples:"
    for example in item.examples:
        yield from _example(example, width)


def _positional(argument: Argument) -> str:
    name = f"{argument.metavar}..." if argument.rest else argument.metavar
    return name if argument.required else f"[{name}]"


def _option(argument: Argument) -> str:
    flags = ", ".join(sorted(argument.flags, key=len))
    if argument.type is bool:
        return flags
    return f"{flags} [{argument.metavar}]" if argument.parameter.implied else f"{flags} {argument.metavar}"


def _help(argument: Argument) -> str:
    default = argument.default
    has_default = not argument.required and isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    choices = f" [choices: {', '.join(argument.choices)}]" if argument.choices else ""
    note = f" [default: {_DEFAULTS.get(str(default), default)}]" if has_default else ""
    if argument.flags and argument.required and not argument.group:
        note = " [required]"
    return f"{argument.parameter.help}{choices}{note}"


def _section(title: str, table: Sequence[Row], width: int) -> Iterator[str]:
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
    """Yield the lines of an example. Break a long command with backslashes, but never inside quotes."""
    line = "  "
    for word in re.findall(r"\S*\"[^\"]*\"\S*|\S*'[^']*'\S*|\S+", command):
        if line.strip() and len(line) + len(word) + 3 > width:
            yield f"{line} \\"
            line = "     "
        line += word if not line.strip() and line == "  " else f" {word}"
    yield line


def _styled(line: str, output: Lines) -> str:
    """Return the line with color if stdout supports it: headings bold, option and command names cyan."""
    if re.fullmatch(r"[A-Z][\w ]*:", line):
        return output.styled(line, "bold")
    if line.startswith("Usage: "):
        return output.styled("Usage:", "bold") + line.removeprefix("Usage:")
    if found := re.fullmatch(r"(  )(\S+(?: \S+)*)(  .*)?", line):
        return f"{found[1]}{output.styled(found[2], 'cyan')}{found[3] or ''}"
    return line
