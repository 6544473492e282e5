"""Routes to read, add, edit and delete messages, and for the message tree, raw events and the queue of prompts."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, cast

from fastapi import Query
from starlette.responses import Response

from moot.convert.serialization import event_json, message_json, node_json, run_json
from moot.errors import Busy, NotFound, Refused, UsageError
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import EventOut, ListOut, MessageOut, PartsIn, PromptIn, QueueOut, RunOut, SubmittedOut, TreeOut, run_out
from moot.server.resources import Limit, Notes, check_references, conversation_of, message_id, run_of, user_message, with_references
from moot.server.state import CurrentServer, Server
from moot.server.streams.parts import is_same, own_parts, stored_parts
from moot.server.streams.view import Blobs, part_view
from moot.server.streams.writers import store_blobs
from moot.types.canonical import Json, dumps
from moot.types.message import Message, text_part
from moot.types.part_tree import linked
from moot.types.run import Prompt, Run, RunStatus
from moot.types.store import InboxItem

router = Router(prefix="/api/conversations/{conversation_id}", tags=["messages"])

FREE = frozenset({"edits", "auto"})
"""Modes in which some calls run without approval."""


@router.get("/messages", response_model=ListOut[MessageOut])
async def list_messages(
    caller: Reader,
    conversation_id: str,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` from the previous page.")] = None,
    start: Annotated[
        Literal["latest", "oldest"], Query(description="The end of the branch to start from. Send the same value with `cursor`.")
    ] = "latest",
) -> Response:
    """List messages of the current branch. Each page is in order, oldest first.

    The first page contains the latest messages and `next_cursor` leads to older ones; with `start=oldest`, it contains the first messages
    and `next_cursor` leads to newer ones.
    """
    found = await conversation_of(caller, conversation_id)
    if start == "oldest":
        messages = await caller.store.conversations.branch(found.id, limit=limit, first=True, after=cursor)
        newer = messages[-1].id if len(messages) == limit else None
        return _json({"data": await shown(caller, messages), "next_cursor": newer})
    messages = await caller.store.conversations.branch(found.id, head=cursor, limit=limit)
    older = messages[0].parent if messages and len(messages) == limit else None
    return _json({"data": await shown(caller, messages), "next_cursor": older})


@router.post("/messages", status_code=202)
async def submit_prompt(
    server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, conversation_id: str, body: PromptIn
) -> SubmittedOut:
    """Submit a prompt without waiting for the answer; use `POST /api/chat` to stream it."""
    found = await conversation_of(caller, conversation_id)
    if body.mode in FREE and not caller.may("tools"):
        raise Refused(f"Mode {body.mode!r} requires the 'tools' scope.")
    if body.references:
        check_references(caller)
    if body.text is not None and body.parts:
        raise UsageError("`text` and `parts` can't be combined.")
    parts = (text_part(body.text),) if body.text is not None else ()
    if body.parts:
        own = own_parts(body.parts) if body.references else body.parts
        parts = await stored_parts(caller.store.blobs, own, server.engine.runtime.settings.limits.uploads)
    prompt = Prompt(
        parts,
        conversation=found.id,
        client_id=body.client_id,
        edits=await message_id(caller, found.id, body.edits),
        answers=await message_id(caller, found.id, body.answers),
        agent=body.agent,
        model=body.model,
        mode=body.mode,
        on_busy=body.on_busy,
        trigger="api",
        on_crash="resume",
        settings=body.model_dump(include={"effort", "max_steps"}, exclude_none=True),
        id=attempt.id,
        user=caller.owner_id,
    )
    notes: Notes = ()
    if body.references and parts:
        known = await user_message(caller, found, body.client_id)
        if known is not None and body.edits is None and is_same(known.parts, parts, references=True):
            prompt = replace(prompt, parts=known.parts)  # sent again
        else:
            prompt, notes = await with_references(server.engine, caller, prompt, found)
    submitted = await server.engine.runs.submit(prompt)
    return SubmittedOut.of(submitted, conversation=submitted.conversation.id, run=run_out(submitted.run), notes=list(notes))


@router.get("/messages/{message_id}", response_model=MessageOut)
async def get_message(caller: Reader, conversation_id: str, message_id: str) -> Response:
    """Get a message. A message being written is returned in its current state."""
    return await _sent(caller, await _message(caller, conversation_id, message_id))


@router.put("/messages/{message_id}", status_code=201, response_model=MessageOut)
async def edit_message(server: CurrentServer, caller: Chatter, conversation_id: str, message_id: str, body: PartsIn) -> Response:
    """Add an edited copy of a message as a new branch and switch to it. To also get an answer, submit a prompt with `edits` instead."""
    found = await _message(caller, conversation_id, message_id)
    parts = await stored_parts(caller.store.blobs, body.parts, server.engine.runtime.settings.limits.uploads)
    edited = await caller.store.tree.edit(found.id, parts)
    server.engine.runtime.hub.touch(found.conversation)
    return await _sent(caller, edited, 201)


@router.delete("/messages/{message_id}", response_model=MessageOut)
async def delete_message(server: CurrentServer, caller: Chatter, conversation_id: str, message_id: str) -> Response:
    """Delete a message: hide it from the conversation, the model and search. It can be restored."""
    return await _hidden(server, caller, conversation_id, message_id, restore=False)


@router.post("/messages/{message_id}/restore", response_model=MessageOut)
async def restore_message(server: CurrentServer, caller: Chatter, conversation_id: str, message_id: str) -> Response:
    """Restore a deleted message."""
    return await _hidden(server, caller, conversation_id, message_id, restore=True)


@router.get("/tree", response_model=TreeOut)
async def get_tree(caller: Reader, conversation_id: str) -> Response:
    """List all messages with their position in the tree, including other branches and deleted messages."""
    found = await conversation_of(caller, conversation_id)
    nodes: list[Json] = [node_json(node) for node in await caller.store.tree.nodes(found.id)]
    return _json({"data": nodes, "next_cursor": None, "conversation": found.id, "head": found.head})


@router.get("/raw", response_model=ListOut[EventOut])
async def list_raw_events(
    caller: Reader,
    conversation_id: str,
    run: Annotated[str | None, Query(max_length=200, description="Only events of this run.")] = None,
    message: Annotated[str | None, Query(max_length=200, description="Only events of the run that wrote this message.")] = None,
    limit: Limit = 50,
    cursor: Annotated[int, Query(ge=0, le=0xFFFFFFFF, description="`next_cursor` from the previous page: events after this `seq`.")] = 0,
) -> Response:
    """List events with the vendor's raw bytes, oldest first."""
    found = await conversation_of(caller, conversation_id)
    run_id, more = (await run_of(caller, run)).id if run is not None else None, True
    if message is not None:
        named_message = await caller.store.conversations.message(message, conversation=found.id)
        if named_message.run is None:
            cursor, limit, more = named_message.first_seq - 1, 1, False
        run_id = named_message.run
    events = await caller.store.log.read(found.id, after=cursor, limit=limit, run=run_id)
    next_cursor = str(events[-1].seq) if more and len(events) == limit else None
    return _json({"data": [event_json(event, raw=True) for event in events], "next_cursor": next_cursor})


