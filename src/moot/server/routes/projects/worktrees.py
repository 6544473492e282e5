"""Routes for moot's Git worktrees in a project's folder."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import Query

from moot.engine.isolation import remove_unused
from moot.errors import NotFound
from moot.features.projects.git import DIFF_BYTES
from moot.guard.worktrees import Worktree, difference, find, listed
from moot.server.auth import Operator, Router
from moot.server.credentials import Caller
from moot.server.models import ListOut, Out, ShownPath
from moot.server.state import CurrentServer


class WorktreeOut(Out, of=Worktree, fields="name path branch changes commits"):
    """A Git worktree in which an agent works."""

    path: ShownPath
    """Absolute path of the worktree's folder."""
    branch: str
    """Name of the worktree's branch."""


class WorktreeDiffOut(Out):
    """The changes in a worktree since it was created, committed or not."""

    diff: str
    """The diff of all files in the unified format of `git diff`; empty if there is no difference."""
    cut: bool
    """True if the diff was truncated."""
    untracked: list[ShownPath]
    """New files that Git does not track, relative to the worktree. They are not in the diff."""


class WorktreeRemoved(Out):
    """A removed worktree."""

    removed: WorktreeOut
    branch_kept: bool
    """True if the worktree's branch was kept because it has commits that are not on any other branch."""


router = Router(prefix="/api/projects", tags=["projects"])


async def _root(caller: Caller, project: str) -> str:
    """Return the folder of a project. Raise NotFound if it has none."""
    found = await caller.store.projects.get(project)
    if not found.root_path:
        raise NotFound(f"The project {found.name!r} has no folder, so it has no worktrees.")
    return found.root_path


@router.get("/{project_id}/worktrees")
async def list_worktrees(caller: Operator, project_id: str) -> ListOut[WorktreeOut]:
    """List moot's worktrees in the repository of the project's folder, by name."""
    return ListOut(data=[WorktreeOut.of(one) for one in await listed(await _root(caller, project_id))])


@router.get("/{project_id}/worktrees/{name}/diff")
async def get_worktree_diff(caller: Operator, project_id: str, name: str) -> WorktreeDiffOut:
    """Get the diff of a worktree."""
    diff, untracked = await difference(await find(await _root(caller, project_id), name))
    text = os.fsencode(diff)
    return WorktreeDiffOut(diff=text[:DIFF_BYTES].decode("utf-8", "replace"), cut=len(text) > DIFF_BYTES, untracked=untracked)


@router.delete("/{project_id}/worktrees/{name}")
async def remove_worktree(
    server: CurrentServer,
    caller: Operator,
    project_id: str,
    name: str,
    force: Annotated[bool, Query(description="Remove the worktree even if it has uncommitted changes, which are lost.")] = False,
) -> WorktreeRemoved:
    """Remove a worktree. It must not be in use. Its branch is kept if it has commits that are not on any other branch."""
    worktree, is_kept = await remove_unused(server.engine.store, await _root(caller, project_id), name, force=force)
    return WorktreeRemoved(removed=WorktreeOut.of(worktree), branch_kept=is_kept)
