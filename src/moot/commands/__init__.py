"""Slash commands: what a person types behind `/`, the same in every face.

A command is a class without arguments in a file of its own, named in `plugins.COMMANDS` or by an installed package under the entry-point
group `moot.commands`. It gets a `Situation` and answers with what the face is to do; it draws nothing and asks nothing itself.

| file | what it holds |
|---|---|
| `command.py` | `Command`, what it is given, and what it may answer |
| `naming.py` | from a typed line to a command, the nearest when there is none |
| `models.py` | models in the order of a list to choose from, in words |
"""

from moot.commands.command import Answer, Choice, Choose, Command, Compose, Copy, Go, Leave, Reply, Say, Situation, Wishes
from moot.commands.naming import find, names, parse

__all__ = [
    "Answer",
    "Choice",
    "Choose",
    "Command",
    "Compose",
    "Copy",
    "Go",
    "Leave",
    "Reply",
    "Say",
    "Situation",
    "Wishes",
    "find",
    "names",
    "parse",
]
