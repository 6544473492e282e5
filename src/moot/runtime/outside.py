"""The part of a leg for outside agents: decisions about their calls, the pausable time limit, and the agent's session.

Calls of moot's own loop that can't start again wait for a person in the same way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import aclosing, contextmanager
from math import inf
from pathlib import Path

import anyio

from moot.convert.history import for_model
from moot.convert.vendor import as_object
from moot.errors import Busy, FenceLost, NotFound
from moot.plugins.registry import attribute
from moot.runtime.approvals.policy import Ruling
from moot.runtime.approvals.requests import EXPIRED, NO_ONE_AVAILABLE, answered, expiry, question_json, replies_of
from moot.runtime.approvals.sandbox import confine, rule_on_outside
from moot.runtime.history import without_unsent
from moot.runtime.journal import LEG, PARKED, Journal
from moot.runtime.runtime import Runtime
from moot.runtime.setup import mode_of
from moot.tools.schema import rule_name_of
from moot.types.agent import Mode
from moot.types.approval import Answer, Approval, OutsideAnswer, OutsideCall, Session, bind
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk, data
from moot.types.event import Event
from moot.types.message import Message, is_settled
from moot.types.run import Run, RunRequest
from moot.types.sandbox import Access, Confinement
from moot.types.store import Ask, Change, Expire, Fence, SetSession, Store, Use
from moot.types.tool import Question, Tool


class Deadline:
    """The time limit of one leg, which does not count waits. Waits may overlap."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None
        self._waits = 0
        self._paused_at = 0.0
        self.waited = 0.0
        """Total duration of all waits, in seconds."""
        self._start = 0.0
        """The time from which the limit counts. Each wait moves it forward."""
        self.seconds = 0.0
        """The limit in seconds; 0 = no limit."""

    @contextmanager
    def limit(self, seconds: float, worked: float = 0.0) -> Generator[anyio.CancelScope]:
        """Cancel the block after `seconds` of work, including the seconds `worked` in earlier legs. 0 means no limit."""
        self._start = anyio.current_time() - worked
        with anyio.CancelScope() as self._scope:
            self.change(seconds)
            yield self._scope
        self._scope = None

    def change(self, seconds: float) -> None:
        """Set another limit. The work done so far counts toward it."""
        self.seconds = seconds
        if self._scope is not None and not self._waits:
            self._scope.deadline = self._start + seconds if seconds else inf

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock during the block."""
        if not self._waits:
            self._paused_at = anyio.current_time()
            if self._scope is not None:
                self._scope.deadline = inf
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                pause = anyio.current_time() - self._paused_at
                self.waited += pause
                self._start += pause
                self.change(self.seconds)


_DEFINITION = b"outside"
"""Placeholder for a tool definition, because moot has none for tools of outside agents."""
_WITHDRAWN = "The agent withdrew the request."
_WITHDRAW_SECONDS = 2.0
WAIT_SECONDS = 3600.0
"""Time limit for answering a question that a running call is waiting for."""


async def decide_call(leg: OutsideLeg, call: OutsideCall) -> OutsideAnswer:
    """Implement `RunContext.decide`."""
    ruling = await _ruling(leg, call)
    if ruling.action == "deny":
        return await _by_policy(leg, call, ruling, f"Not allowed: {ruling.why}.")
    if ruling.action == "allow":
        return await _by_policy(leg, call, ruling, "")
    if leg.request.settings.get("unattended") == "deny":
        return await _by_policy(leg, call, ruling, NO_ONE_AVAILABLE)
    approval = await _ask(leg, call, ruling)
    try:
        with leg.deadline.paused():
            answer = await _notified_wait(leg, approval)
    except BaseException:
        await _withdraw(leg, approval)
        raise
    return await _outside_answer(leg, call, approval, answer)


async def ask_during(
    leg: OutsideLeg, tool: Tool, tool_call: str, title: str, wanted: Sequence[Question]
) -> tuple[tuple[str, ...], ...] | None:
    """Implement `ToolContext.ask_and_wait`."""
    questions = list[Json](question_json(item) for item in wanted)
    call = OutsideCall(tool_call, rule_name_of(tool), title, dumps(questions), frozenset({"read"}), "", questions=questions)
    with anyio.move_on_after(WAIT_SECONDS):
        answer = await decide_call(leg, call)
        if answer.approved:
            return replies_of(answer.value)
        return None if answer.by == "moot" else tuple(() for _ in wanted)
    return None  # the question was withdrawn


async def _ruling(leg: OutsideLeg, call: OutsideCall) -> Ruling:
    if call.questions is not None:
        return Ruling("ask", "the agent asks a question")
    runtime, request = leg.runtime, leg.request
    # read again, because an answer to an earlier call of this run may allow this one
    run = await runtime.store.records.run(request.run.id)
    conversation = await runtime.store.conversations.get(request.conversation.id)
    mode = mode_of(runtime.settings, run.settings, conversation)
    return await rule_on_outside(runtime, request.conversation, call, mode=mode, grants=conversation.grants)


async def _by_policy(leg: OutsideLeg, call: OutsideCall, ruling: Ruling, refused: str) -> OutsideAnswer:
    """Return an answer without asking a person, and record the reason in the log."""
    body: JsonObject = {"ruling": ruling.action, "why": ruling.why, "tool": call.name, "toolCallId": call.tool_call}
    if refused == NO_ONE_AVAILABLE:
        body["value"] = {"denied": NO_ONE_AVAILABLE}
    await leg.append(Event("meta", body=body))
    return _refusal(call, refused) if refused else OutsideAnswer(True, call.option("allow_once", "allow_always"), ruling.why)


def _refusal(call: OutsideCall, reason: str, by: str = "policy") -> OutsideAnswer:
    return OutsideAnswer(False, call.option("reject_once", "reject_always"), reason, by)


async def _ask(leg: OutsideLeg, call: OutsideCall, ruling: Ruling) -> Approval:
    request, id = leg.request, await _new_id(leg, call)
    now = leg.runtime.now() // 1000
    approval = Approval(
        id=id,
        run=request.run.id,
        tool_call=call.tool_call,
        tool=call.name,
        arguments=call.arguments,
        digest=bind(request.run.id, request.conversation.directory, call.name, _DEFINITION, call.arguments),
        asked_at=now,
        expires_at=expiry(leg, now),
        parts=ruling.parts,
        questions=call.questions,
        outside=call,
    )
    piece: Chunk = {"type": "tool-approval-request", "approvalId": id, "toolCallId": call.tool_call}
    if call.questions is not None:
        piece = data("questions", {"approvalId": id, "toolCallId": call.tool_call, "questions": call.questions}, id=id)
    # from this event on, the run's time limit is paused, and readers that don't wait for answers stop
    await leg.append(Event("chunks", (piece,)), Event("meta", body=PARKED), changes=(Ask(approval, hold=True),), sync=True, fold=True)
    return approval


async def _new_id(leg: OutsideLeg, call: OutsideCall) -> str:
    """Return an unused id for a request. An earlier request for the same call, even in an earlier leg, has another id."""
    while True:
        asked = leg.asked_outside[call.tool_call]
        leg.asked_outside[call.tool_call] += 1  # before the first await, because the same call may be requested twice concurrently
        id = f"{leg.request.run.id}/outside:{call.tool_call}{f'#{asked}' if asked else ''}"
        if await leg.runtime.store.records.approval(id) is None:
            return id


async def _notified_wait(leg: OutsideLeg, approval: Approval) -> Answer:
    """Wait for the answer, and run the hooks that notify a person at the same time."""
    if "Notification" not in leg.runtime.settings.hooks:
        return await _wait(leg, approval)
    answers: list[Answer] = []
    async with anyio.create_task_group() as group:
        group.start_soon(attribute("moot.runtime.hooks.events:notify"), leg, approval)
        answers.append(await _wait(leg, approval))
        group.cancel_scope.cancel()
    return answers[0]


async def _wait(leg: OutsideLeg, approval: Approval) -> Answer:
    """Wait for the answer. Return a rejection if it expires."""
    left = None if approval.expires_at is None else max(0.0, approval.expires_at / 1000 - leg.runtime.now() / 1_000_000)
    while True:
        with anyio.move_on_after(left):
            async with aclosing(leg.runtime.hub.foreign()) as commits:
                async for _ in commits:
                    stored = await leg.runtime.store.records.approval(approval.id)
                    if stored is not None and stored.answer is not None:
                        return stored.answer
        try:
            await leg.append(Event("meta", body={"expired": approval.id}), changes=(Expire(approval.id, EXPIRED),), sync=True)
        except Busy:  # someone answered just in time, or the clocks differ slightly
            left = 0.05
            continue
        return Answer(False, reason=EXPIRED, answered_by="moot")


async def _withdraw(leg: OutsideLeg, approval: Approval) -> None:
    """Withdraw the request because the agent is no longer waiting for the answer."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_WITHDRAW_SECONDS):
        try:
            answer = Answer(False, reason=_WITHDRAWN, answered_by="moot")
            change = Expire(approval.id, _WITHDRAWN, early=True)
            event = answered(approval, answer)
            if any(is_settled(part) for part in leg.message().parts if part.get("toolCallId") == approval.tool_call):
                event = event._replace(kind="journal", chunks=())  # chunks would reopen the call
            await leg.append(event, Event("meta", body=LEG), changes=(change,), sync=True)
        except (Busy, FenceLost):
            pass  # it was answered at the same moment, or another owner has claimed the run
    leg.runtime.hub.touch(leg.fence.conversation)


