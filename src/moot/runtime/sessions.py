"""Lookup of the outside agent's session for a branch, so that the next prompt continues it."""

from __future__ import annotations

from moot.errors import NotFound
from moot.types.canonical import JsonObject
from moot.types.message import Message
from moot.types.outside import Session
from moot.types.run import Run, RunRequest
from moot.types.store import Fence, Store

__all__ = ["session_of"]

_PAGE = 64
_RUNS = 200
"""Number of newer runs to check. A session that none of them used has not changed."""
_HOPS = 16
"""Number of nested forks to follow."""


async def session_of(store: Store, request: RunRequest, fence: Fence) -> Session | None:
    """Implement `RunContext.session`."""
    own = await store.records.run(fence.run)
    if own.agent_session_id is not None:  # started in an earlier leg of this run
        return Session(own.agent_session_id, await store.conversations.message(fence.message))
    branch = await _branch(store, request, fence)
    for index in range(len(branch) - 1, -1, -1):
        message = branch[index]
        if message.role != "assistant" or message.metadata.get("agent_type", request.run.agent_type) != request.run.agent_type:
            continue
        source, run = await _origin(store, message)
        if run is not None and run.agent_session_id is not None and run.agent_type == request.run.agent_type:
            moved = run.conversation != request.conversation.id or await _moved(store, run, request.run)
            return Session(run.agent_session_id, message, tuple(branch[index + 1 :]), moved)
        if run is None and (session := await _imported_session(store, source, request.run.agent_type)):
            return Session(session, message, tuple(branch[index + 1 :]), moved=True)  # its agent may be using it
    return None


async def _branch(store: Store, request: RunRequest, fence: Fence) -> list[Message]:
    """Return the branch before the answer, oldest first, without the prompt, back to the newest answer of this agent_type."""
    limit = _PAGE
    while True:
        branch = await store.conversations.branch(fence.conversation, head=fence.message, limit=limit)
        before = [message for message in branch if message.id != fence.message]
        if before and before[-1].role == "user":
            before.pop()
        found = any(message.metadata.get("agent_type") == request.run.agent_type for message in before)
        if found or len(branch) < limit:
            return before
        limit *= 4


async def _imported_session(store: Store, message: Message, agent_type: str) -> str:
    """Return the session that the message was imported from if it belongs to that agent, else an empty string."""
    conversation = await store.conversations.get(message.conversation)
    origin = conversation.origin or {}
    is_there = origin.get("placed") is True and conversation.parent is None
    return str(origin.get("source_id", "")) if is_there and origin.get("agent_type") == agent_type else ""


async def _origin(store: Store, message: Message) -> tuple[Message, Run | None]:
    """Return the original of a copied message, and the run that wrote it."""
    for _ in range(_HOPS):
        if message.run is not None:
            return message, await store.records.run(message.run)
        source = message.metadata.get("source")
        origin: JsonObject = source if isinstance(source, dict) else {}
        try:
            message = await store.conversations.message(str(origin.get("message", "")), conversation=str(origin.get("conversation", "")))
        except NotFound:
            break
    return message, None


async def _moved(store: Store, run: Run, own: Run) -> bool:
    """Return whether a later run has used the session, which then contains more than the branch."""
    runs = await store.records.runs(conversation=run.conversation, limit=_RUNS)
    return any(other.no > run.no and other.id != own.id and other.agent_session_id == run.agent_session_id for other in runs)
