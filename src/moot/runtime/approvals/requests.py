"""Requests to a person: approvals of calls and questions of tools. A request is stored before it is shown. Each approval is used once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from moot.convert.vendor import as_list, as_object
from moot.errors import Busy
from moot.plugins.registry import attribute
from moot.runtime.approvals.policy import Ruled, Ruling
from moot.runtime.approvals.sandbox import SCRIPT, rule_on_call
from moot.runtime.journal import Journal
from moot.runtime.runtime import Runtime
from moot.runtime.setup import mode_of
from moot.tools.schema import access_of, as_called, definition_digest, rule_name_of, subject_of
from moot.types import chunk
from moot.types.agent import Mode
from moot.types.approval import BY_CLIENT, Answer, Approval, ApprovalPart, bind
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.context import Parked, Verdict
from moot.types.crash import point
from moot.types.event import Event
from moot.types.hooks import HookAnswer
from moot.types.run import RunRequest
from moot.types.sandbox import Access
from moot.types.store import Ask, Change, Expire, Fence
from moot.types.tool import Question, Tool

NO_ONE_AVAILABLE = "this needs a person's approval, but no one is available to give it"

EXPIRED = "No one answered in time."


class Asker(Protocol):
    """The part of a leg that is needed to ask a person."""

    runtime: Runtime
    request: RunRequest
    fence: Fence
    index: Journal
    asked: frozenset[str]
    """Ids of all approvals that the run had requested when the leg started."""

    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range: ...


async def allow(
    leg: Asker, tool: Tool, key: str, tool_call: str, arguments: bytes, subject: str, hook: HookAnswer | None = None
) -> Verdict:
    """Implement `RunContext.allow`: apply the policy, then a stored answer, or else ask a person and raise Parked."""
    request = leg.request
    given = loads_exact(arguments)
    ruling = await _ruled(leg, tool, given, subject, hook)
    if ruling.action == "deny":
        return Verdict(False, f"Not allowed: {ruling.why}.")
    if ruling.action == "allow" and f"{request.run.id}/{key}" not in leg.asked:
        return Verdict(True)
    if ruling.action == "ask" and request.settings.get("unattended") == "deny":
        return Verdict(False, NO_ONE_AVAILABLE, nobody=True)
    approval = _request(leg, tool, key, tool_call, arguments)
    approval = dataclasses.replace(approval, expires_at=expiry(leg, approval.asked_at), parts=ruling.parts)
    asked = 0
    while (stored := await leg.runtime.store.records.approval(approval.id)) is not None and _is_spent(stored, approval.asked_at):
        if tool.idempotent and stored.used_at is not None and stored.digest == approval.digest:
            return _repeated(stored)
        asked += 1
        approval = dataclasses.replace(approval, id=f"{request.run.id}/{key}#{asked}")
    if stored is not None and stored.digest != approval.digest:
        return Verdict(False, "The approval was given for other arguments. Ask again.")
    if ruling.action == "allow" and (stored is None or not await _allowed_since(leg, stored)):
        return Verdict(True)
    answer = await ask(leg, approval)
    if not answer.approved:
        return Verdict(False, answer.reason or "A person rejected the call.", asked=True)
    if answer.arguments is not None:
        return await _edited(leg, tool, approval.id, answer.arguments)
    return Verdict(True, answer.reason, approval.id, approval.digest)


def _repeated(approval: Approval) -> Verdict:
    """Return the verdict on an approved call that starts again because it waited or was interrupted. Its tool is idempotent."""
    return Verdict(True, arguments=approval.answer.arguments if approval.answer is not None else None)


async def _ruled(leg: Asker, tool: Tool, given: Json, subject: str, hook: HookAnswer | None) -> Ruling:
    ruling = await _with_hook(leg, as_called(tool, given), subject, access_of(given), hook)
    if tool.name != SCRIPT:
        return ruling
    found: Ruling = await attribute("moot.runtime.approvals.scripts:with_setting")(leg, ruling, given, subject, hook)
    return found


async def _with_hook(leg: Asker, tool: Ruled, subject: str, access: Access, hook: HookAnswer | None) -> Ruling:
    """Return the policy's ruling as changed by a hook. Denials, ask rules and protected paths still apply."""
    ruling = await rule_on(leg.runtime, leg.request, tool, subject, access)
    if hook is None or ruling.action == "deny":
        return ruling
    if hook.permission == "ask" and ruling.action == "allow":
        why = f"a hook asks: {hook.reason}" if hook.reason else "a hook asks"
        return Ruling("ask", why, (ApprovalPart(subject, "ask", why),))
    if hook.permission == "allow" and ruling.action == "ask":
        freed = await rule_on(leg.runtime, leg.request, tool, subject, access, mode="auto")
        return freed if freed.action == "allow" else ruling
    return ruling


