"""Slash commands: `/name argument`, the same in every face.

A command is a class without constructor arguments. It is registered in `plugins.COMMANDS`, or by an installed package under the
entry-point group `moot.commands`. It gets a `CommandContext` and returns replies for the face to carry out; it draws and asks nothing.
"""

from moot.commands.catalogue import find, names, parse
from moot.commands.command import (
    Choice,
    Choose,
    Command,
    CommandContext,
    Compose,
    Copy,
    Notice,
    OpenConversation,
    Quit,
    Regenerate,
    Reply,
    RunOverrides,
)

__all__ = [
    "Choice",
    "Choose",
    "Command",
    "CommandContext",
    "Compose",
    "Copy",
    "Notice",
    "OpenConversation",
    "Quit",
    "Regenerate",
    "Reply",
    "RunOverrides",
    "find",
    "names",
    "parse",
]
