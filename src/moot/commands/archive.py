"""Slash commands for stored conversations: search them, and export or share one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from moot.commands.command import BaseCommand, Choice, Choose, CommandContext, Notice, Reply, Save
from moot.engine.locks import find_server
from moot.errors import UsageError
from moot.features.shares import DAY, finder_here, preview_page, share_page
from moot.plugins import FORMATS
from moot.types.format import DeclaresFidelity, Format
from moot.types.imports import Recorder

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
