"""The commands of `moot worktrees`, and the option `--worktree`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import plural, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.cli.options import NEW_WORKTREE
from moot.engine.isolation import remove_unused
from moot.errors import UsageError
from moot.guard.worktrees import UNNAMED, Worktree, check_name, create, difference, find, folder_in, listed, name_for, settle, work_in
from moot.types.canonical import Json, JsonObject
from moot.types.ids import new_id

Name = Annotated[str, Parameter(help="Name of the worktree.")]


async def list_worktrees(*, json: AsJson = False, output: Out) -> None:
    """Print moot's worktrees of the repository that contains the current folder."""
    found = await listed(str(here()))
    if json:
        output.json({"data": list[Json](map(_facts, found)), "next_cursor": None})
    elif found:
        print_table(output, ["NAME", "BRANCH", "STATE", "PATH"], [[one.name, one.branch, _state(one), one.path] for one in found])
    else:
        output.say("moot: no worktrees; moot run --worktree PROMPT creates one", "dim")


async def diff_worktree(name: Name, /, *, output: Out) -> None:
    """Print all changes in a worktree since it was created, whether committed or not."""
    diff, untracked = await difference(await find(str(here()), name))
    if diff:
        await output.stream(diff)
    for path in untracked:
        output.say(f"moot: untracked file: {path}", "dim")
    if not diff and not untracked:
        output.say("moot: no changes", "dim")


async def remove_worktree(
    name: Name,
    /,
    *,
    force: Annotated[bool, Parameter(help="Remove the worktree even if it has uncommitted changes, which will be lost.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Remove a worktree. Its branch is kept if it has commits that are on no other branch."""
    async with opened(output) as engine:
        found, is_kept = await remove_unused(engine.store, str(here()), name, force=force)
    if json:
        output.json({"removed": _facts(found), "branch_kept": is_kept})
        return
    branch = f"; its commits are on the branch {found.branch}" if is_kept else " and its branch"
    output.say(f"moot: removed the worktree {found.path}{branch}")


def _state(worktree: Worktree) -> str:
    words = [plural(worktree.commits, "new commit")] if worktree.commits else []
    words += [plural(worktree.changes, "uncommitted file")] if worktree.changes else []
    return ", ".join(words) or "clean"


def _facts(worktree: Worktree) -> JsonObject:
    return {
        "name": worktree.name,
        "path": worktree.path,
        "branch": worktree.branch,
        "changes": worktree.changes,
        "commits": worktree.commits,
    }


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