async def _allowed_since(leg: Asker, stored: Approval) -> bool:
    """Approve a request whose call is now allowed, unless a person has answered it already. Return False if it has expired."""
    if stored.answer is None:
        try:
            await leg.runtime.store.records.answer(stored.id, Answer(True, reason="allowed in the meantime", answered_by="moot"))
        except Busy:  # answered meanwhile, or expired
            return (await leg.runtime.store.records.approval(stored.id) or stored).answer is not None
    return True


async def rule_on(runtime: Runtime, request: RunRequest, tool: Ruled, subject: str, access: Access, mode: Mode | None = None) -> Ruling:
    """Return the policy's ruling on a call, considering the conversation's grants and the sandbox. `mode` replaces the run's mode."""
    conversation = request.conversation
    mode = mode or mode_of(runtime.settings, request.settings, conversation)
    return await rule_on_call(runtime, conversation, tool, subject, access, mode=mode, grants=conversation.grants)


async def _edited(leg: Asker, tool: Tool, approval: str, arguments: bytes) -> Verdict:
    """Return the verdict on a call edited by the person. Denied calls stay denied."""
    given = loads_exact(arguments)
    ruling = await rule_on(leg.runtime, leg.request, as_called(tool, given), subject_of(tool, given), access_of(given))
    if ruling.action == "deny":
        return Verdict(False, f"The edited call is not allowed: {ruling.why}.")
    request = leg.request
    return Verdict(True, "", approval, _digest(request, tool, arguments), arguments=arguments)


def _digest(request: RunRequest, tool: Tool, arguments: bytes) -> bytes:
    return bind(request.run.id, request.conversation.directory, rule_name_of(tool), definition_digest(tool), arguments)


def _request(leg: Asker, tool: Tool, key: str, tool_call: str, arguments: bytes) -> Approval:
    run, now = leg.request.run.id, leg.runtime.clock.now() // 1000
    return Approval(f"{run}/{key}", run, tool_call, rule_name_of(tool), arguments, _digest(leg.request, tool, arguments), now)


def _is_spent(approval: Approval, now: int) -> bool:
    """Return whether an approval can't be used any more, because a call with unknown outcome has used it or because it has expired."""
    if approval.answer is None or not approval.answer.approved:
        return False
    return approval.used_at is not None or (approval.expires_at is not None and approval.expires_at <= now)


