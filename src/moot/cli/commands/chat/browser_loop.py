"""Main loop of the conversation browser. It ends when the user leaves or continues a conversation. An engine is opened only if needed."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from moot.cli.commands.chat.browser import RETITLES, Snapshot, choice_of, first_scope, lists, pages_of
from moot.cli.console.lines import write_error
from moot.cli.console.output import Output
from moot.cli.context.references import live_statuses
from moot.cli.terminal.prompts.first_frame import Frame, Keyboard
from moot.cli.terminal.prompts.items import Choice, Picked
from moot.cli.terminal.prompts.pick import choose
from moot.config.settings import Settings
from moot.errors import MootError, NotFound, StoreError
from moot.plugins.registry import attribute
from moot.store.database.snapshot import open_snapshot
from moot.store.tree.lists import ListFilter, page
from moot.types.conversation import Conversation, Page

if TYPE_CHECKING:
    from moot.engine import Engine

_CONVERSE = "moot.cli.repl.loop:run_repl"
_ACTS = "moot.cli.commands.chat.browser_actions:ACTS"
_ENGINE = "moot.engine:open_engine"
"""Import paths, loaded on first use, so that the list accepts keys before these modules are imported."""


async def loop(snapshot: Snapshot, keyboard: Keyboard | None, frame: Frame | None, *, output: Output) -> int:
    """Run the browser and return the exit code. `frame` is the frame on the screen; `keyboard` buffers the keys typed so far."""
    output.hide(snapshot.loaded.secrets)
    output.ui = snapshot.loaded.settings.ui
    if frame is not None:
        output.before = frame.hide
    async with AsyncExitStack() as stack:
        access = _StoreAccess(snapshot.loaded.settings, stack)
        if not snapshot.settled:
            snapshot = await access.refresh(snapshot)
        picked = await _first(access.choice(snapshot, filter=snapshot.filter, scope=snapshot.scope), output, keyboard, frame)
        while picked is not None and picked.action:
            engine = await access.engine()
            try:
                conversation = await engine.store.conversations.get(picked.item.key)
                await attribute(_ACTS)[picked.action](engine, conversation, output)
            except NotFound as error:
                output.say(f"moot: {error.message}", "yellow")  # another process changed it first
            except MootError as error:
                write_error(output, error.message, error.fix)
            filter = "" if picked.action in RETITLES else picked.filter
            snapshot = await access.refresh(snapshot)
            picked = await choose(access.choice(snapshot, filter=filter, scope=picked.scope, at=picked.item.key), output)
    return 0 if picked is None else await attribute(_CONVERSE)(picked.item.key, output)


async def _first(choice: Choice, output: Output, keyboard: Keyboard | None, frame: Frame | None) -> Picked | None:
    if keyboard is None:
        return await choose(choice, output)
    if frame is None:
        keyboard.hand_over()
    try:
        return await choose(choice, output, frame)
    finally:
        keyboard.release()
        output.before = lambda: None


class _StoreAccess:
    """Access to the store: in worker threads until an engine is open, then through the engine."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._engine: Engine | None = None

    async def engine(self) -> Engine:
        """Open the engine on first use."""
        if self._engine is None:
            opened: AbstractAsyncContextManager[Engine] = attribute(_ENGINE)(self._settings)
            self._engine = await self._stack.enter_async_context(opened)
        return self._engine

    async def refresh(self, snapshot: Snapshot) -> Snapshot:
        """Read the snapshot with an engine, which creates the database and detects dead processes."""
        engine = await self.engine()
        empty = not snapshot.start and not (await engine.store.conversations.list(limit=1, directory=str(snapshot.directory))).items
        live = await live_statuses(engine)
        return replace(snapshot, scope=first_scope(snapshot.start, empty=empty), page=None, live=live, at=time.time())

    def choice(self, snapshot: Snapshot, *, filter: str, scope: int, at: str = "") -> Choice:
        """Build the picker from a snapshot."""
        first = None if filter else snapshot.page  # with a filter, only a part of the list was read
        wanted = enumerate(lists(snapshot.directory))
        items = [pages_of(self._read, one, snapshot.live, snapshot.at, first if number == scope else None) for number, one in wanted]
        return choice_of(snapshot.directory, items, filter=filter, at=at, scope=scope)

    async def _read(self, wanted: ListFilter) -> Page[Conversation]:
        if self._engine is None:
            return await anyio.to_thread.run_sync(partial(_page_of, self._settings.database, wanted))
        return await self._engine.store.conversations.list(
            limit=wanted.limit,
            cursor=wanted.cursor,
            directory=wanted.directory,
            deleted=wanted.deleted,
            archived=wanted.archived,
            pinned_first=wanted.pinned_first,
        )


def _page_of(database: Path, wanted: ListFilter) -> Page[Conversation]:
    with open_snapshot(database) as connection:
        if connection is None:
            raise StoreError(f"The database {str(database)!r} has changed.", fix="Open the list again.")
        return page(connection, wanted)
