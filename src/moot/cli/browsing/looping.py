"""The list, again after each action, until somebody leaves or goes on with one. An engine is opened for an action, not for looking."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from moot.cli.browsing.looking import Look, choice_of, first_scope, lists
from moot.cli.browsing.rows import RETITLES, pages_of
from moot.cli.chat.facts import live_statuses
from moot.cli.output import Output
from moot.cli.picking.frame import Frame
from moot.cli.picking.items import Choice, Picked
from moot.cli.picking.keyboard import Keyboard
from moot.cli.picking.picking import choose
from moot.config.settings import Settings
from moot.errors import MootError, NotFound, StoreError
from moot.plugins.registry import attribute
from moot.store.glance import glance
from moot.store.listing import Listed, page
from moot.types.conversation import Conversation
from moot.types.page import Page

if TYPE_CHECKING:
    from moot.engine import Engine

_CONVERSE = "moot.cli.repl.conversing:converse"
_ACTS = "moot.cli.browsing.acting:ACTS"
_ENGINE = "moot.engine:open_engine"
"""By path: runs, the editor and their like are not waited for before the list takes keys."""


async def loop(look: Look, keyboard: Keyboard | None, frame: Frame | None, *, output: Output) -> int:
    """From that look on; the exit code. `frame` is what is on the screen, `keyboard` keeps the keys for the list."""
    output.hide(look.loaded.secrets)
    output.ui = look.loaded.settings.ui
    if frame is not None:
        output.before = frame.hide
    async with AsyncExitStack() as stack:
        desk = _Desk(look.loaded.settings, stack)
        if not look.settled:
            look = await desk.look_again(look)
        picked = await _first(desk.choice(look, filter=look.filter, scope=look.scope), output, keyboard, frame)
        while picked is not None and picked.action:
            await _act(await desk.engine(), picked, output)
            filter = "" if picked.action in RETITLES else picked.filter
            look = await desk.look_again(look)
            picked = await choose(desk.choice(look, filter=filter, scope=picked.scope, at=picked.item.key), output)
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
        output.before = _nothing


class _Desk:
    """The store as far as it is needed: looked at by worker threads until an engine is open."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._engine: Engine | None = None

    async def engine(self) -> Engine:
        """Opened when it is first asked for, and kept."""
        if self._engine is None:
            opened: AbstractAsyncContextManager[Engine] = attribute(_ENGINE)(self._settings)
            self._engine = await self._stack.enter_async_context(opened)
        return self._engine

    async def look_again(self, look: Look) -> Look:
        """What an engine says: it makes the database, and knows whose process is dead."""
        store = (await self.engine()).store
        empty = not look.place and not (await store.conversations.list(limit=1, directory=str(look.directory))).items
        return replace(look, scope=first_scope(look.place, empty=empty), page=None, live=await live_statuses(store), at=time.time())

    def choice(self, look: Look, *, filter: str, scope: int, at: str = "") -> Choice:
        """The lists as they were looked at."""
        first = None if filter else look.page  # with a filter only some of the list was read
        wanted = enumerate(lists(look.directory))
        items = [pages_of(self._read, one, look.live, look.at, first if number == scope else None) for number, one in wanted]
        return choice_of(look.directory, items, filter=filter, at=at, scope=scope)

    async def _read(self, wanted: Listed) -> Page[Conversation]:
        if self._engine is None:
            return await anyio.to_thread.run_sync(partial(_glanced, self._settings.database, wanted))
        return await self._engine.store.conversations.list(
            limit=wanted.limit,
            cursor=wanted.cursor,
            directory=wanted.directory,
            deleted=wanted.deleted,
            archived=wanted.archived,
        )


def _glanced(database: Path, wanted: Listed) -> Page[Conversation]:
    with glance(database) as connection:
        if connection is None:
            raise StoreError(f"{str(database)!r} is not what it was when the list began", fix="Open the list again.")
        return page(connection, wanted)


async def _act(engine: Engine, picked: Picked, output: Output) -> None:
    try:
        conversation = await engine.store.conversations.get(picked.item.key)
        await attribute(_ACTS)[picked.action](engine, conversation, output)
    except NotFound as error:
        output.say(f"moot: {error.message}", "yellow")  # another process was faster
    except MootError as error:
        output.say(f"moot: {error.message}", "red")
        if error.fix:
            output.say(f"  {error.fix}")


def _nothing() -> None:
    return