async def shown(caller: Caller, messages: list[Message]) -> list[Json]:
    """Return messages in the format of the API, with excerpts in place of large outputs and links in place of blobs."""
    blobs: Blobs = []
    found: list[Json] = []
    for message in messages:
        parts = [part for part in (part_view(part, 7, blobs) for part in linked(message.parts)) if part is not None]
        found.append({**message_json(message), "parts": cast("Json", parts)})
    await store_blobs(caller.store.blobs, blobs)
    return found


async def _hidden(server: CurrentServer, caller: Caller, conversation_id: str, message_id: str, *, restore: bool) -> Response:
    found = await _message(caller, conversation_id, message_id)
    await caller.store.tree.delete(found.conversation, [found.id], restore=restore)
    server.engine.runtime.hub.touch(found.conversation)
    return await _sent(caller, found)


async def _message(caller: Caller, conversation_id: str, message_id: str) -> Message:
    found = await conversation_of(caller, conversation_id)
    return await caller.store.conversations.message(message_id, conversation=found.id)


async def _sent(caller: Caller, message: Message, status: int = 200) -> Response:
    (found,) = await shown(caller, [message])
    return _json(found, status)


def _json(value: Json, status: int = 200) -> Response:
    return Response(dumps(value), status, media_type="application/json")


queue_router = Router(prefix="/api/conversations/{conversation_id}/queue", tags=["messages"])

QUEUED: frozenset[RunStatus] = frozenset({"queued"})


RUNNING: frozenset[RunStatus] = frozenset({"running"})


@queue_router.get("", response_model=QueueOut)
async def list_queue(caller: Reader, conversation_id: str) -> Response:
    """List queued runs with their prompts, next one first, and messages that the live run has not received yet."""
    found = await conversation_of(caller, conversation_id)
    steered = [
        _steered(run, item)
        for run in await caller.store.records.runs(conversation=found.id, statuses=RUNNING)
        for item in await caller.store.records.inbox(run.id)
        if item.kind == "steer"
    ]
    return await _queue(caller, await _waiting(caller, found.id), steered)


