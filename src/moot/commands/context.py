"""Slash commands that show or shorten the context of the next model request."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import BaseCommand, CommandContext, Notice, Reply
from moot.features.context import compact_conversation, context_report
from moot.types.token import LOCAL_USER


class CompactCommand(BaseCommand):
    help = "Summarize the older messages to free context; they stay readable"
    argument = "[FOCUS]"
    category = "context"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        overrides = context.overrides
        agent, model = overrides.agent or "", overrides.model or ""
        before = await context_report(context.engine, conversation, agent=agent, model=model)
        await compact_conversation(context.engine, conversation, focus=argument, agent=agent, model=model)
        after = await context_report(context.engine, conversation, agent=agent, model=model)
        words = f"Compacted: about {after.tokens:,} tokens instead of {before.tokens:,}."
        if after.tokens >= before.tokens:
            words = f"{words} This saved nothing. Undo it with: moot chat compact {conversation.id[:13]} --undo"
        return [Notice(words, "dim")]


class ContextCommand(BaseCommand):
    help = "Show what fills the context of the next request, with a prompt if given"
    argument = "[PROMPT]"
    category = "context"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        overrides = context.overrides
        report = await context_report(
            context.engine,
            conversation,
            prompt=argument,
            references=context.owner == LOCAL_USER and context.attended,
            agent=overrides.agent or "",
            model=overrides.model or "",
        )
        return [Notice("\n".join(report.lines()))]
