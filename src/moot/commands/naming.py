"""From a typed line to a command: what is one, which one is meant, and the nearest when there is none."""

from __future__ import annotations

import re

from moot.commands.command import Command
from moot.errors import UsageError
from moot.plugins import COMMANDS

__all__ = ["ALIASES", "Typed", "find", "names", "parse"]

ALIASES = {"clear": "new", "resume": "continue", "quit": "exit", "q": "exit", "m": "model", "?": "keys"}
"""Other words for a command."""

_NAME = re.compile(r"/([a-z?][\w-]*)(?:\s+(.*))?", re.DOTALL)

Typed = tuple[str, str]
"""The name as it was typed, and what stood behind it."""


def parse(line: str) -> Typed | None:
    """The command that a line asks for; None when it is a prompt.

    `/usr/bin is full` is a prompt, `/hepl` a command that is misspelled, `?` alone stands for `/keys`.
    """
    if line.strip() == "?":
        return "keys", ""
    match = _NAME.fullmatch(line.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def names() -> list[str]:
    """All commands, sorted."""
    return COMMANDS.names()


def find(name: str) -> Command:
    """The command of that name. Raises UsageError, naming the nearest."""
    known = ALIASES.get(name, name)
    if known not in COMMANDS:
        raise UsageError(COMMANDS.unknown(name).replace("no command named", "no command").replace("; known:", "; there are:"), fix="/help")
    command: Command = COMMANDS.load(known)()
    return command
