"""Routes that replay answers and compare conversations."""

from __future__ import annotations

from typing import Annotated, Literal

import anyio.to_thread
from fastapi import Query
from starlette.responses import Response

from moot.convert.comparison import compare_conversations
from moot.errors import NotFound
from moot.features.replays.replay import side_of
from moot.server.auth import Reader, Router
from moot.server.credentials import Caller
from moot.server.models import Out, UsageOut
from moot.server.resources import conversation_of
from moot.server.routes.conversations.chat import STREAM, Sdk
from moot.server.state import CurrentServer
from moot.server.streams.frames import DONE, WHOLE, ChunkFrames
from moot.server.streams.positions import ended_chunks, step_at
from moot.server.streams.replay import ReplayStream
from moot.server.streams.response import CHUNKS
from moot.server.streams.view import Blobs, version_of
from moot.server.streams.writers import store_blobs
from moot.types import chunk
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.message import Message


class CallOut(Out):
    """A tool call."""

    name: str
    input: str
    """Beginning of the arguments, as JSON."""
    state: str


class TookOut(Out):
    """Usage, cost and time; null = unknown. Cost is in nano-dollars."""

    usage: UsageOut
    cost: int | None
    ms: int | None


class AnswerOut(TookOut):
    """The answer to a prompt."""

    message: str
    status: Literal["streaming", "finished", "failed", "cancelled", "interrupted"]
    agent: str
    model: str
    text: str
    tools: list[CallOut]


class PromptsOut(Out):
    """One prompt from each conversation; null = the conversation has no matching prompt."""

    a: str | None
    b: str | None


class PairOut(Out):
    """Two matching prompts, one from each conversation, with their answers."""

    prompt: PromptsOut
    a: AnswerOut | None
    b: AnswerOut | None
    same: bool
    diff: list[tuple[Literal[" ", "-", "+"], str]]
    """The answers' texts as marked fragments: ` ` = in both answers, `-` = only in a, `+` = only in b."""


class SideOut(TookOut):
    """One of the two conversations, with totals."""

    id: str
    title: str
    agent: str
    model: str
    last_model: str
    forked_from: str | None
    answers: int
    tools: int


class ComparisonOut(Out):
    """Comparison of two conversations."""

    a: SideOut
    b: SideOut
    same: bool
    pairs: list[PairOut]


router = Router(prefix="/api/conversations/{conversation_id}", tags=["replay"])


@router.get("/replay", response_model=None, response_class=Response, responses=STREAM)
async def replay(
    server: CurrentServer,
    caller: Reader,
    conversation_id: str,
    speed: Annotated[float, Query(ge=0, le=1000, description="Playback speed as a factor; 0 sends everything at once.")] = 1,
    begin: Annotated[int, Query(alias="from", ge=0, le=0xFFFFFFFF, description="`seq` of the first event.")] = 0,
    message: Annotated[
        str | None, Query(max_length=200, description="Message to replay. Defaults to the last answer of the current branch.")
    ] = None,
    sdk: Sdk = None,
) -> Response:
    """Replay an answer with its original timing; long pauses are shortened."""
    found = await conversation_of(caller, conversation_id)
    answer = await _answer(caller, found, message)
    if answer.run is not None:
        run = await caller.store.records.run(answer.run)
        step = await step_at(caller, run.conversation, run.id, (begin - 1, WHOLE)) if begin else "closed"
        return ReplayStream(server, caller, run, ChunkFrames(version_of(sdk), step), begin=begin, speed=speed)
    blobs: Blobs = []
    whole = (*ended_chunks(answer, None), chunk.finish("stop"))
    data = ChunkFrames(version_of(sdk)).replay(whole, (0, 0), blobs)
    await store_blobs(caller.store.blobs, blobs)
    return Response(data + DONE, headers=dict(CHUNKS))


@router.get("/compare", response_model=ComparisonOut)
async def compare(
    caller: Reader,
    conversation_id: str,
    other: Annotated[
        str | None,
        Query(alias="with", max_length=200, description="Conversation to compare with. Defaults to the one that this was forked from."),
    ] = None,
) -> Response:
    """Compare two conversations: matching prompts, their answers, and usage."""
    found = await conversation_of(caller, conversation_id)
    if not other and found.forked_from is None:
        raise NotFound(f"The conversation {found.id!r} is not a fork.", fix="Add the other conversation as `with`.")
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
        raise NotFound(f"The conversation {conversation.id!r} has no answer yet.")
    return last
