"""Which session of an outside agent holds a branch, so that the next prompt goes on in it."""

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
"""Newer runs of a conversation that are looked at; a session that none of them used has not moved."""
_HOPS = 16
"""Forks of forks that are followed back."""


async def session_of(store: Store, request: RunRequest, fence: Fence) -> Session | None:
    """As `RunContext.session`."""
    own = await store.records.run(fence.run)
    if own.agent_session_id is not None:  # begun in an earlier turn of this run
        return Session(own.agent_session_id, await store.conversations.message(fence.message))
    branch = await _branch(store, request, fence)
    for index in range(len(branch) - 1, -1, -1):
        message = branch[index]
        if message.role != "assistant" or message.metadata.get("agent_type", request.run.agent_type) != request.run.agent_type:
            continue
        source, run = await _said_by(store, message)
        if run is not None and run.agent_session_id is not None and run.agent_type == request.run.agent_type:
            moved = run.conversation != request.conversation.id or await _moved(store, run, request.run)
            return Session(run.agent_session_id, message, tuple(branch[index + 1 :]), moved)
        if run is None and (session := await _brought_in(store, source, request.run.agent_type)):
            return Session(session, message, tuple(branch[index + 1 :]), moved=True)  # its agent may be at work in it
    return None


async def _branch(store: Store, request: RunRequest, fence: Fence) -> list[Message]:
    """The branch behind which the answer stands, oldest first, without the prompt; back to the newest answer of this agent_type."""
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


async def _brought_in(store: Store, message: Message, agent_type: str) -> str:
    """The session that the message was brought in from, when it is one of that agent; else nothing."""
    conversation = await store.conversations.get(message.conversation)
    origin = conversation.origin or {}
    is_there = origin.get("placed") is True and conversation.parent is None
    return str(origin.get("source_id", "")) if is_there and origin.get("agent_type") == agent_type else ""


async def _said_by(store: Store, message: Message) -> tuple[Message, Run | None]:
    """The message that this one is a copy of in the end, and the run that made it."""
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
    """Whether a later run has used the session: then it holds more than the branch up to there."""
    runs = await store.records.runs(conversation=run.conversation, limit=_RUNS)
    return any(other.no > run.no and other.id != own.id and other.agent_session_id == run.agent_session_id for other in runs)
