"""The list of conversations, again after each action, until somebody leaves or goes on with one."""

from __future__ import annotations

from typing import Literal

from moot.cli.browsing.rows import COLUMNS, KEYS, RETITLES, Wanted, pages_of
from moot.cli.chat.facts import live_statuses
from moot.cli.configured import here
from moot.cli.opening import opened
from moot.cli.output import Output
from moot.cli.picking.items import Picked, Scope
from moot.cli.picking.picking import pick
from moot.engine import Engine
from moot.errors import MootError, NotFound
from moot.plugins.registry import attribute

_CONVERSE = "moot.cli.repl.conversing:converse"
_ACTS = "moot.cli.browsing.acting:ACTS"
"""By path: runs, the editor and their like are not waited for before the list is seen."""


async def browse(output: Output, filter: str, scope: Literal["", "here", "archived", "deleted"]) -> int:
    """Shows the conversations of this directory (of all if it has none), Tab the others; the exit code of what was gone on with, else 0."""
    async with opened(output) as engine:
        first = {"here": 0, "archived": 2, "deleted": 3}.get(scope)
        if first is None:
            first = 0 if (await engine.store.conversations.list(limit=1, directory=str(here()))).items else 1
        picked: Picked | None = None
        while True:
            picked = await _pick(engine, output, picked, filter, first)
            if picked is None:
                return 0
            if not picked.action:
                break
            await _act(engine, picked, output)
    return await attribute(_CONVERSE)(picked.item.key, output)


async def _pick(engine: Engine, output: Output, before: Picked | None, filter: str, scope: int) -> Picked | None:
    live = await live_statuses(engine.store)
    directory = here()
    local = pages_of(engine.store, Wanted(directory=str(directory)), live)
    return await pick(
        local,
        title=f"Conversations in {directory.name or directory}",
        scopes=(
            Scope("all directories", pages_of(engine.store, Wanted(), live)),
            Scope("archived", pages_of(engine.store, Wanted(archived=True), live)),
            Scope("deleted", pages_of(engine.store, Wanted(deleted=True, archived=None), live)),
        ),
        columns=COLUMNS,
        keys=KEYS,
        enter="continue",
        empty="none yet",
        filter=filter if before is None else "" if before.action in RETITLES else before.filter,
        at=before.item.key if before else "",
        scope=before.scope if before else scope,
        output=output,
    )


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