async def _outside_answer(leg: OutsideLeg, call: OutsideCall, approval: Approval, answer: Answer) -> OutsideAnswer:
    """Publish the answer, mark the approval as used, and return the answer for the agent."""
    # moot itself applies lasting answers (`conversation`, `always`); the agent only gets an answer for this call and will ask again
    named = next((option for option in call.options if option.id == answer.option and option.allows == answer.approved), None)
    option = named or call.option(*(("allow_once", "allow_always") if answer.approved else ("reject_once", "reject_always")))
    digest = answer.digest or approval.digest
    events = (Event("meta", body=LEG), answered(approval, answer))
    if not answer.approved:
        await leg.append(*events, fold=True)
        return OutsideAnswer(False, option, answer.reason or "A person rejected the call.", answer.answered_by)
    try:
        await leg.append(*events, changes=(Use(approval.id, digest),), sync=True, fold=True)
    except Busy as error:
        return _refusal(call, error.message, "moot")
    return OutsideAnswer(True, option, answer.reason, answer.answered_by, answer.arguments, answer.value)


_PAGE = 64
_RUNS = 200
"""Maximum number of runs to check, newest first. A session counts as unchanged if no later run among them used it."""
_HOPS = 16
"""Maximum number of nested forks to follow."""


async def session_of(store: Store, request: RunRequest, fence: Fence) -> Session | None:
    """Implement `RunContext.session`."""
    own = await store.records.run(fence.run)
    if own.agent_session_id is not None:  # started in an earlier leg of this run
        return Session(own.agent_session_id, await store.conversations.message(fence.message))
    branch = await without_unsent(store, fence.conversation, await _branch(store, request, fence))
    for index in range(len(branch) - 1, -1, -1):
        message = branch[index]
        if message.role != "assistant" or message.metadata.get("agent_type", request.run.agent_type) != request.run.agent_type:
            continue
        source, run = await _origin(store, message)
        if run is not None and run.agent_session_id is not None and run.agent_type == request.run.agent_type:
            moved = run.conversation != request.conversation.id or await _moved(store, run, request.run)
            return Session(run.agent_session_id, message, tuple(for_model(branch[index + 1 :])), moved)
        if run is None and (session := await _imported_session(store, source, request.run.agent_type)):
            return Session(session, message, tuple(for_model(branch[index + 1 :])), moved=True)  # its agent may be using it
    return None


