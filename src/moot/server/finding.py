"""Things as a route's path names them: only the caller's own, by exactly our id or the client's, and never by a prefix or a title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.errors import NotFound
from moot.server.caller import Caller
from moot.server.state import Server
from moot.types.approval import Approval
from moot.types.conversation import Conversation
from moot.types.run import STARTED, Run, RunStatus

__all__ = ["LIVE", "approval_of", "conversation_of", "current", "live_of", "run_of"]

LIVE: frozenset[RunStatus] = frozenset({*STARTED, "queued"})


async def conversation_of(caller: Caller, id: str) -> Conversation:
    """Raises NotFound."""
    found = await caller.store.conversations.by_client_id(id)
    if found is None:
        raise NotFound(f"no conversation with the id {id!r}")
    return found


async def run_of(caller: Caller, id: str) -> Run:
    """Raises NotFound."""
    found = await caller.store.records.run(id)
    if found.id != id:
        raise NotFound(f"no run with the id {id!r}")
    return found


async def approval_of(caller: Caller, id: str) -> Approval:
    """Raises NotFound."""
    found = await caller.store.records.approval(id)
    if found is None:
        raise NotFound(f"no approval with the id {id!r}")
    return found


async def current(here: Server, runs: Sequence[Run]) -> list[Run]:
    """The runs as they stand: one that is called running, and whose process has died, is interrupted first."""
    return [await here.engine.runs.current(run.id) if run.status == "running" else run for run in runs]


async def live_of(here: Server, caller: Caller, conversation: str | None = None) -> Mapping[str, RunStatus]:
    """Conversation → the state of its run that has started, else of one that is queued."""
    runs = await current(here, await caller.store.records.runs(conversation=conversation, statuses=LIVE))
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}
