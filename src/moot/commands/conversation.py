"""Slash commands for conversations: switch, copy, name, search, export, share and compact them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime

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
    Save,
)
from moot.engine.locks import find_server
from moot.errors import NotFound, UsageError
from moot.features.context import compact_conversation, context_report
from moot.features.shares import DAY, finder_here, preview_page, share_page
from moot.plugins import FORMATS
from moot.types.conversation import Conversation
from moot.types.format import DeclaresFidelity, Format
from moot.types.imports import Recorder
from moot.types.run import RunStatus
from moot.types.token import LOCAL_USER

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
        raise NotFound(
            f"Conversation number {reference} not found: the list has {len(listed)} conversations.", fix="Use /continue to list them."
        )
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


_HITS = 20
_LIFETIMES = {"1h": DAY // 24, "1d": DAY, "7d": 7 * DAY, "30d": 30 * DAY}


class SearchCommand(BaseCommand):
    help = "Search all conversations, and open a result"
    argument = "WORDS"
    category = "information"
    examples = ("/search sandbox in:tools", '/search "exact phrase"')

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            raise UsageError("No search words were given.", fix="Use '/search WORDS'.")
        page = await context.store.search.search(argument, limit=_HITS)
        if not page.hits:
            return [Notice("No results.", "dim")]
        choices: dict[str, Choice] = {}
        for hit in page.hits:
            snippet = " ".join(hit.snippet.replace("\x02", "").replace("\x03", "").split())
            day = f"{datetime.fromtimestamp(hit.at / 1000, UTC):%Y-%m-%d}"
            choices.setdefault(hit.conversation, Choice(hit.conversation, f"{hit.title or '(untitled)'} · {day}", snippet[:120]))
        return [Choose(f"Results for {argument}", [*choices.values()], "continue")]


class ExportCommand(BaseCommand):
    help = "Export this conversation to a file"
    argument = "[FORMAT]"
    examples = ("/export", "/export html")

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        formats: list[Format] = [FORMATS.make(name) for name in FORMATS.names()]
        return [Choice(one.name) for one in formats if isinstance(one, Recorder) or (isinstance(one, DeclaresFidelity) and one.holds)]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        name = argument or "md"
        if name not in FORMATS:
            raise UsageError(FORMATS.unknown(name))
        return [Save(conversation.id, name)]


class ShareCommand(BaseCommand):
    help = "Share this conversation as a read-only page without secrets, names or addresses"
    argument = "[1h|1d|7d|30d]"
    examples = ("/share 7d",)

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [Choice(name, about="lifetime of the link") for name in _LIFETIMES]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.require_current()
        if argument and argument not in _LIFETIMES:
            raise UsageError(f"Invalid lifetime {argument!r}.", fix=f"Choose one of: {', '.join(_LIFETIMES)}.")
        configuration = context.engine.configuration
        secrets = configuration.loaded.secrets if configuration is not None else frozenset[str]()
        draft = await preview_page(context.store, conversation, finder_here(secrets))
        if not argument:
            removed = sum(one.count for one in draft.left_out)
            about = f"The page would show {draft.title or 'this conversation'!r}, {len(draft.page):,} bytes; {removed} items are removed."
            return [Notice(about), Choose("Share it for", await self.choices(context))]
        _, secret = await share_page(context.store, draft, now=time.time_ns() // 1_000_000, seconds=_LIFETIMES[argument])
        settings = context.engine.runtime.settings
        running = find_server(settings.home)
        base = running.url if running is not None else f"http://{settings.server.host}:{settings.server.port}"
        note = "" if running is not None else "\nThe link works while 'moot serve' runs."
        return [Notice(f"{base}/share/{secret}{note}")]