@queue_router.delete("", response_model=QueueOut)
async def empty_queue(server: CurrentServer, caller: Chatter, conversation_id: str) -> Response:
    """Remove all queued runs and all messages that the live run has not received yet. Return them with their prompts."""
    found = await conversation_of(caller, conversation_id)
    removed = [
        run for run in (await _waiting(caller, found.id))[::-1] if await server.engine.store.records.withdraw(run.id)
    ]  # newest first, so that none starts
    steered = [
        _steered(run, item)
        for run in await caller.store.records.runs(conversation=found.id, statuses=RUNNING)
        for item in await server.engine.store.records.withdraw_steers(run.id)
    ]
    server.engine.runtime.hub.touch(found.id)
    return await _queue(caller, removed[::-1], steered)


@queue_router.put("/{run_id}", status_code=202)
async def edit_queued(server: CurrentServer, caller: Chatter, conversation_id: str, run_id: str, body: PartsIn) -> SubmittedOut:
    """Replace the last queued prompt. Its run is withdrawn, and a new run is queued."""
    run = await _run(caller, conversation_id, run_id)
    if [other.id for other in await _waiting(caller, run.conversation)][-1:] != [run.id]:
        raise Busy(
            f"The run {run.id!r} is not the last one in the queue, so its prompt can't be edited.",
            fix="Remove the run from the queue, and send the prompt again.",
        )
    prompt = await _prompt(caller, run)
    if prompt is None:
        raise Busy(f"The run {run.id!r} has no prompt that can be edited.", fix="Edit the message that the run answers.")
    parts = await stored_parts(caller.store.blobs, body.parts, server.engine.runtime.settings.limits.uploads)
    await _withdraw(server, run)
    submitted = await server.engine.runs.submit(
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
    return SubmittedOut.of(submitted, conversation=run.conversation, run=run_out(submitted.run))


@queue_router.delete("/steered/{message_id}", response_model=MessageOut)
async def remove_steered(server: CurrentServer, caller: Chatter, conversation_id: str, message_id: str) -> Response:
    """Withdraw a message that the live run has not received yet."""
    found = await conversation_of(caller, conversation_id)
    for run in await caller.store.records.runs(conversation=found.id, statuses=RUNNING):
        for item in await server.engine.store.records.withdraw_steers(run.id, message_id):
            return await _sent(caller, _steered(run, item))
    raise NotFound(f"No unread message has the id {message_id!r}.", fix="See GET /api/conversations/ID/queue.")


@queue_router.delete("/{run_id}")
async def remove_queued(server: CurrentServer, caller: Chatter, conversation_id: str, run_id: str) -> RunOut:
    """Remove a run from the queue. Its status becomes `cancelled`."""
    run = await _run(caller, conversation_id, run_id)
    await _withdraw(server, run)
    return run_out(await run_of(caller, run.id))


async def _run(caller: Caller, conversation_id: str, run_id: str) -> Run:
    found, run = await conversation_of(caller, conversation_id), await run_of(caller, run_id)
    if run.conversation != found.id:
        raise NotFound(f"No run has the id {run_id!r}.")
    return run


async def _waiting(caller: Caller, conversation: str) -> list[Run]:
    return (await caller.store.records.runs(conversation=conversation, statuses=QUEUED))[::-1]


async def _queue(caller: Caller, runs: list[Run], steered: list[Message]) -> Response:
    data: list[Json] = []
    for run in runs:
        prompt = await _prompt(caller, run)
        data.append({**run_json(run), "process": None, "prompt": (await shown(caller, [prompt]))[0] if prompt is not None else None})
    return _json({"data": data, "next_cursor": None, "steered": await shown(caller, steered)})


def _steered(run: Run, item: InboxItem) -> Message:
    """Return the user's steering message for the run from an inbox item."""
    body = item.body if isinstance(item.body, dict) else {}
    parts, client_id = body.get("parts"), body.get("client_id")
    return Message(
        str(body.get("id", f"steer-{item.no}")),
        "user",
        tuple(part for part in parts if isinstance(part, dict)) if isinstance(parts, list) else (),
        conversation=run.conversation,
        run=run.id,
        client_id=str(client_id) if client_id else None,
        created_at=item.at,
    )


async def _withdraw(server: Server, run: Run) -> None:
    if not await server.engine.store.records.withdraw(run.id):
        raise Busy(f"The run {run.id!r} is no longer queued.", fix="Cancel it with POST /api/runs/ID/cancel.")
    server.engine.runtime.hub.touch(run.conversation)


async def _prompt(caller: Caller, run: Run) -> Message | None:
    """Return the user message that the run answers, or None."""
    answer = await caller.store.conversations.message(run.message)
    message = await caller.store.conversations.message(answer.parent) if answer.parent is not None else None
    return message if message is not None and message.role == "user" else None
