"""The inbox: what waits for a person's yes or no."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

from fastapi import Query

from moot.errors import Refused, UsageError
from moot.guard.roots import folders
from moot.runtime.explaining import explain
from moot.runtime.looking import Looked, look, object_of
from moot.server.auth import Chatter, Reader, ToolUser
from moot.server.caller import Caller
from moot.server.finding import approval_of, conversation_of, run_of
from moot.server.paging import Cursor, Limit
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.approvals import AnswerIn, ApprovalOut, ApprovalSeen, ExplainedOut, PreviewOut, approval_out
from moot.server.wire.base import ListOut
from moot.types.approval import Answer, Approval
from moot.types.canonical import dumps
from moot.types.conversation import Conversation

router = Router(prefix="/api/approvals", tags=["approvals"])

LONGEST_DIFF = 100_000
"""Characters of a difference that is shown."""


@router.get("")
async def list_approvals(
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200)] = None,
    run: Annotated[str | None, Query(max_length=200)] = None,
    open: Annotated[bool, Query(description="Only those that nobody has answered; false needs `conversation` or `run`.")] = True,
    by_client: Annotated[bool, Query(description="Also calls of a client's own tools, which no person answers.")] = False,
) -> ListOut[ApprovalOut]:
    """Lists what is asked, oldest first."""
    if not open and conversation is None and run is None:
        raise UsageError("all that was ever asked is too much for one list", fix="name a conversation or a run")
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    of_run = None if run is None else (await run_of(caller, run)).id
    asked = await caller.store.records.approvals(run=of_run, conversation=within, open_only=open)
    asked = [each for each in asked if by_client or not each.by_client]
    first = _position(asked, cursor)
    shown = asked[first : first + limit]
    known: dict[str, Conversation] = {}
    data = [approval_out(each, await _conversation(caller, each, known)) for each in shown]
    return ListOut(data=data, next_cursor=shown[-1].id if len(asked) > first + limit else None)


@router.get("/{approval_id:path}")
async def get_approval(caller: Reader, approval_id: str) -> ApprovalSeen:
    """Gives a question, and what the file that the call would write holds now."""
    asked = await approval_of(caller, approval_id)
    conversation = await _conversation(caller, asked, {})
    return ApprovalSeen(**dict(approval_out(asked, conversation)), preview=await _preview(asked, conversation))


@router.post("/{approval_id:path}/explain")
async def explain_approval(here: Here, caller: Chatter, approval_id: str) -> ExplainedOut:
    """Has a model say what the call would do. Its words are untrusted and decide nothing."""
    asked = await approval_of(caller, approval_id)
    return ExplainedOut(text=await explain(here.engine.runtime, asked, asked.arguments))


@router.post("/{approval_id:path}")
async def answer_approval(here: Here, caller: ToolUser, approval_id: str, wanted: AnswerIn) -> ApprovalOut:
    """Answers; the first answer counts, a later one is a conflict (409)."""
    asked = await approval_of(caller, approval_id)
    if wanted.approved and wanted.option == "always" and not caller.may("admin"):
        raise Refused("what is allowed for ever becomes a rule of the configuration: that needs the scope 'admin'", fix="answer once")
    edited = None if wanted.arguments is None else dumps(wanted.arguments)
    answer = Answer(wanted.approved, wanted.option, wanted.reason, value=wanted.value, patterns=tuple(wanted.patterns), arguments=edited)
    await here.engine.runs.answer(asked.id, answer)
    return approval_out(await approval_of(caller, asked.id), await _conversation(caller, asked, {}))


async def _conversation(caller: Caller, asked: Approval, known: dict[str, Conversation]) -> Conversation:
    if asked.run not in known:
        run = await caller.store.records.run(asked.run)
        known[asked.run] = await conversation_of(caller, run.conversation)
    return known[asked.run]


async def _preview(asked: Approval, conversation: Conversation) -> PreviewOut:
    directory = Path(conversation.directory)
    looked = await look(asked.arguments, asked.parts, folders(conversation.allowed_uris) or (directory,), directory)
    return PreviewOut(fact=looked.fact, diff=_diff(looked))


def _diff(looked: Looked) -> str | None:
    value = object_of(looked.arguments)
    content = value.get("content")
    if not looked.fact or not isinstance(content, str):
        return None
    lines = difflib.unified_diff((looked.before or "").splitlines(), content.splitlines(), "now", "then", lineterm="")
    return "\n".join(lines)[:LONGEST_DIFF]


def _position(asked: list[Approval], cursor: str | None) -> int:
    if cursor is None:
        return 0
    at = next((index for index, each in enumerate(asked) if each.id == cursor), None)
    if at is None:
        raise UsageError(f"{cursor!r} is no cursor of this list (any more)", fix="begin at the first page")
    return at + 1
