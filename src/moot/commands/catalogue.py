"""Lookup of slash commands: parse a typed line and find the command by name or alias."""

from __future__ import annotations

import re

from moot.commands.command import Choose, Command, CommandContext, Notice, Reply
from moot.engine import Engine
from moot.errors import UsageError
from moot.plugins import COMMANDS
from moot.runtime.setup import find_agent
from moot.types.conversation import Conversation

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


async def run_in_channel(engine: Engine, conversation: Conversation, name: str, argument: str) -> str:
    """Run a command for a conversation of a channel, such as Discord, and return its reply as text. Choices are stored."""
    context = CommandContext(engine, conversation.directory, conversation.id)
    texts = [_text(reply) for reply in await find(name).run(context, argument)]
    if (chosen := context.overrides.agent) is not None:
        agent = find_agent(engine.runtime.settings, chosen, {}, conversation.directory)
        await engine.store.conversations.update(conversation.id, agent=(chosen, agent.agent_type), model="")
    return "\n".join(filter(None, texts)) or "Done."


def _text(reply: Reply) -> str:
    if isinstance(reply, Notice):
        return reply.text
    if isinstance(reply, Choose):
        return f"{reply.title}: {', '.join(choice.value for choice in reply.choices)}"
    return ""
