"""Lookup of slash commands: parse a typed line and find the command by name or alias."""

from __future__ import annotations

import re

from moot.commands.command import Command
from moot.errors import UsageError
from moot.plugins import COMMANDS

ALIASES = {"clear": "new", "resume": "continue", "quit": "exit", "q": "exit", "m": "model", "?": "keys"}

_NAME = re.compile(r"/([a-z?][\w-]*)(?:\s+(.*))?", re.DOTALL)

Typed = tuple[str, str]
"""Command name as typed, and its argument."""


def parse(line: str) -> Typed | None:
    """Return the command in a line, or None if the line is a prompt.

    `/usr/bin is full` is a prompt, `/hepl` a misspelled command, and `?` alone means `/keys`.
    """
    if line.strip() == "?":
        return "keys", ""
    match = _NAME.fullmatch(line.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def names() -> list[str]:
    """Return the names of all commands, sorted."""
    return COMMANDS.names()


def find(name: str) -> Command:
    """Return the command with this name or alias. Raise UsageError with a suggestion if there is none."""
    known = ALIASES.get(name, name)
    if known not in COMMANDS:
        raise UsageError(COMMANDS.unknown(name), fix="/help lists all commands.")
    command: Command = COMMANDS.load(known)()
    return command
