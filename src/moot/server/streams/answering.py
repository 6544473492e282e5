"""Answers that come inside a message: to approvals, and the outputs of the client's own tools. Only the first to each call counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from moot.engine import Engine
from moot.errors import Busy, NotFound, UsageError
from moot.runtime.journal import PARKED
from moot.server.caller import Caller
from moot.server.problems import Problem
from moot.server.streams.frames import WHOLE
from moot.server.streams.resume import Opening
from moot.types.approval import Answer, Approval
from moot.types.canonical import JsonObject
from moot.types.chunk import start
from moot.types.event import Event
from moot.types.message import Message
from moot.types.part import Part, is_tool

__all__ = ["answers_in", "continued"]

_PAGE = 2048


def answers_in(parts: Sequence[JsonObject]) -> dict[str, Answer]:
    """The answers that the calls of a client's message hold: by the approval's id, outputs by the call's.

    What it says of a call's input is not looked at: ours is what is run.
    """
    return dict(answer for part in parts if is_tool(part) and (answer := _answer(part)) is not None)


def _answer(part: Part) -> tuple[str, Answer] | None:
    state, approval, call = part.get("state"), part.get("approval"), str(part.get("toolCallId"))
    if state == "approval-responded" and isinstance(approval, dict) and isinstance(yes := approval.get("approved"), bool):
        return str(approval.get("id")), Answer(yes, reason=str(approval.get("reason") or ""))
    if state == "output-available":
        return call, Answer(True, value={"output": part.get("output")}, answered_by="client")
    if state == "output-error":
        return call, Answer(True, value={"error": str(part.get("errorText") or "it failed")}, answered_by="client")
    return None


async def continued(engine: Engine, caller: Caller, message: Message, answers: dict[str, Answer]) -> Opening:
    """Gives the answers, and goes on with the message: `start` with its id, then what comes. Sent again, it is the same stream.

    Raises UsageError when the message answers nothing that its run has asked, Problem (403).
    """
    assert message.run is not None
    asked = await caller.store.records.approvals(run=message.run, open_only=False)
    meant = [(approval, answer) for approval in asked if (answer := _meant(approval, answers)) is not None]
    if not meant:
        raise UsageError("the message answers nothing that was asked", fix="send a user's message, or answers to its pending calls")
    if any(answer.approved and not approval.by_client for approval, answer in meant) and not caller.may("tools"):
        raise Problem(403, "to approve a call needs a token with the scope 'tools'", fix="moot tokens create NAME --scopes tools")
    after = await caller.store.log.last_seq(message.conversation)
    given = False
    for approval, answer in meant:
        if approval.answer is None:
            with suppress(Busy, NotFound):  # somebody was faster, or it has expired: what they said counts
                await engine.runs.answer(approval.id, answer, wake=False)
                given = True
    if given:
        await engine.runs.wake(message.run)
    else:
        after = await _parked(caller, message, {approval.id for approval, _ in meant})
    return Opening(message.conversation, message.run, (after, WHOLE), (start(message.id),))


def _meant(approval: Approval, answers: dict[str, Answer]) -> Answer | None:
    """A yes or no for an approval, an output for a client's tool; questions are answered elsewhere."""
    answer = answers.get(approval.tool_call if approval.by_client else approval.id)
    if answer is None or (approval.questions is not None and not approval.by_client):
        return None
    return answer if (answer.value is not None) == approval.by_client else None


async def _parked(caller: Caller, message: Message, asked: set[str]) -> int:
    """The seq of the wait that those answers ended: a client that sends them again has seen what stands before it."""
    after, found, seen = message.first_seq - 1, 0, False
    while page := await caller.store.log.read(message.conversation, after=after, limit=_PAGE, run=message.run):
        for event in page:
            seen = seen or _asks(event, asked)
            if seen and event.kind == "meta" and event.body == PARKED:
                found, seen = event.seq, False
        after = page[-1].seq
    return found


def _asks(event: Event, asked: set[str]) -> bool:
    body = event.body if isinstance(event.body, dict) else {}
    requests = (chunk for chunk in event.chunks if chunk["type"] == "tool-approval-request")
    return body.get("awaits") in asked or any(request.get("approvalId") in asked for request in requests)
