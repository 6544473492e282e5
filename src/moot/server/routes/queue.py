"""What waits for its turn in a conversation."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from moot.convert.given import run_json
from moot.errors import Busy, NotFound
from moot.server.auth import Chatter, Reader
from moot.server.caller import Caller
from moot.server.finding import conversation_of, run_of
from moot.server.routes.messages import shown
from moot.server.routing import Router
from moot.server.state import Here, Server
from moot.server.streams.parts import stored_parts
from moot.server.wire.base import ListOut
from moot.server.wire.conversations import PartsIn, QueuedOut, SubmittedOut
from moot.server.wire.runs import RunOut, run_out
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.message import Message
from moot.types.run import Prompt, Run, RunStatus

router = Router(prefix="/api/conversations/{conversation_id}/queue", tags=["messages"])

QUEUED: frozenset[RunStatus] = frozenset({"queued"})

PAGE: dict[int | str, dict[str, Any]] = {200: {"model": ListOut[QueuedOut]}}


@router.get("", response_model=None, responses=PAGE)
async def list_queue(caller: Reader, conversation_id: str) -> Response:
    """Lists the runs that wait for their turn, the next one first, with what was said."""
    found = await conversation_of(caller, conversation_id)
    data = list[Json]([await _queued(caller, run) for run in await _waiting(caller, found.id)])
    return Response(dumps({"data": data, "next_cursor": None}), media_type="application/json")


@router.put("/{run_id}", status_code=202)
async def edit_queued(here: Here, caller: Chatter, conversation_id: str, run_id: str, wanted: PartsIn) -> SubmittedOut:
    """Says the last prompt of the queue in other words: it is withdrawn, and a new one stands in its place."""
    run = await _run(caller, conversation_id, run_id)
    if [other.id for other in await _waiting(caller, run.conversation)][-1:] != [run.id]:
        raise Busy(f"other prompts stand behind {run.id!r}, or it is not queued any more", fix="remove it, and say it anew")
    prompt = await _prompt(caller, run)
    if prompt is None:
        raise Busy(f"the run {run.id!r} answers what was said before", fix="edit that message")
    parts = await stored_parts(caller.store.blobs, wanted.parts, here.engine.runtime.settings.limits.uploads)
    await _withdraw(here, run)
    submitted = await here.engine.runs.submit(
        Prompt(
            parts,
            conversation=run.conversation,
            edits=prompt.id,
            client_id=prompt.client_id,
            on_busy="queue",
            trigger=run.trigger,
            on_crash=run.on_crash,
            settings=run.settings,
            user=caller.owner_id,
        )
    )
    return SubmittedOut(conversation=run.conversation, run=run_out(submitted.run), seq=submitted.seq, steered=submitted.steered)


@router.delete("/{run_id}")
async def remove_queued(here: Here, caller: Chatter, conversation_id: str, run_id: str) -> RunOut:
    """Takes a run out of the queue before its turn: it ends cancelled."""
    run = await _run(caller, conversation_id, run_id)
    await _withdraw(here, run)
    return run_out(await run_of(caller, run.id))


async def _run(caller: Caller, conversation_id: str, run_id: str) -> Run:
    found, run = await conversation_of(caller, conversation_id), await run_of(caller, run_id)
    if run.conversation != found.id:
        raise NotFound(f"no run with the id {run_id!r}")
    return run


async def _waiting(caller: Caller, conversation: str) -> list[Run]:
    return (await caller.store.records.runs(conversation=conversation, statuses=QUEUED))[::-1]


async def _withdraw(here: Server, run: Run) -> None:
    if not await here.engine.store.records.withdraw(run.id):
        raise Busy(f"the run {run.id!r} is not queued any more", fix="cancel it with POST /api/runs/ID/cancel")
    here.engine.runtime.hub.touch(run.conversation)


async def _prompt(caller: Caller, run: Run) -> Message | None:
    """What the run answers, if it is the last thing that was said."""
    answer = await caller.store.conversations.message(run.message)
    said = await caller.store.conversations.message(answer.parent) if answer.parent is not None else None
    return said if said is not None and said.role == "user" else None


async def _queued(caller: Caller, run: Run) -> JsonObject:
    prompt = await _prompt(caller, run)
    return {**run_json(run), "process": None, "prompt": (await shown(caller, [prompt]))[0] if prompt is not None else None}
