"""Slash commands that switch, copy or name conversations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.commands.command import (
    BaseCommand,
    Choice,
    Choose,
    CommandContext,
    Notice,
    OpenConversation,
    Quit,
    Regenerate,
    Reply,
)
from moot.errors import NotFound, UsageError
from moot.types.conversation import Conversation
from moot.types.run import RunStatus

_LISTED = 200
_INDEX = re.compile(r"[1-9][0-9]{0,2}")
_RESUMABLE = frozenset[RunStatus]({"interrupted", "waiting"})


class NewCommand(BaseCommand):
    help = "Start a new conversation"
    argument = ""

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        return [OpenConversation(None)]


class ContinueCommand(BaseCommand):
    help = "Continue another conversation"
    argument = "[CONVERSATION]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        page = await context.store.conversations.list(limit=_LISTED)
        others = [one for one in page.items if one.id != context.conversation]
        return [Choice(one.id, one.title or "(untitled)", _description(one)) for one in others]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if argument:
            return [OpenConversation((await _find(context, argument)).id)]
        choices = await self.choices(context)
        return [Choose("Conversation", choices)] if choices else [Notice("There are no other conversations yet.", "dim")]


async def _find(context: CommandContext, reference: str) -> Conversation:
    conversations = context.store.conversations
    if not _INDEX.fullmatch(reference):
        return await conversations.get(reference)
    listed = (await conversations.list(limit=min(int(reference), _LISTED))).items
    if len(listed) < int(reference):
        raise NotFound(f"Conversation number {reference} not found; the list ends with {len(listed)}.", fix="/continue lists them.")
    return listed[int(reference) - 1]


def _description(conversation: Conversation) -> str:
    origin = f"from {conversation.came_from} · " if conversation.came_from else ""
    return f"{origin}{conversation.message_count} messages · {conversation.directory or 'no folder'} · {conversation.id[:13]}"


class TitleCommand(BaseCommand):
    help = "Show or set the title"
    argument = "[TITLE]"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        if argument:
            title = " ".join(argument.split())
            conversation = await context.store.conversations.rename(conversation.id, title, "user")
        return [Notice(conversation.title or "(untitled)")]


class ForkCommand(BaseCommand):
    help = "Continue in a copy of this conversation"
    argument = "[TITLE]"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        fork = await context.store.tree.fork(conversation.id, title=argument)
        return [Notice(f"{fork.title}: {fork.id}", "dim"), OpenConversation(fork.id)]


class RetryCommand(BaseCommand):
    help = "Resume an interrupted answer, or answer the last prompt again"
    argument = ""

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if context.conversation is None:
            raise UsageError("There is no prompt to answer yet.", fix=context.without_conversation)
        runs = await context.store.records.runs(conversation=context.conversation, statuses=_RESUMABLE)
        return [Regenerate(resume=runs[0].id if runs else None)]


class BackgroundCommand(BaseCommand):
    help = "Exit and let the answer continue in the background; moot ps shows it"
    argument = ""

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        return [Quit(detaches=True)]


class ExitCommand(BaseCommand):
    help = "Exit; everything is saved"
    argument = ""

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        return [Quit()]
