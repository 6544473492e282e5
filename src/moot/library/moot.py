"""The classes `Moot`, the main object of the Python library, and `Conversations`, its access to stored conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload
from weakref import WeakSet

import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import BaseModel

from moot.config.loader import Loaded
from moot.config.settings import Settings
from moot.engine import Engine
from moot.engine.channels import serve
from moot.errors import ConfigError
from moot.features.prompts.attachments import attach
from moot.features.settings import settings_change
from moot.library.live import LiveRun, RunSource
from moot.library.options import OnApproval, OnQuestion, RunOptions, Schema, folder_of, settings_of
from moot.providers.pool import Listing
from moot.runtime.configuration import log_change
from moot.runtime.setup import find_agent
from moot.tools.catalogue import tools_for
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation, Page
from moot.types.event import Event
from moot.types.message import Message, Part, text_part
from moot.types.run import TERMINAL, Prompt, Run, Submitted
from moot.types.search import SearchPage, SemanticQuery
from moot.types.store import Store
from moot.types.tool import Tool
from moot.types.tree import Tree

M = TypeVar("M", bound=BaseModel)


class Moot:
    """Access to moot from Python: run prompts, and read and search conversations. Created by `moot.open()`. Other processes can use
    the same store at the same time.
    """

    def __init__(self, engine: Engine, group: TaskGroup) -> None:
        self.engine = engine
        """The underlying engine, for operations that this class does not offer."""
        self.settings: Settings = engine.settings
        """The current configuration."""
        if engine.configuration is not None:
            engine.configuration.on_change = self._configuration_changed
        self.conversations = Conversations(engine)
        self._group = group
        self._live: WeakSet[LiveRun[Any]] = WeakSet()

    @overload
    def run(self, prompt: str, /, *, schema: type[M], **options: Unpack[RunOptions]) -> LiveRun[M]: ...
    @overload
    def run(self, prompt: str, /, *, schema: JsonObject, **options: Unpack[RunOptions]) -> LiveRun[Json]: ...
    @overload
    def run(self, prompt: str, /, *, schema: None = None, **options: Unpack[RunOptions]) -> LiveRun[None]: ...
    def run(self, prompt: str, /, *, schema: Schema | None = None, **options: Unpack[RunOptions]) -> LiveRun[Any]:
        """Run one prompt: `async for event in m.run("…")`, or `answer = await m.run("…")`. See RunOptions for the options.

        With an empty prompt, the conversation's last message is answered.
        """

        async def start_run() -> Submitted:
            return await self._submit(prompt, schema, options)

        return self._follow(RunSource(start_run, schema, options.get("on_approval"), options.get("on_question")))

    def attach(self, run: str, *, on_approval: OnApproval | None = None, on_question: OnQuestion | None = None) -> LiveRun[None]:
        """Return a run from any process, live or ended, to read its events from the first one. `run` is the id or a prefix of it."""

        async def start_run() -> Submitted:
            return await self._found(await self.engine.store.records.run(run))

        return self._follow(RunSource(start_run, None, on_approval, on_question))

    def resume(self, run: str, *, on_approval: OnApproval | None = None, on_question: OnQuestion | None = None) -> LiveRun[None]:
        """Resume an interrupted or waiting run. Reading starts with its first event. Raise UsageError if the run has ended."""

        async def start_run() -> Submitted:
            found = await self.engine.store.records.run(run)
            return await self._found(await self.engine.runs.resume(found.id))

        return self._follow(RunSource(start_run, None, on_approval, on_question))

    async def live(self) -> Sequence[Run]:
        """Return all unfinished runs, in all processes, newest first."""
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
        context: int = 0,
    ) -> SearchPage:
        """Search messages, newest first, or best first with `best`. For the query syntax, see docs/search.md.

        `context` is the number of lines to include before and after each match.

        If `meaning` is set, return the answers most similar to the query, on one page. Raise UsageError for an invalid query, or if the
        embedding model is not installed.
        """
        store = self.engine.store
        if meaning:
            return await store.meaning.search(SemanticQuery(query, limit, conversation), embedder=await self.engine.meanings.embedder())
        return await store.search.search(query, limit=limit, cursor=cursor, conversation=conversation, best=best, context=context)

    async def models(self, provider: str = "") -> Listing:
        """Return the models of one provider or of all available ones, and the errors of providers whose models could not be listed."""
        return await self.engine.providers.models(provider)

    def tools(self, agent: str = "default", *, directory: Path | str = "") -> tuple[Tool, ...]:
        """Return the tools offered to an agent. `directory` adds agents defined by its project. Raise UsageError for an unknown agent."""
        return tools_for(self.settings, find_agent(self.settings, agent, {}, str(directory)))

    async def serve(self, channel: str) -> None:
        """Serve a channel such as Discord until cancelled. It is configured as `channels.<name>`. Raise UsageError if it is unknown,
        ConfigError if it is misconfigured.
        """
        await serve(self.engine, channel)

    def _configuration_changed(self, change: Loaded | ConfigError) -> None:
        if isinstance(change, Loaded):
            self.settings = change.settings
        log_change(change)

    def _follow(self, source: RunSource) -> LiveRun[Any]:
        live = LiveRun[Any](self.engine, self._group, source)
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
        """Stop receiving events from all runs. Called when the block of `moot.open()` ends."""
        for live in list(self._live):
            await live.aclose()


class Conversations:
    """The stored conversations. A `reference` is an id, a prefix of an id with at least 4 characters, or an exact title. All methods raise
    NotFound if no conversation matches.
    """

    def __init__(self, engine: Engine) -> None:
        store: Store = engine.store
        self._engine, self._store = engine, store
        self.tree: Tree = store.tree
        """Operations on the message trees of conversations and their branches. They take ids, not references."""

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        directory: str | Path | None = None,
        deleted: bool = False,
        archived: bool | None = False,
        query: str = "",
        host: str | None = None,
    ) -> Page[Conversation]:
        """Return one page of conversations, most recent activity first. Pass its `next_cursor` as `cursor` to get the next page.
        `archived=None` includes archived conversations.

        Each word of `query` must occur in the title, model, agent, origin or directory; use `m.search` to search messages.
        `host` is the name of another machine, or an empty string for this machine.
        """
        folder = folder_of(directory) or None
        return await self._store.conversations.list(
            limit=limit, cursor=cursor, directory=folder, deleted=deleted, archived=archived, query=query, host=host
        )

    async def get(self, reference: str) -> Conversation:
        """Return the matching conversation."""
        return await self._store.conversations.get(reference)

    async def messages(self, reference: str, *, limit: int | None = None) -> Sequence[Message]:
        """Return the messages of the current branch, oldest first, or the last `limit` of them."""
        return await self._store.conversations.branch((await self.get(reference)).id, limit=limit)

    async def runs(self, reference: str) -> Sequence[Run]:
        """Return the conversation's runs, newest first."""
        return await self._store.records.runs(conversation=(await self.get(reference)).id)

    async def events(self, reference: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """Yield all stored events with a `seq` greater than `after`. Their field `raw` contains the bytes received from the vendor."""
        id = (await self.get(reference)).id
        while page := await self._store.log.read(id, after=after):
            for event in page:
                yield event
            after = page[-1].seq

    async def rename(self, reference: str, title: str) -> Conversation:
        """Set the title. A title set by this method is not replaced by a generated one."""
        return await self._store.conversations.rename((await self.get(reference)).id, title, "user")

    async def change_settings(self, reference: str, changes: JsonObject) -> Conversation:
        """Change settings that apply to every prompt of the conversation, as in `{"mode": "plan", "effort": None}`. None removes a setting.

        Raise UsageError for an unknown setting or an invalid value. Read them with `conversation.own_settings`.
        """
        found = await self.get(reference)
        change = await settings_change(self._engine, changes, found.directory)
        return await change.store(self._store.conversations, found.id)

    async def delete(self, reference: str) -> Conversation:
        """Mark the conversation as deleted; it can be restored. Raise Busy if a run is in progress."""
        return await self._store.conversations.delete((await self.get(reference)).id)

    async def restore(self, reference: str) -> Conversation:
        """Restore a deleted conversation."""
        return await self._store.conversations.delete((await self.get(reference)).id, restore=True)

    async def archive(self, reference: str, archived: bool = True) -> Conversation:
        """Archive the conversation, or unarchive it."""
        return await self._store.conversations.update((await self.get(reference)).id, archived=archived)

    async def fork(self, reference: str, *, message: str | None = None, title: str = "") -> Conversation:
        """Copy the current branch, up to `message` if given, into a new conversation."""
        return await self.tree.fork((await self.get(reference)).id, message=message, title=title)

    async def edit(self, message: str, text: str) -> Message:
        """Add an edited copy of a message as a sibling. The original is kept. To get an answer, use `m.run(text, edits=message)`."""
        return await self.tree.edit(message, (text_part(text),))