async def _branch(store: Store, request: RunRequest, fence: Fence) -> list[Message]:
    """Return the messages before the prompt, oldest first, back to at least the newest answer by this agent_type."""
    limit = _PAGE
    while True:
        branch = await store.conversations.branch(fence.conversation, head=fence.message, limit=limit)
        before = [message for message in branch if message.id != fence.message]
        if before and before[-1].role == "user":
            before.pop()
        found = any(message.metadata.get("agent_type") == request.run.agent_type for message in before)
        if found or len(branch) < limit:
            return before
        limit *= 4


async def _imported_session(store: Store, message: Message, agent_type: str) -> str:
    """Return the id of the session that the message was imported from if it belongs to this type of agent, else an empty string."""
    conversation = await store.conversations.get(message.conversation)
    origin = conversation.origin or {}
    is_there = origin.get("placed") is True and conversation.parent is None
    return str(origin.get("source_id", "")) if is_there and origin.get("agent_type") == agent_type else ""


async def _origin(store: Store, message: Message) -> tuple[Message, Run | None]:
    """Return the original of a copied message, and the run that wrote it (None if it was imported)."""
    for _ in range(_HOPS):
        if message.run is not None:
            return message, await store.records.run(message.run)
        origin = as_object(message.metadata.get("source"))
        try:
            message = await store.conversations.message(str(origin.get("message", "")), conversation=str(origin.get("conversation", "")))
        except NotFound:
            break
    return message, None


async def _moved(store: Store, run: Run, own: Run) -> bool:
    """Return whether a later run has used the session, which then contains more than the branch."""
    runs = await store.records.runs(conversation=run.conversation, limit=_RUNS)
    return any(other.no > run.no and other.id != own.id and other.agent_session_id == run.agent_session_id for other in runs)


class OutsideLeg(ABC):
    """The `OutsideContext` part of a leg."""

    runtime: Runtime
    request: RunRequest
    fence: Fence
    index: Journal
    asked: frozenset[str]

    def __init__(self) -> None:
        self.deadline = Deadline()
        self.asked_outside: Counter[str] = Counter()
        """Number of requests for each call of an outside agent."""

    @abstractmethod
    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range: ...

    @abstractmethod
    def message(self) -> Message: ...

    @property
    def mode(self) -> Mode:
        return mode_of(self.runtime.settings, self.request.settings, self.request.conversation)

    async def confinement(self, command: str, directory: Path, access: Access = "sandbox") -> Confinement | None:
        return await confine(self.runtime, self.request.conversation, directory, command=command, access=access)

    @property
    def waited(self) -> int:
        return int(self.deadline.waited * 1_000_000)

    async def decide(self, call: OutsideCall) -> OutsideAnswer:
        return await decide_call(self, call)

    async def session(self) -> Session | None:
        return await session_of(self.runtime.store, self.request, self.fence)

    async def set_session(self, id: str) -> None:
        await self.append(Event("meta", body={"session": id}), changes=(SetSession(id),))
