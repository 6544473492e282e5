"""Slash commands such as `/model NAME`. They work the same in the terminal, on the web page and in channels.

A command is a class without constructor arguments. It is registered in `plugins.COMMANDS`, or by an installed package under the
entry-point group `moot.commands`. It receives a `CommandContext` and returns replies, which the caller acts on. A command itself displays
nothing and asks no questions.
"""

from moot.commands.catalogue import Catalogue, built_in, catalogue_of, parse
from moot.commands.command import (
    BaseCommand,
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
    Save,
    Send,
    prompt_of,
)

__all__ = [
    "BaseCommand",
    "Catalogue",
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
    "Save",
    "Send",
    "built_in",
    "catalogue_of",
    "parse",
    "prompt_of",
]