async def question(leg: Asker, tool: Tool, key: str, tool_call: str, wanted: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the replies to a tool's questions. Raise Parked if they are still pending."""
    if leg.request.settings.get("unattended") == "deny":
        return tuple(() for _ in wanted)
    questions = [question_json(item) for item in wanted]
    request = _request(leg, tool, f"{key}/questions", tool_call, dumps(questions))
    answer = await ask(leg, dataclasses.replace(request, expires_at=expiry(leg, request.asked_at), questions=questions))
    replies = replies_of(answer.value)
    changed = as_object(loads_exact(answer.arguments)) if answer.arguments is not None else {}
    return tuple(
        (*reply, str(changed.get(item.edits, item.text))) if item.edits and reply else reply
        for item, reply in zip(wanted, replies, strict=False)
    )


async def client_output(leg: Asker, tool: Tool, key: str, tool_call: str, arguments: JsonObject) -> JsonObject:
    """Implement `ToolContext.client_output`. The client only needs the call, so no chunk is added. The request never expires."""
    request = _request(leg, tool, f"{key}/output", tool_call, dumps(arguments))
    answer = await ask(leg, dataclasses.replace(request, questions=BY_CLIENT))
    if answer.approved and isinstance(answer.value, dict):
        return answer.value
    return {"error": answer.reason or "The client returned no output."}


async def ask(leg: Asker, approval: Approval) -> Answer:
    """Implement `RunContext.ask`."""
    stored = await leg.runtime.store.records.approval(approval.id)
    if stored is not None:
        if stored.answer is not None:
            if stored.questions is None and f"answer:{stored.id}" not in leg.index.ends:
                await _show(leg, stored, stored.answer)
            return stored.answer
        if stored.expires_at is not None and stored.expires_at <= leg.runtime.clock.now() // 1000:
            return await _expired(leg, stored)
        await _notify(leg, stored)  # has no effect if its hooks have ended; moot may have been killed before they did
        raise Parked
    if approval.by_client:
        event = Event("meta", body={"awaits": approval.id})
    elif approval.questions is None:
        piece: chunk.Chunk = {"type": "tool-approval-request", "approvalId": approval.id, "toolCallId": approval.tool_call}
        event = Event("chunks", (piece,))
    else:
        value: Json = {"approvalId": approval.id, "toolCallId": approval.tool_call, "questions": approval.questions}
        event = Event("chunks", (chunk.data("questions", value, id=approval.id),))
    await leg.append(event, changes=(Ask(approval),), sync=True, fold=True)
    point("approval.asked")
    await _notify(leg, approval)
    raise Parked


async def _notify(leg: Asker, approval: Approval) -> None:
    if "Notification" in leg.runtime.settings.hooks and not approval.by_client:
        await attribute("moot.runtime.hooks.events:notify")(leg, approval)


async def _expired(leg: Asker, approval: Approval) -> Answer:
    """Store and return a rejection, because the approval has expired."""
    answer = Answer(False, reason=EXPIRED, answered_by="moot")
    try:
        await _show(leg, approval, answer, Expire(approval.id, EXPIRED))
    except Busy:  # someone answered just in time
        raise Parked from None
    return answer


async def _show(leg: Asker, approval: Approval, answer: Answer, *changes: Change) -> None:
    await leg.append(answered(approval, answer), changes=changes, sync=bool(changes))
    point("approval.shown")


def answered(approval: Approval, answer: Answer) -> Event:
    """Return the answer as an event for watchers. Replies to questions are shown in the output of the call that asked."""
    key = f"answer:{approval.id}"
    body: JsonObject = {"option": answer.option, "by": answer.answered_by}
    if approval.questions is not None:
        return Event("journal", phase="end", key=key, body=body)
    if answer.arguments is not None:
        body["input"] = loads_exact(answer.arguments)
    piece: chunk.Chunk = {"type": "tool-approval-response", "approvalId": approval.id, "approved": answer.approved}
    if answer.reason:
        piece["reason"] = answer.reason
    return Event("chunks", (piece,), phase="end", key=key, body=body)


_SECONDS = 300.0
"""Default time after which a request expires that no terminal shows."""


def expiry(leg: Asker, asked_at: int) -> int | None:
    """Return the time in ms at which a request made at `asked_at` (ms) expires, or None if it never does.

    By default, only requests of prompts from elsewhere than a terminal (`attended`) expire.
    """
    timeout = leg.runtime.settings.permissions.timeout
    if timeout is None:
        timeout = 0.0 if leg.request.settings.get("attended") is True else _SECONDS
    return int(asked_at + timeout * 1000) if timeout else None


def replies_of(value: Json) -> tuple[tuple[str, ...], ...]:
    """Return the replies to questions, one tuple of texts for each."""
    return tuple(tuple(map(str, reply)) if isinstance(reply, list) else (str(reply),) for reply in as_list(value))


def question_json(item: Question) -> Json:
    """Return a question in the form in which `Approval.questions` contains it."""
    return {
        "header": item.header,
        "text": item.text,
        "options": [{"label": option.label, "description": option.description} for option in item.options],
        "multiple": item.multiple,
        **({"edits": item.edits} if item.edits else {}),
    }
