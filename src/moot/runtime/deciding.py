"""Decisions about calls of outside agents. The agent's process waits for the answer, so the leg keeps running."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import Protocol

import anyio

from moot.errors import Busy, FenceLost
from moot.runtime.approvals import Ruling, rule_on
from moot.runtime.asking import EXPIRED, NOBODY, Asker, answered, expiry
from moot.runtime.deadline import Deadline
from moot.runtime.journal import LEG, PARKED
from moot.runtime.setup import mode_of
from moot.types.approval import Answer, Approval, bind, grants_of
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk, data
from moot.types.event import Event
from moot.types.message import Message
from moot.types.outside import Option, OutsideAnswer, OutsideCall
from moot.types.part import is_settled
from moot.types.store import Ask, Expire, Use

__all__ = ["decide"]

_DEFINITION = b"outside"
"""Used instead of a tool definition, because moot has none for outside tools."""
_WITHDRAWN = "the agent withdrew the request"
_WITHDRAW_SECONDS = 2.0


class Holder(Asker, Protocol):
    """The part of a leg that waiting inside it needs."""

    deadline: Deadline
    asked_outside: Counter[str]
    """Number of requests for each call of an outside agent."""

    def message(self) -> Message: ...


async def decide(leg: Holder, call: OutsideCall) -> OutsideAnswer:
    """Implement `RunContext.decide`."""
    ruling = await _ruling(leg, call)
    if ruling.action == "deny":
        return await _by_policy(leg, call, ruling, f"not allowed: {ruling.why}")
    if ruling.action == "allow":
        return await _by_policy(leg, call, ruling, "")
    if leg.request.settings.get("unattended") == "deny":
        return await _by_policy(leg, call, ruling, NOBODY)
    approval = await _ask(leg, call, ruling)
    try:
        with leg.deadline.paused():
            answer = await _wait(leg, approval)
    except BaseException:
        await _withdraw(leg, approval)
        raise
    return await _outside_answer(leg, call, approval, answer)


async def _ruling(leg: Holder, call: OutsideCall) -> Ruling:
    if call.questions is not None:
        return Ruling("ask", "the agent asks a question")
    runtime, request = leg.runtime, leg.request
    # read again, because an answer to an earlier call of this run may allow this one
    conversation = await runtime.store.conversations.get(request.conversation.id)
    return rule_on(
        runtime.settings.permissions,
        mode_of(runtime.settings, request.settings),
        call,
        conversation.directory,
        grants_of(conversation.settings),
    )


async def _by_policy(leg: Holder, call: OutsideCall, ruling: Ruling, refused: str) -> OutsideAnswer:
    """Return an answer given without asking a person. The log records the reason."""
    body: JsonObject = {"ruling": ruling.action, "why": ruling.why, "tool": call.name, "toolCallId": call.tool_call}
    if refused == NOBODY:
        body["value"] = {"denied": NOBODY}
    await leg.append(Event("meta", body=body))
    return _refusal(call, refused) if refused else OutsideAnswer(True, call.option("allow_once", "allow_always"), ruling.why)


def _refusal(call: OutsideCall, reason: str, by: str = "policy") -> OutsideAnswer:
    return OutsideAnswer(False, call.option("reject_once", "reject_always"), reason, by)


async def _ask(leg: Holder, call: OutsideCall, ruling: Ruling) -> Approval:
    request, asked = leg.request, leg.asked_outside[call.tool_call]
    leg.asked_outside[call.tool_call] += 1  # before the first await, because the same call may be requested twice concurrently
    id = f"{request.run.id}/outside:{call.tool_call}{f'#{asked}' if asked else ''}"
    approval = Approval(
        id=id,
        run=request.run.id,
        tool_call=call.tool_call,
        tool=call.name,
        arguments=call.arguments,
        digest=bind(request.run.id, request.conversation.directory, call.name, _DEFINITION, call.arguments),
        asked_at=leg.runtime.now() // 1000,
        expires_at=expiry(leg),
        parts=ruling.parts,
        questions=call.questions,
        outside=call,
    )
    piece: Chunk = {"type": "tool-approval-request", "approvalId": id, "toolCallId": call.tool_call}
    if call.questions is not None:
        piece = data("questions", {"approvalId": id, "toolCallId": call.tool_call, "questions": call.questions}, id=id)
    # after this mark the run's clock is paused, and readers that don't wait for answers stop
    await leg.append(Event("chunks", (piece,)), Event("meta", body=PARKED), changes=(Ask(approval, hold=True),), sync=True, fold=True)
    return approval


async def _wait(leg: Holder, approval: Approval) -> Answer:
    """Wait for the answer. Return a rejection if it expires."""
    left = None if approval.expires_at is None else max(0.0, approval.expires_at / 1000 - leg.runtime.now() / 1_000_000)
    while True:
        with anyio.move_on_after(left):
            async with aclosing(leg.runtime.hub.foreign()) as commits:
                async for _ in commits:
                    if (answer := await _answer(leg, approval)) is not None:
                        return answer
        try:
            await leg.append(Event("meta", body={"expired": approval.id}), changes=(Expire(approval.id, EXPIRED),), sync=True)
        except Busy:  # someone answered just in time, or the clocks differ slightly
            left = 0.05
            continue
        return Answer(False, reason=EXPIRED, answered_by="moot")


async def _answer(leg: Holder, approval: Approval) -> Answer | None:
    stored = await leg.runtime.store.records.approval(approval.id)
    return stored.answer if stored is not None else None


async def _withdraw(leg: Holder, approval: Approval) -> None:
    """Expire the approval because no one waits for the answer any more."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_WITHDRAW_SECONDS):
        try:
            answer = Answer(False, reason=_WITHDRAWN, answered_by="moot")
            change = Expire(approval.id, _WITHDRAWN, early=True)
            await leg.append(_closed(leg, approval, answer), Event("meta", body=LEG), changes=(change,), sync=True)
        except (Busy, FenceLost):
            pass  # it was answered at the same moment, or another owner has taken the run
    leg.runtime.hub.touch(leg.fence.conversation)


def _closed(leg: Holder, approval: Approval, answer: Answer) -> Event:
    """Return the answer as an event for watchers, without chunks if the call is already settled, which they would reopen."""
    event = answered(approval, answer)
    over = any(is_settled(part) for part in leg.message().parts if part.get("toolCallId") == approval.tool_call)
    return event._replace(kind="journal", chunks=()) if over else event


async def _outside_answer(leg: Holder, call: OutsideCall, approval: Approval, answer: Answer) -> OutsideAnswer:
    """Show the answer, mark the approval as used, and return the answer for the agent."""
    option = _chosen(call, answer)
    digest = answer.digest or approval.digest
    events = (Event("meta", body=LEG), answered(approval, answer))
    if not answer.approved:
        await leg.append(*events, fold=True)
        return OutsideAnswer(False, option, answer.reason or "rejected by a person", answer.answered_by)
    try:
        await leg.append(*events, changes=(Use(approval.id, digest),), sync=True, fold=True)
    except Busy as error:
        return _refusal(call, error.message, "moot")
    return OutsideAnswer(True, option, answer.reason, answer.answered_by, answer.arguments, answer.value)


def _chosen(call: OutsideCall, answer: Answer) -> Option | None:
    named = next((option for option in call.options if option.id == answer.option and option.allows == answer.approved), None)
    if named is not None:
        return named
    # moot itself applies lasting answers (`conversation`, `always`); the agent only gets an answer for this call and will ask again
    return call.option("allow_once", "allow_always") if answer.approved else call.option("reject_once", "reject_always")
