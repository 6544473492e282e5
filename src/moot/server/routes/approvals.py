"""Approvals: the questions that wait for a person, and their answers."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field, JsonValue

from moot.errors import Refused, UsageError
from moot.features.approvals import CallPreview, explain, object_of, preview_call
from moot.guard.roots import folders
from moot.server.auth import Chatter, Reader, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.models import In, ListOut, Out, shown_path
from moot.server.resources import Cursor, Limit, approval_of, conversation_of, run_of
from moot.server.state import Here
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, dumps, loads_exact
from moot.types.conversation import Conversation


class AskedPartOut(Out):
    """One thing that is decided about by itself: a command of a shell line, a path, an address."""

    text: str
    action: Literal["allow", "ask", "deny"]
    why: str
    patterns: list[str]
    """What could be allowed from now on that covers it, narrowest first; empty = only this once."""
    always: bool
    within: bool


class GivenOut(Out):
    """What was answered."""

    approved: bool
    option: str
    reason: str
    answered_by: str
    value: Any
    patterns: list[str]
    arguments: str | None
    """What the person put in the place of the call's arguments."""


class OptionOut(Out):
    """One of the answers that an outside agent takes: give its `id` as the `option`."""

    id: str
    label: str
    """The agent's own words."""
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class ApprovalOut(Out):
    """A question to a person: may this call run, or what a tool asks."""

    id: str
    run: str
    conversation: str
    title: str
    directory: str
    """Where the call would run."""
    agent: str
    tool_call: str
    tool: str
    input: Any
    """The arguments, read."""
    arguments: str
    """The exact bytes that would be run, as text."""
    asked_at: int
    expires_at: int | None
    questions: Any
    """What a tool asks; null for a plain yes or no."""
    parts: list[AskedPartOut]
    lasting: list[str]
    """The narrowest patterns that together cover it; empty = it can be allowed only once."""
    always: bool
    """Whether those may be allowed for ever."""
    options: list[OptionOut]
    """What an outside agent takes, in its order; empty for calls of moot's own loop."""
    editable: bool
    """Whether other arguments may be put in the place of the call's."""
    by_client: bool
    """The client's own tool: the program that brought it answers with an output, and no person does."""
    answer: GivenOut | None
    used_at: int | None


class PreviewOut(Out):
    """What the file that the call would write holds now."""

    fact: str
    """New, or what it replaces; empty for a call that writes no file."""
    diff: str | None
    """From what is there to what would be, in the unified form; null when there is none to show."""


class ApprovalSeen(ApprovalOut):
    """The same with what its file holds now."""

    preview: PreviewOut


class AnswerIn(In):
    """An answer; the first one counts."""

    approved: bool
    option: Annotated[str, Field(min_length=1, max_length=200)] = "once"
    """once · conversation · always (needs the scope `admin`: it becomes a rule of the configuration) · an outside agent's own."""
    reason: Annotated[str, Field(max_length=10_000)] = ""
    patterns: Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(default_factory=list, max_length=100)]
    """What to allow from now on; empty = the narrowest for each part."""
    arguments: dict[str, JsonValue] | None = None
    """Put in the place of the call's own; allowed for this once."""
    value: JsonValue = None
    """The replies to a tool's questions: a list of lists of labels or texts."""


class ExplainedOut(Out):
    """What a model says that a call would do; its words are untrusted and decide nothing."""

    text: str


def approval_out(asked: Approval, conversation: Conversation) -> ApprovalOut:
    """An approval as it is sent."""
    given = asked.answer
    answer = None
    if given is not None:
        answer = GivenOut(
            approved=given.approved,
            option=given.option,
            reason=given.reason,
            answered_by=given.answered_by,
            value=given.value,
            patterns=list(given.patterns),
            arguments=None if given.arguments is None else given.arguments.decode("utf-8", "replace"),
        )
    return ApprovalOut(
        id=asked.id,
        run=asked.run,
        conversation=conversation.id,
        title=conversation.title,
        directory=shown_path(conversation.directory),
        agent=conversation.agent,
        tool_call=asked.tool_call,
        tool=asked.tool,
        input=_read(asked.arguments),
        arguments=asked.arguments.decode("utf-8", "replace"),
        asked_at=asked.asked_at,
        expires_at=asked.expires_at,
        questions=None if asked.by_client else asked.questions,
        parts=[AskedPartOut.model_validate(part.to_json()) for part in asked.parts],
        lasting=list(asked.lasting),
        always=asked.always,
        options=[OptionOut(id=option.id, label=option.label, kind=option.kind) for option in asked.options],
        editable=asked.questions is None and (asked.outside is None or asked.outside.editable),
        by_client=asked.by_client,
        answer=answer,
        used_at=asked.used_at,
    )


def _read(arguments: bytes) -> Json:
    try:
        return loads_exact(arguments)
    except ValueError:
        return None


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
    looked = await preview_call(asked.arguments, asked.parts, folders(conversation.allowed_uris) or (directory,), directory)
    return PreviewOut(fact=looked.fact, diff=_diff(looked))


def _diff(looked: CallPreview) -> str | None:
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
