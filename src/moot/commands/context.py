"""Slash commands that show or shorten the context of the next model request."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import BaseCommand, CommandContext, Notice, Reply
from moot.features.context import compact_conversation, context_report


class CompactCommand(BaseCommand):
    help = "Summarize the older messages to free context; they stay readable"
    argument = "[FOCUS]"
    category = "context"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        overrides = context.overrides
        chosen = {"agent": overrides.agent or "", "model": overrides.model or ""}
        before = await context_report(context.engine, conversation, **chosen)
        await compact_conversation(context.engine, conversation, focus=argument, **chosen)
        after = await context_report(context.engine, conversation, **chosen)
        words = f"Compacted: about {after.tokens:,} tokens instead of {before.tokens:,}."
        if after.tokens >= before.tokens:
            words = f"{words} This saved nothing. Undo it with: moot chat compact {conversation.id[:13]} --undo"
        return [Notice(words, "dim")]


class ContextCommand(BaseCommand):
    help = "Show what fills the context of the next request"
    argument = ""
    category = "context"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        overrides = context.overrides
        report = await context_report(context.engine, conversation, agent=overrides.agent or "", model=overrides.model or "")
        return [Notice("\n".join(report.lines()))]
