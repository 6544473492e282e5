"""The AI SDK's transport: a prompt and its stream, the stream again, stop, and the messages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header
from starlette.responses import Response

from moot.convert.unfold import Version
from moot.errors import NotFound
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.state import Here, Server
from moot.server.streams.chat import ChatIn, Stopped, gone_on_with, open_turn
from moot.server.streams.frames import DONE, WHOLE, ChunkFrames
from moot.server.streams.positions import Opening, shown, waits
from moot.server.streams.response import CHUNKS, EventStream
from moot.server.streams.view import Blobs, message_view, version_of
from moot.server.streams.writers import MessageScribe, keep
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.run import OPEN, TERMINAL

router = Router(prefix="/api/chat", tags=["chat"])

Sdk = Annotated[str | None, Header(alias="x-ai-sdk-version", description="7 for the chunks of version 7; else those of version 6")]
LastEventId = Annotated[str | None, Header(alias="last-event-id", description="the id of the last frame that was read, `seq.k`")]

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A stream of chunks: see docs/streams.md.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
MESSAGES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "UIMessages: `id`, `role`, `parts`, `metadata`.",
        "content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}},
    }
}
NOTHING: dict[int | str, dict[str, Any]] = {204: {"description": "Nothing to go on with."}}


@router.post("", response_model=None, response_class=Response, responses=STREAM)
async def chat_turn(here: Here, caller: Chatter, wanted: ChatIn, sdk: Sdk = None) -> Response:
    """Says something, edits, answers again or answers what was asked; streams the message that comes of it."""
    async with here.streams.turn(caller.owner_id, wanted.id):
        opening = await open_turn(here.engine, caller, wanted)
    return await _stream(here, caller, opening, version_of(sdk))


@router.get("/{chat_id}/stream", response_model=None, response_class=Response, responses=STREAM | NOTHING)
async def chat_stream(here: Here, caller: Reader, chat_id: str, sdk: Sdk = None, last_event_id: LastEventId = None) -> Response:
    """Streams the live message again: all of it, or with `Last-Event-ID` what comes after that frame."""
    conversation = await gone_on_with(caller, chat_id)
    opening = None if conversation is None else await shown(here.engine, caller, conversation, last_event_id)
    if opening is None:
        return Response(status_code=204)
    return await _stream(here, caller, opening, version_of(sdk))


@router.post("/{chat_id}/stop")
async def stop_chat(here: Here, caller: Chatter, chat_id: str) -> Stopped:
    """Stops what runs or waits in the conversation, and what stands behind it."""
    conversation = await _conversation(caller, chat_id)
    runs = await caller.store.records.runs(conversation=conversation.id, statuses=OPEN)
    for run in runs:  # the newest first: what waits its turn must not get it
        await here.engine.runs.cancel(run.id)
    return Stopped(stopped=[run.id for run in reversed(runs)])


@router.get("/{chat_id}/messages", response_model=None, response_class=Response, responses=MESSAGES)
async def chat_messages(caller: Reader, chat_id: str, sdk: Sdk = None) -> Response:
    """Gives the shown branch as UIMessages, oldest first, all of them."""
    conversation = await _conversation(caller, chat_id)
    branch = await caller.store.conversations.branch(conversation.id)
    blobs: Blobs = []
    shown = [message_view(message, version_of(sdk), blobs) for message in branch]
    await keep(caller.store.blobs, blobs)
    return Response(dumps(shown), media_type="application/json")


async def _conversation(caller: Caller, chat_id: str) -> Conversation:
    found = await gone_on_with(caller, chat_id)
    if found is None:
        raise NotFound(f"no conversation with the id {chat_id!r}")
    return found


async def _stream(server: Server, caller: Caller, opening: Opening, version: Version) -> Response:
    blobs: Blobs = []
    first = ChunkFrames(version).replay(opening.chunks, opening.position, blobs)
    await keep(caller.store.blobs, blobs)
    headers = {**CHUNKS, "content-location": f"/api/conversations/{opening.conversation}"}
    if opening.over:
        return Response(first + DONE, headers=headers)

    async def waiting() -> bool:
        return await waits(caller, await caller.store.records.run(opening.run))

    async def over() -> bool:
        run = await server.engine.runs.current(opening.run)
        return run.status in TERMINAL or run.status == "interrupted" or (run.status == "waiting" and await waits(caller, run))

    shared = server.streams.shared("chunks", opening.run, version)
    scribe = MessageScribe(opening.run, opening.after, version, store=caller.store.blobs, shared=shared, waits=waiting, over=over)
    seq, index = opening.after
    return EventStream(server, caller, opening.conversation, seq if index == WHOLE else seq - 1, scribe, first=first, headers=headers)
