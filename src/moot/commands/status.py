"""Slash commands that show information: status, cost, help and keys."""

from __future__ import annotations

from collections.abc import Sequence

from moot.agents.known import agent_named
from moot.commands.catalogue import catalogue_of
from moot.commands.command import BaseCommand, Choice, CommandContext, Notice, Reply
from moot.convert.serialization import describe_cost
from moot.types.command import BUILT_IN, CommandFacts
from moot.types.conversation import Conversation, ConversationSettings


def current_model(context: CommandContext, conversation: Conversation | None) -> str:
    """Return the model for the next prompt.
    If the agent chooses its model itself, return the model that it used last, or an empty string.
    """
    overrides, settings, known = context.overrides, context.engine.runtime.settings, conversation or Conversation("")
    agent = agent_named(settings, overrides.agent or known.agent)
    model = overrides.model or ("" if overrides.agent else known.next_model) or (agent.model if agent is not None else "")
    if model not in ("", "main"):
        return model
    if agent is None or agent.agent_type == "moot":
        return settings.models.main
    return "" if overrides.agent or known.follows else known.last_model


class StatusCommand(BaseCommand):
    help = "Show the conversation, model, mode, usage and cost"
    argument = ""
    category = "information"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.current()
        overrides, settings = context.overrides, context.engine.runtime.settings
        own = conversation.own_settings if conversation else ConversationSettings()
        rows = {
            "conversation": f"{conversation.id}  {conversation.title}" if conversation else "not started",
            **({"origin": conversation.came_from} if conversation and conversation.came_from else {}),
            "directory": conversation.directory or context.directory if conversation else context.directory,
            "agent": overrides.agent or (conversation.agent if conversation else "default"),
            "model": current_model(context, conversation) or "default",
            "mode": overrides.mode or own.mode or settings.permissions.mode,
            "effort": overrides.effort or own.effort or "model default",
            **(_figures(conversation) if conversation else {}),
            "home": str(settings.home),
        }
        return [Notice("\n".join(f"{name:14}{value}" for name, value in rows.items()))]


def _figures(conversation: Conversation) -> dict[str, str]:
    usage = conversation.usage
    context = conversation.context_usage
    return {
        "messages": str(conversation.message_count),
        "context": "unknown" if context is None else f"{context:.0%} used",
        "tokens": f"{usage.input or 0:,} in, {usage.output or 0:,} out",
        "cost": _cost(conversation),
    }


def _cost(conversation: Conversation) -> str:
    return describe_cost(conversation.cost, conversation.unpriced_runs) or "unknown"


class CostCommand(BaseCommand):
    help = "Show the token usage and cost of this conversation"
    argument = ""
    category = "information"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.current()
        if conversation is None:
            return [Notice("Nothing has been sent yet.", "dim")]
        usage = conversation.usage
        cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
        return [Notice(f"{_cost(conversation)} · {usage.input or 0:,} tokens in{cached}, {usage.output or 0:,} out")]


class HelpCommand(BaseCommand):
    help = "Show the commands and keyboard shortcuts"
    argument = "[COMMAND]"
    category = "information"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [Choice(facts.name, about=facts.help) for facts in (await catalogue_of(context)).facts()]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        catalogue = await catalogue_of(context)
        if name := argument.removeprefix("/"):
            return [Notice(_described(catalogue.facts_of(name)))]
        found = [*catalogue.facts()]
        width = max(len(usage(facts)) for facts in found) + 2
        own = sorted({facts.category for facts in found if facts.origin == BUILT_IN}, key=_ORDER.index)
        lines: list[str] = []
        for category in dict.fromkeys((*own, *sorted({facts.category for facts in found}))):
            lines += [category.capitalize(), *(f"  {usage(one):{width}}{one.help}" for one in found if one.category == category), ""]
        lines += [f"/{name} can't be used: {error.advice()}" for name, error in sorted(catalogue.refused.items())]
        return [Notice("\n".join([*lines, context.keys]).strip("\n"))]


_ORDER = ("conversation", "settings", "context", "project", "runtime", "information")
"""Categories of built-in commands, in the order in which `/help` lists them."""


def usage(facts: CommandFacts) -> str:
    """Return a usage line: the command's name and its arguments."""
    return f"/{facts.name} {facts.argument}".rstrip()


def _described(facts: CommandFacts) -> str:
    lines = [f"{usage(facts)}  {facts.help}"]
    lines += [f"  {one.name}: {one.description}".rstrip(": ") for one in facts.parameters]
    lines += [f"  alias: /{alias}" for alias in facts.aliases]
    lines += [f"  example: {example}" for example in facts.examples]
    return "\n".join(lines if facts.origin == BUILT_IN else [*lines, f"  from {facts.origin}"])


class KeysCommand(BaseCommand):
    help = "Show the keyboard shortcuts"
    argument = ""
    category = "information"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        return [Notice(context.keys or "There are no keyboard shortcuts here. /help lists the commands.")]
