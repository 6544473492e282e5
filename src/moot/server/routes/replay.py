"""Replays of runs, and comparisons of conversations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Query
from starlette.responses import Response

from moot.convert.comparison import compare_conversations
from moot.errors import NotFound
from moot.features.replay import side_of
from moot.server.auth import Reader, Router
from moot.server.credentials import Caller
from moot.server.models import Out, UsageOut
from moot.server.resources import conversation_of
from moot.server.routes.chat import STREAM, Sdk
from moot.server.state import Here
from moot.server.streams.frames import DONE, ChunkFrames
from moot.server.streams.positions import ended_chunks
from moot.server.streams.replay import ReplayStream
from moot.server.streams.response import CHUNKS
from moot.server.streams.view import Blobs, version_of
from moot.server.streams.writers import keep
from moot.types import chunk
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.message import Message


class CallOut(Out):
    """A tool call."""

    name: str
    input: str
    """The arguments as JSON, the beginning of them."""
    state: str


class TookOut(Out):
    """What something took; null = not known. Money is nano-dollars."""

    usage: UsageOut
    cost: int | None
    ms: int | None


class AnswerOut(TookOut):
    """What a prompt was answered with."""

    message: str
    status: Literal["streaming", "finished", "failed", "cancelled", "interrupted"]
    agent: str
    model: str
    text: str
    tools: list[CallOut]


class PromptsOut(Out):
    """What was asked on either side; null = nothing."""

    a: str | None
    b: str | None


class PairOut(Out):
    """Prompts that belong together, with their answers."""

    prompt: PromptsOut
    a: AnswerOut | None
    b: AnswerOut | None
    same: bool
    diff: list[tuple[Literal[" ", "-", "+"], str]]
    """The texts in pieces: both have it, only a, only b."""


class SideOut(TookOut):
    """One of the two conversations, with its sums."""

    id: str
    title: str
    agent: str
    model: str
    forked_from: str | None
    answers: int
    tools: int


class ComparisonOut(Out):
    """Two conversations side by side."""

    a: SideOut
    b: SideOut
    same: bool
    pairs: list[PairOut]


router = Router(prefix="/api/conversations/{conversation_id}", tags=["replay"])

COMPARISON: dict[int | str, dict[str, Any]] = {200: {"model": ComparisonOut}}


@router.get("/replay", response_model=None, response_class=Response, responses=STREAM)
async def replay(
    here: Here,
    caller: Reader,
    conversation_id: str,
    speed: Annotated[float, Query(ge=0, le=1000, description="How many times as fast; 0 = all at once.")] = 1,
    begin: Annotated[int, Query(alias="from", ge=0, le=0xFFFFFFFF, description="Begin with this event.")] = 0,
    message: Annotated[str | None, Query(max_length=200, description="The answer; without it the last of the shown branch.")] = None,
    sdk: Sdk = None,
) -> Response:
    """Streams an answer again as it came, long silences shortened."""
    found = await conversation_of(caller, conversation_id)
    said = await _answer(caller, found, message)
    if said.run is not None:
        run = await caller.store.records.run(said.run)
        return ReplayStream(here, caller, run, version_of(sdk), begin=begin, speed=speed)
    blobs: Blobs = []
    whole = (*ended_chunks(said, None), chunk.finish("stop"))
    data = ChunkFrames(version_of(sdk)).replay(whole, (0, 0), blobs)
    await keep(caller.store.blobs, blobs)
    return Response(data + DONE, headers=dict(CHUNKS))


@router.get("/compare", response_model=None, responses=COMPARISON)
async def compare(
    caller: Reader,
    conversation_id: str,
    other: Annotated[
        str | None, Query(alias="with", max_length=200, description="The other conversation; without it the one that this was made from.")
    ] = None,
) -> Response:
    """Puts two conversations side by side: prompts that belong together, what each answered, what it took."""
    found = await conversation_of(caller, conversation_id)
    if not other and found.forked_from is None:
        raise NotFound(f"the conversation {found.id!r} was made from no other", fix="say which with `with`")
    second = await conversation_of(caller, other or found.forked_from or "")
    comparison = await anyio.to_thread.run_sync(
        compare_conversations, await side_of(caller.store, found), await side_of(caller.store, second)
    )
    return Response(dumps(comparison), media_type="application/json")


async def _answer(caller: Caller, conversation: Conversation, message: str | None) -> Message:
    if message is not None:
        return await caller.store.conversations.message(message, conversation=conversation.id)
    branch = await caller.store.conversations.branch(conversation.id)
    last = next((one for one in reversed(branch) if one.role == "assistant"), None)
    if last is None:
        raise NotFound(f"the conversation {conversation.id!r} has no answer yet")
    return last
