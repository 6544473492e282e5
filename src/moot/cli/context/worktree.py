"""Handle the option `--worktree`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.options import NEW_WORKTREE
from moot.errors import UsageError
from moot.guard.worktrees import UNNAMED, check_name, create, folder_in, name_for, settle, work_in
from moot.types.ids import new_id


@asynccontextmanager
async def worktree_folder(wanted: str | None, conversation: str | None, output: Output) -> AsyncGenerator[str]:
    """Yield the folder to work in: the current one, or the corresponding one in the worktree.
    At the end, report changes that remain in the worktree.

    Raise UsageError for a name that can't be used, and for an existing conversation, whose folder can't be changed.
    """
    current = str(here())
    if wanted is None:
        yield current
        return
    if conversation is not None:
        raise UsageError("--worktree is only for new conversations. A conversation keeps its folder.", fix="moot run --worktree PROMPT")
    if wanted != NEW_WORKTREE:
        check_name(wanted)
    made = await create(current, name_for(new_id(), UNNAMED) if wanted == NEW_WORKTREE else wanted)
    folder = await folder_in(made, current)
    output.say(f"moot: working in {made.path}, on the branch {made.branch}", "dim")
    try:
        yield folder
    finally:
        left = await settle(made.path, UNNAMED) or await work_in(made.path)
        if left:
            output.say(f"moot: {left}", "dim")
