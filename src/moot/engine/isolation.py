"""Conversations with their own git worktree."""

from __future__ import annotations

from dataclasses import replace

from moot.errors import Busy, UsageError
from moot.guard.worktrees import Worktree, checkout_of, create, find, folder_in, moved, name_for, place_of, remove
from moot.types.conversation import Conversation
from moot.types.run import OPEN, Prompt
from moot.types.store import Store
from moot.types.token import LOCAL_USER


async def isolated(conversation: Conversation, prompt: Prompt) -> Conversation:
    """Create a worktree for a new conversation and return the conversation with the worktree as its folder.

    A conversation that starts in a worktree uses that one, unless the conversation is a sub-agent's, because the parent may be working
    there. Raise UsageError if the owner can't have worktrees.
    """
    directory = conversation.directory
    if place_of(directory)[0] and conversation.parent is None:
        return conversation
    if conversation.owner != LOCAL_USER:
        raise UsageError(
            f"The agent {conversation.agent!r} works in its own git worktree. Only the owner of this moot home can use it.",
            fix="Use another agent.",
        )
    made = await create(directory, name_for(prompt.key or prompt.id or conversation.id))
    root = await checkout_of(directory)
    allowed = tuple(moved(folder, root, made.path) for folder in conversation.allowed_uris)
    return replace(conversation, directory=await folder_in(made, directory), allowed_uris=allowed)


async def remove_unused(store: Store, directory: str, name: str, *, force: bool = False) -> tuple[Worktree, bool]:
    """Remove a worktree. Return the worktree, and whether its branch was kept because it has commits that are on no other branch.

    Raise Busy if a run is working in the worktree, or if there are uncommitted changes. If `force` is True, uncommitted changes are lost.
    """
    found = await find(directory, name)
    for run in await store.records.runs(statuses=OPEN):
        conversation = await store.conversations.get(run.conversation)
        if f"{conversation.directory}/".startswith(f"{found.path}/"):
            fix = f"moot chat stop {conversation.id[:13]}"
            raise Busy(f"The conversation {conversation.id!r} is using this worktree.", fix=fix)
    return found, await remove(directory, name, force=force)
