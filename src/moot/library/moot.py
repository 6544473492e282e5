"""A working moot in a program's hands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload
from weakref import WeakSet

import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import BaseModel

from moot.config.settings import Settings
from moot.engine import Engine
from moot.engine.channels import serve
from moot.features.attachments import attach
from moot.library.conversations import Conversations
from moot.library.live import Following, LiveRun
from moot.library.options import OnApproval, OnQuestion, RunOptions, Schema, folder_of, settings_of
from moot.providers.pool import Listing
from moot.runtime.setup import find_agent
from moot.tools.catalogue import tools_for
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.message import Part, text_part
from moot.types.run import TERMINAL, Prompt, Run, Submitted
from moot.types.search import SearchPage, SemanticQuery
from moot.types.tool import Tool

M = TypeVar("M", bound=BaseModel)


class Moot:
    """What `moot.open()` gives: runs, conversations and search on one store, which other processes may be using too."""

    def __init__(self, engine: Engine, group: TaskGroup) -> None:
        self.engine = engine
        """The engine below, for what this face does not show."""
        self.settings: Settings = engine.settings
        """The configuration in force."""
        self.conversations = Conversations(engine.store)
        self._group = group
        self._live: WeakSet[LiveRun[Any]] = WeakSet()

    @overload
    def run(self, prompt: str, /, *, schema: type[M], **options: Unpack[RunOptions]) -> LiveRun[M]: ...
    @overload
    def run(self, prompt: str, /, *, schema: JsonObject, **options: Unpack[RunOptions]) -> LiveRun[Json]: ...
    @overload
    def run(self, prompt: str, /, *, schema: None = None, **options: Unpack[RunOptions]) -> LiveRun[None]: ...
    def run(self, prompt: str, /, *, schema: Schema | None = None, **options: Unpack[RunOptions]) -> LiveRun[Any]:
        """One prompt to its answer: `async for event in m.run("…")`, or `answer = await m.run("…")`. See RunOptions for the options.

        An empty prompt answers the conversation's last message as it stands.
        """

        async def begin() -> Submitted:
            return await self._submit(prompt, schema, options)

        return self._follow(Following(begin, schema, options.get("on_approval"), options.get("on_question")))

    def attach(self, run: str, *, on_approval: OnApproval | None = None, on_question: OnQuestion | None = None) -> LiveRun[None]:
        """A run that goes on, wherever it does, or has ended: from its first event on. `run` is its id or the beginning of it."""

        async def begin() -> Submitted:
            return await self._found(await self.engine.store.records.run(run))

        return self._follow(Following(begin, None, on_approval, on_question))

    def resume(self, run: str, *, on_approval: OnApproval | None = None, on_question: OnQuestion | None = None) -> LiveRun[None]:
        """Takes up an interrupted or waiting run here and follows it from its first event on. Raises UsageError when it has ended."""

        async def begin() -> Submitted:
            found = await self.engine.store.records.run(run)
            return await self._found(await self.engine.runs.resume(found.id))

        return self._follow(Following(begin, None, on_approval, on_question))

    async def live(self) -> Sequence[Run]:
        """The runs of all processes that have not ended, newest first."""
        found = await self.engine.store.records.runs()
        return [run for run in found if run.status not in TERMINAL]

    async def search(
        self,
        query: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        conversation: str | None = None,
        best: bool = False,
        meaning: bool = False,
    ) -> SearchPage:
        """Messages that fit a query (docs/search.md), newest or best first; with `meaning` the answers that are about what it is about,
        the nearest first and on one page. Raises UsageError for a query that can't be meant, or where the model of meanings is missing."""
        store = self.engine.store
        if meaning:
            return await store.meaning.search(SemanticQuery(query, limit, conversation), embedder=await self.engine.meanings.embedder())
        return await store.search.search(query, limit=limit, cursor=cursor, conversation=conversation, best=best)

    async def models(self, provider: str = "") -> Listing:
        """The models that can be named, of one provider or of all available ones, and why some providers had none to show."""
        return await self.engine.providers.models(provider)

    def tools(self, agent: str = "default") -> tuple[Tool, ...]:
        """The tools that an agent is offered here. Raises UsageError for an unknown agent."""
        return tools_for(self.settings, find_agent(self.settings, agent, {}))

    async def serve(self, channel: str) -> None:
        """Serves a channel, with its settings in `channels.<name>`, until it is cancelled. Raises UsageError, ConfigError."""
        await serve(self.engine, channel)

    def _follow(self, following: Following) -> LiveRun[Any]:
        live = LiveRun[Any](self.engine, self._group, following)
        self._live.add(live)
        return live

    async def _submit(self, prompt: str, schema: Schema | None, options: RunOptions) -> Submitted:
        settings = settings_of(options, schema)
        files = [Path(file) for file in options.get("files", ())]
        parts: list[Part] = [(await anyio.to_thread.run_sync(attach, file)).part for file in files]
        if prompt.strip():
            parts.append(text_part(prompt))
        conversation = options.get("conversation")
        return await self.engine.runs.submit(
            Prompt(
                tuple(parts),
                conversation=conversation.id if isinstance(conversation, Conversation) else conversation,
                key=options.get("key"),
                edits=options.get("edits"),
                answers=options.get("answers"),
                directory=folder_of(options.get("directory")),
                agent=options.get("agent"),
                model=options.get("model"),
                mode=options.get("mode"),
                on_busy=options.get("on_busy", "reject"),
                trigger="api",
                settings=settings,
            )
        )

    async def _found(self, run: Run) -> Submitted:
        conversation = await self.engine.store.conversations.get(run.conversation)
        message = await self.engine.store.conversations.message(run.message)
        return Submitted(conversation, run, max(message.first_seq - 1, 0))

    async def aclose(self) -> None:
        """Stops following whatever is still followed; `open` calls it."""
        for live in list(self._live):
            await live.aclose()
