"""What becomes of a call that an outside agent asks about. Its process waits, and so the leg waits with it."""

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
"""Stands for the definition of a tool that moot has none of."""
_WITHDRAWN = "the agent does not want to know any more"
_PATIENCE = 2.0


class Holder(Asker, Protocol):
    """The part of a leg that waiting inside of it needs."""

    deadline: Deadline
    asked_outside: Counter[str]
    """How often each call of an outside agent was asked about."""

    def message(self) -> Message: ...


async def decide(leg: Holder, call: OutsideCall) -> OutsideAnswer:
    """As `RunContext.decide`."""
    ruling = await _ruling(leg, call)
    if ruling.action == "deny":
        return await _by_policy(leg, call, ruling, f"not allowed: {ruling.why}")
    if ruling.action == "allow":
        return await _by_policy(leg, call, ruling, "")
    if leg.request.settings.get("unattended") == "deny":
        return await _by_policy(leg, call, ruling, NOBODY)
    approval = await _ask(leg, call, ruling)
    try:
        with leg.deadline.standing_still():
            answer = await _wait(leg, approval)
    except BaseException:
        await _withdraw(leg, approval)
        raise
    return await _told(leg, call, approval, answer)


async def _ruling(leg: Holder, call: OutsideCall) -> Ruling:
    if call.questions is not None:
        return Ruling("ask", "it asks the person")
    runtime, request = leg.runtime, leg.request
    # read again: what was answered to an earlier call of this run may allow this one
    conversation = await runtime.store.conversations.get(request.conversation.id)
    return rule_on(
        runtime.settings.permissions,
        mode_of(runtime.settings, request.settings),
        call,
        conversation.directory,
        grants_of(conversation.settings),
    )


async def _by_policy(leg: Holder, call: OutsideCall, ruling: Ruling, refused: str) -> OutsideAnswer:
    """An answer that nobody was asked for; the log says why."""
    body: JsonObject = {"ruling": ruling.action, "why": ruling.why, "tool": call.name, "toolCallId": call.tool_call}
    if refused == NOBODY:
        body["value"] = {"denied": NOBODY}
    await leg.append(Event("meta", body=body))
    return _refusal(call, refused) if refused else OutsideAnswer(True, call.option("allow_once", "allow_always"), ruling.why)


def _refusal(call: OutsideCall, reason: str, by: str = "policy") -> OutsideAnswer:
    return OutsideAnswer(False, call.option("reject_once", "reject_always"), reason, by)


async def _ask(leg: Holder, call: OutsideCall, ruling: Ruling) -> Approval:
    request, asked = leg.request, leg.asked_outside[call.tool_call]
    leg.asked_outside[call.tool_call] += 1  # before anything is awaited: it may be asked twice at once
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
    # behind the mark the run's time stands still, and readers that want no more than what was said leave
    await leg.append(Event("chunks", (piece,)), Event("meta", body=PARKED), changes=(Ask(approval, hold=True),), sync=True, fold=True)
    return approval


async def _wait(leg: Holder, approval: Approval) -> Answer:
    """The answer; what nobody says in time is a no."""
    left = None if approval.expires_at is None else max(0.0, approval.expires_at / 1000 - leg.runtime.now() / 1_000_000)
    while True:
        with anyio.move_on_after(left):
            async with aclosing(leg.runtime.hub.foreign()) as commits:
                async for _ in commits:
                    if (answer := await _answer(leg, approval)) is not None:
                        return answer
        try:
            await leg.append(Event("meta", body={"expired": approval.id}), changes=(Expire(approval.id, EXPIRED),), sync=True)
        except Busy:  # somebody was just in time, or the clocks differ by a little
            left = 0.05
            continue
        return Answer(False, reason=EXPIRED, answered_by="moot")


async def _answer(leg: Holder, approval: Approval) -> Answer | None:
    stored = await leg.runtime.store.records.approval(approval.id)
    return stored.answer if stored is not None else None


async def _withdraw(leg: Holder, approval: Approval) -> None:
    """Nobody waits for the answer any more."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_PATIENCE):
        try:
            answer = Answer(False, reason=_WITHDRAWN, answered_by="moot")
            change = Expire(approval.id, _WITHDRAWN, early=True)
            await leg.append(_closed(leg, approval, answer), Event("meta", body=LEG), changes=(change,), sync=True)
        except (Busy, FenceLost):
            pass  # it was answered at this moment, for nothing; or the run is somebody else's by now
    leg.runtime.hub.touch(leg.fence.conversation)


def _closed(leg: Holder, approval: Approval, answer: Answer) -> Event:
    """The answer as watchers see it; nothing is shown of it on a call that is over already, which would open it again."""
    event = answered(approval, answer)
    over = any(is_settled(part) for part in leg.message().parts if part.get("toolCallId") == approval.tool_call)
    return event._replace(kind="journal", chunks=()) if over else event


async def _told(leg: Holder, call: OutsideCall, approval: Approval, answer: Answer) -> OutsideAnswer:
    """Shows the answer and uses it up; what it says to the agent."""
    option = _chosen(call, answer)
    digest = answer.digest or approval.digest
    events = (Event("meta", body=LEG), answered(approval, answer))
    if not answer.approved:
        await leg.append(*events, fold=True)
        return OutsideAnswer(False, option, answer.reason or "a person said no", answer.answered_by)
    try:
        await leg.append(*events, changes=(Use(approval.id, digest),), sync=True, fold=True)
    except Busy as error:
        return _refusal(call, error.message, "moot")
    return OutsideAnswer(True, option, answer.reason, answer.answered_by, answer.arguments, answer.value)


def _chosen(call: OutsideCall, answer: Answer) -> Option | None:
    named = next((option for option in call.options if option.id == answer.option and option.allows == answer.approved), None)
    if named is not None:
        return named
    # ours for longer (`conversation`, `always`) are kept by moot: the agent is told of this call alone, and asks again
    return call.option("allow_once", "allow_always") if answer.approved else call.option("reject_once", "reject_always")
