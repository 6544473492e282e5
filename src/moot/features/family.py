"""Conversations and the sub-agents that they started, as a tree."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from moot.convert.files.edits import changed_files
from moot.errors import NotFound
from moot.runtime.children import summary_of
from moot.types.approval import Approval
from moot.types.canonical import Json, JsonObject
from moot.types.children import ChildStatus, child_status
from moot.types.conversation import Conversation
from moot.types.run import TERMINAL, Run
from moot.types.store import OwnerStore

PAGE = 200


@dataclass(frozen=True, slots=True)
class Relative:
    """One conversation of a tree."""

    conversation: Conversation
    run: Run | None
    """Its latest run, or None if it has no run yet."""
    status: ChildStatus
    files: tuple[str, ...]
    """Files that the conversation's agent has written, without duplicates."""
    summary: str
    """The result of its latest run; empty until the run has ended."""
    children: tuple[Relative, ...] = ()

    @property
    def cost(self) -> int | None:
        """Known cost of the conversation and everything below it, in nano-dollars; None = no price is known."""
        own = self.conversation.cost if self.conversation.message_count else 0
        known = [cost for cost in (own, *(child.cost for child in self.children)) if cost is not None]
        return sum(known) if known else None

    @property
    def unpriced_runs(self) -> int:
        """Number of runs of the conversation and everything below it whose cost is completely or partly unknown."""
        return self.conversation.unpriced_runs + sum(child.unpriced_runs for child in self.children)

    def to_json(self) -> JsonObject:
        """Return the tree as JSON. Costs are in nano-dollars; null = unknown."""
        return {
            "id": self.conversation.id,
            "agent": self.conversation.agent,
            "status": self.status,
            "call": self.conversation.parent_tool_call,
            "run": self.run.id if self.run is not None else None,
            "run_status": self.run.status if self.run is not None else None,
            "awaits": self.run.awaits if self.run is not None else None,
            "prompt": self.conversation.title,
            "summary": self.summary,
            "cost": self.cost,
            "unpriced_runs": self.unpriced_runs,
            "files": list[Json](self.files),
            "origin": (self.conversation.origin or {}).get("path"),
            "children": list[Json](child.to_json() for child in self.children),
        }


async def family_of(store: OwnerStore, conversation: Conversation) -> Relative:
    """Return the tree of a conversation and of its sub-agents' conversations at any depth. Siblings are sorted oldest first."""
    children = [await family_of(store, child) for child in reversed(await children_of(store, conversation.id))]
    newest = next(iter(await store.records.runs(conversation=conversation.id, limit=1)), None)
    branch = await store.conversations.branch(conversation.id)
    finished = newest is None or newest.status in TERMINAL
    status: ChildStatus = "finished" if newest is None else child_status(newest)
    summary = summary_of(branch[-1].parts) if branch and finished and branch[-1].role == "assistant" else ""
    return Relative(
        conversation, newest, status, changed_files(part for message in branch for part in message.parts), summary, tuple(children)
    )


async def children_of(store: OwnerStore, conversation: str) -> list[Conversation]:
    """Return the conversations of the sub-agents that a conversation started, newest first."""
    found: list[Conversation] = []
    cursor: str | None = None
    while True:
        page = await store.conversations.list(parent=conversation, archived=None, limit=PAGE, cursor=cursor)
        found += page.items
        if (cursor := page.next_cursor) is None:
            return sorted(found, key=lambda one: (one.created_at, one.no), reverse=True)


async def lineage(store: OwnerStore, conversation: Conversation) -> list[Conversation]:
    """Return the conversation and its ancestors, the topmost first. Ancestors above a purged conversation are left out."""
    found = [conversation]
    with suppress(NotFound):
        while found[0].parent is not None and len(found) < PAGE:
            found.insert(0, await store.conversations.get(found[0].parent))
    return found


async def asking_conversation(store: OwnerStore, approval: Approval, run: Run) -> Conversation:
    """Return the conversation that asks for an approval in a run: the run's own conversation, or that of a sub-agent."""
    asking = run if approval.run == run.id else await store.records.run(approval.run)
    return await store.conversations.get(asking.conversation)
