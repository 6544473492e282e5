"""Routes for the context that a conversation's next model request will contain, and for the summaries in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from moot.errors import NotFound
from moot.features.context import ContextPiece, ContextReport, context_report
from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.models import In, ListOut, Out
from moot.server.resources import check_references, conversation_of
from moot.server.state import CurrentServer
from moot.types.tree import Compaction

_LONGEST = 200_000
"""Maximum number of characters in an edited summary."""


class PieceOut(Out, of=ContextPiece, fields="name tokens share"):
    """A part of the context window."""

    share: float
    """Share of the window, from 0 to 1."""


class ContextOut(Out, of=ContextReport, fields="model window tokens share compact_at messages pieces request notes"):
    """The contents of the next request to the model. Numbers of tokens are estimates."""

    tokens: int
    """Sum of all pieces."""
    share: float
    """Share of the window, from 0 to 1; more if the request doesn't fit."""
    pieces: list[PieceOut]
    request: dict[str, Any] | None = None
    """The body of the request, only if `request` was set."""
    notes: list[str]
    """Warnings about what the prompt refers to, such as files that were not found."""


class CompactionOut(Out, of=Compaction, fields="through summary plan exchange seq at"):
    """A summary that is sent to the model in place of the messages up to `through`."""

    exchange: str | None


class SummaryIn(In):
    """A changed summary."""

    summary: Annotated[str, Field(min_length=1, max_length=_LONGEST, pattern=r"\S")]


router = Router(prefix="/api/conversations/{conversation_id}", tags=["conversations"])


@router.get("/context")
async def get_context(
    server: CurrentServer,
    caller: Reader,
    conversation_id: str,
    request: Annotated[bool, Query(description="Include the exact body of the request.")] = False,
    prompt: Annotated[str, Query(max_length=20_000, description="Prompt to include in the request, as if it had been sent.")] = "",
    references: Annotated[
        bool,
        Query(description="Attach what the prompt refers to after `@`. Requires the scope `tools` and the user `local`."),
    ] = False,
) -> ContextOut:
    """Show what fills the context of the next model request, without sending it."""
    if references:
        check_references(caller)
    found = await conversation_of(caller, conversation_id)
    report = await context_report(server.engine, found, prompt=prompt, references=references)
    return ContextOut.model_validate(report.to_json(request=request))


@router.get("/compactions")
async def list_compactions(caller: Reader, conversation_id: str) -> ListOut[CompactionOut]:
    """List the current summaries of all branches, oldest first. If a branch has several, only the last one is sent to the model."""
    found = await conversation_of(caller, conversation_id)
    return ListOut(data=[CompactionOut.of(one) for one in await caller.store.tree.compactions(found.id)])


@router.patch("/compactions/{message_id}")
async def change_compaction(
    server: CurrentServer, caller: Chatter, conversation_id: str, message_id: str, body: SummaryIn
) -> CompactionOut:
    """Change the summary that replaces the messages up to `message_id`."""
    known = await _compaction(caller, conversation_id, message_id)
    return await _record(server, caller, conversation_id, replace(known, summary=body.summary, exchange=None))


@router.delete("/compactions/{message_id}")
async def withdraw_compaction(server: CurrentServer, caller: Chatter, conversation_id: str, message_id: str) -> CompactionOut:
    """Withdraw a summary, so that an earlier summary or the messages themselves are sent to the model again."""
    known = await _compaction(caller, conversation_id, message_id)
    await _record(server, caller, conversation_id, Compaction(known.through, ""))
    return CompactionOut.of(known)


async def _compaction(caller: Caller, conversation_id: str, through: str) -> Compaction:
    found = await conversation_of(caller, conversation_id)
    message = await caller.store.conversations.message(through, conversation=found.id)
    known = await caller.store.tree.compactions(found.id, among=[message.id])
    if not known:
        raise NotFound(f"No summary ends at the message {message.id!r}.")
    return known[0]


async def _record(server: CurrentServer, caller: Caller, conversation_id: str, compaction: Compaction) -> CompactionOut:
    found = await conversation_of(caller, conversation_id)
    stored = await caller.store.tree.compact(found.id, compaction)
    server.engine.runtime.hub.touch(found.id)
    return CompactionOut.of(stored)
