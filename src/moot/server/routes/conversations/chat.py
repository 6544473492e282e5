"""Routes for chat clients built with the AI SDK: send a prompt, stream or resume its answer, stop it, and read the messages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header
from starlette.responses import Response

from moot.convert.unfold import Version
from moot.errors import NotFound
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.examples import STREAMED
from moot.server.idempotency import CurrentAttempt
from moot.server.state import CurrentServer, Server
from moot.server.streams.chat import ChatIn, Stopped, continued_conversation, open_stream
from moot.server.streams.frames import DONE, WHOLE, ChunkFrames, frame
from moot.server.streams.parts import as_sent
from moot.server.streams.positions import Opening, open_approvals, shown
from moot.server.streams.response import CHUNKS, EventStream
from moot.server.streams.view import Blobs, message_view, version_of
from moot.server.streams.writers import MessageWriter, store_blobs
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.run import OPEN, TERMINAL

router = Router(prefix="/api/chat", tags=["chat"])

Sdk = Annotated[str | None, Header(alias="x-ai-sdk-version", description="`7` for chunks of AI SDK 7; otherwise chunks of version 6")]
LastEventId = Annotated[str | None, Header(alias="last-event-id", description="Id of the last frame received, `seq.k`")]

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A stream of chunks: see docs/streams.md.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": STREAMED}},
    }
}
MESSAGES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "UIMessages: `id`, `role`, `parts`, `metadata`.",
        "content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}},
    }
}
QUEUED = frame({"type": "data-status", "data": {"status": "queued"}, "transient": True}, "")
"""Frame sent first if the run is queued. It is not part of the message."""

NOTHING: dict[int | str, dict[str, Any]] = {204: {"description": "There is no stream to resume."}}


@router.post("", response_model=None, response_class=Response, responses=STREAM)
async def chat_turn(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, body: ChatIn, sdk: Sdk = None) -> Response:
    """Send a prompt, edit or retry one, or answer approvals, and stream the resulting message."""
    async with server.streams.lock(caller.owner_id, body.id):
        opening = await open_stream(server.engine, caller, body, attempt)
    return await _stream(server, caller, opening, version_of(sdk))


@router.get("/{chat_id}/stream", response_model=None, response_class=Response, responses=STREAM | NOTHING)
async def chat_stream(server: CurrentServer, caller: Reader, chat_id: str, sdk: Sdk = None, last_event_id: LastEventId = None) -> Response:
    """Resume the stream of the message being written. It starts after the frame `Last-Event-ID`, by default at the beginning."""
    conversation = await continued_conversation(caller, chat_id)
    opening = None if conversation is None else await shown(server.engine, caller, conversation, last_event_id)
    if opening is None:
        return Response(status_code=204)
    return await _stream(server, caller, opening, version_of(sdk))


@router.post("/{chat_id}/stop")
async def stop_chat(server: CurrentServer, caller: Chatter, chat_id: str) -> Stopped:
    """Stop the conversation's running, waiting and queued runs."""
    conversation = await _conversation(caller, chat_id)
    runs = await caller.store.records.runs(conversation=conversation.id, statuses=OPEN)
    for run in runs:  # newest first, so that a queued run does not start
        await server.engine.runs.cancel(run.id)
    return Stopped(stopped=[run.id for run in reversed(runs)])


@router.get("/{chat_id}/messages", response_model=None, response_class=Response, responses=MESSAGES)
async def chat_messages(caller: Reader, chat_id: str, sdk: Sdk = None) -> Response:
    """Get all messages of the current branch as UIMessages of the AI SDK, oldest first."""
    conversation = await _conversation(caller, chat_id)
    branch = [await as_sent(caller.store.blobs, message) for message in await caller.store.conversations.branch(conversation.id)]
    blobs: Blobs = []
    messages_json = [message_view(message, version_of(sdk), blobs) for message in branch]
    await store_blobs(caller.store.blobs, blobs)
    return Response(dumps(messages_json), media_type="application/json")


async def _conversation(caller: Caller, chat_id: str) -> Conversation:
    found = await continued_conversation(caller, chat_id)
    if found is None:
        raise NotFound(f"No conversation has the id {chat_id!r}.")
    return found


async def _status(caller: Caller, opening: Opening) -> bytes:
    """Return the frame with what the run is waiting for, if it is queued or waits before it repeats a request; else nothing."""
    if (await caller.store.records.run(opening.run)).status == "queued":
        return QUEUED
    seq = await caller.store.log.last_seq(opening.conversation)
    last = await caller.store.log.read(opening.conversation, after=seq - 1, limit=1, run=opening.run) if seq == opening.after[0] else []
    return b"".join(frame(chunk) for event in last for chunk in event.chunks if chunk.get("transient") is True)


async def _stream(server: Server, caller: Caller, opening: Opening, version: Version) -> Response:
    blobs: Blobs = []
    frames = ChunkFrames(version, opening.step)
    first = frames.replay(opening.chunks, opening.position, blobs)
    first += b"".join(frame({"type": "data-notice", "data": {"text": note}, "transient": True}, "") for note in opening.notes)
    first += await _status(caller, opening)
    await store_blobs(caller.store.blobs, blobs)
    headers = {**CHUNKS, "content-location": f"/api/conversations/{opening.conversation}"}

    async def waiting() -> set[str]:
        return await open_approvals(caller, opening.run)

    if opening.over:
        return Response(first + (frames.leave() if await waiting() else b"") + DONE, headers=headers)

    async def is_over() -> bool:
        run = await server.engine.runs.current(opening.run)
        return run.status in TERMINAL or run.status == "interrupted" or (run.status == "waiting" and bool(await waiting()))

    shared = server.streams.shared("chunks", opening.run, version)
    writer = MessageWriter(
        opening.run, opening.after, frames, store=caller.store.blobs, shared=shared, open_approvals=waiting, is_over=is_over
    )
    seq, index = opening.after
    return EventStream(server, caller, opening.conversation, seq if index == WHOLE else seq - 1, writer, first=first, headers=headers)
