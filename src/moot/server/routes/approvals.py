"""Approvals: the questions that wait for a person, and their answers."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator, Field, JsonValue

from moot.errors import Refused, UsageError
from moot.features.approvals import explain, object_of, preview_call
from moot.guard.roots import folders
from moot.server.auth import Chatter, Reader, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.resources import Cursor, Limit, approval_of, conversation_of, cut, run_of
from moot.server.state import CurrentServer
from moot.types.approval import Answer, Approval, ApprovalPart, Option
from moot.types.canonical import dumps, loads_exact
from moot.types.conversation import Conversation


class AskedPartOut(Out, of=ApprovalPart, fields="text action why patterns always within"):
    """One part of a call that is decided separately: a command of a shell line, a path, an address."""


Text = Annotated[str, BeforeValidator(lambda data: data.decode("utf-8", "replace") if isinstance(data, bytes) else data)]
"""Bytes as text."""


class GivenOut(Out, of=Answer, fields="approved option reason answered_by value patterns arguments"):
    """A given answer."""

    value: Any
    arguments: Text | None
    """Arguments that replaced those of the call."""


class OptionOut(Out, of=Option, fields="id label kind"):
    """An answer offered by an outside agent; send its `id` as the `option`."""


class ApprovalOut(
    Out,
    of=Approval,
    fields="""id run conversation title directory agent tool_call tool input arguments asked_at expires_at questions parts lasting always
    options editable by_client answer used_at""",
):
    """A request for a decision: whether a call may run, or the questions of a tool."""

    id: str
    conversation: str
    title: str
    directory: ShownPath
    """Working directory of the call."""
    agent: str
    input: Any
    """The parsed arguments."""
    arguments: Text
    """The exact bytes to be run, as text."""
    questions: Any
    """Questions of a tool; null for a yes-or-no decision."""
    parts: list[AskedPartOut]
    lasting: list[str]
    """The narrowest patterns that together cover the call; empty = it can only be allowed once."""
    always: bool
    """True if those patterns may be allowed permanently."""
    options: list[OptionOut]
    """Options offered by an outside agent, in its order; empty for calls of moot's own loop."""
    editable: bool
    """True if the call's arguments may be replaced."""
    by_client: bool
    """True for a tool of the client: the program that provided it answers with an output, not a person."""
    answer: GivenOut | None
    used_at: int | None


class PreviewOut(Out):
    """Current content of the file that the call would write."""

    fact: str
    """Description of the change: that the file is new, or what is replaced; empty for a call that writes no file."""
    diff: str | None
    """Unified diff from the current to the new content; null if there is none to show."""


class ApprovalSeen(ApprovalOut):
    """An approval with a preview of its file."""

    preview: PreviewOut


class AnswerIn(In):
    """An answer; only the first one counts."""

    approved: bool
    option: Annotated[str, Field(min_length=1, max_length=200)] = "once"
    """once · conversation · always (adds a rule to the configuration; requires the `admin` scope) · an outside agent's option."""
    reason: Annotated[str, Field(max_length=10_000)] = ""
    patterns: Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(default_factory=list, max_length=100)]
    """Patterns to allow from now on; empty = the narrowest for each part."""
    arguments: dict[str, JsonValue] | None = None
    """Replacement for the call's arguments, for this call only."""
    value: JsonValue = None
    """Replies to a tool's questions: a list of lists of labels or texts."""


class ExplainedOut(Out):
    """A model's explanation of a call. It is untrusted and decides nothing."""

    text: str


def approval_out(approval: Approval, conversation: Conversation) -> ApprovalOut:
    """Return the response for an approval."""
    try:
        parsed = loads_exact(approval.arguments)
    except ValueError:
        parsed = None
    return ApprovalOut.of(
        approval,
        conversation,
        conversation=conversation.id,
        input=parsed,
        questions=None if approval.by_client else approval.questions,
        editable=approval.questions is None and (approval.outside is None or approval.outside.editable),
    )


router = Router(prefix="/api/approvals", tags=["approvals"])

LONGEST_DIFF = 100_000
"""Maximum length of a diff, in characters."""


@router.get("")
async def list_approvals(
    caller: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    conversation: Annotated[str | None, Query(max_length=200)] = None,
    run: Annotated[str | None, Query(max_length=200)] = None,
    open: Annotated[bool, Query(description="Only unanswered approvals. `false` requires `conversation` or `run`.")] = True,
    by_client: Annotated[bool, Query(description="Include calls to the client's own tools, which the client answers.")] = False,
) -> ListOut[ApprovalOut]:
    """List approvals, oldest first."""
    if not open and conversation is None and run is None:
        raise UsageError("Answered approvals can only be listed for one conversation or run.", fix="Add `conversation` or `run`.")
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    of_run = None if run is None else (await run_of(caller, run)).id
    approval = await caller.store.records.approvals(run=of_run, conversation=within, open_only=open)
    approval = [each for each in approval if by_client or not each.by_client]
    page = cut(approval, limit, cursor, lambda each: each.id)
    conversations: dict[str, Conversation] = {}
    data = [approval_out(each, await _conversation(caller, each, conversations)) for each in page.items]
    return ListOut(data=data, next_cursor=page.next_cursor)


@router.get("/{approval_id:path}")
async def get_approval(caller: Reader, approval_id: str) -> ApprovalSeen:
    """Get an approval with a preview of the file the call would write."""
    approval = await approval_of(caller, approval_id)
    conversation = await _conversation(caller, approval, {})
    directory = Path(conversation.directory)
    inspected = await preview_call(approval.arguments, approval.parts, folders(conversation.allowed_uris) or (directory,), directory)
    diff, content = None, object_of(inspected.arguments).get("content")
    if inspected.fact and isinstance(content, str):
        lines = difflib.unified_diff((inspected.before or "").splitlines(), content.splitlines(), "now", "then", lineterm="")
        diff = "\n".join(lines)[:LONGEST_DIFF]
    return ApprovalSeen.of(approval_out(approval, conversation), preview=PreviewOut(fact=inspected.fact, diff=diff))


@router.post("/{approval_id:path}/explain")
async def explain_approval(server: CurrentServer, caller: Chatter, approval_id: str) -> ExplainedOut:
    """Ask a model to explain what the call would do. The explanation is untrusted and does not affect the decision."""
    approval = await approval_of(caller, approval_id)
    return ExplainedOut(text=await explain(server.engine.runtime, approval, approval.arguments))


@router.post("/{approval_id:path}")
async def answer_approval(server: CurrentServer, caller: ToolUser, approval_id: str, body: AnswerIn) -> ApprovalOut:
    """Answer an approval. The first answer counts; a later one returns 409."""
    approval = await approval_of(caller, approval_id)
    if body.approved and body.option == "always" and not caller.may("admin"):
        raise Refused("Option 'always' adds a rule to the configuration, which requires the 'admin' scope.", fix="Use the option 'once'.")
    edited = None if body.arguments is None else dumps(body.arguments)
    answer = Answer(body.approved, body.option, body.reason, value=body.value, patterns=tuple(body.patterns), arguments=edited)
    await server.engine.runs.answer(approval.id, answer)
    return approval_out(await approval_of(caller, approval.id), await _conversation(caller, approval, {}))


async def _conversation(caller: Caller, approval: Approval, conversations: dict[str, Conversation]) -> Conversation:
    if approval.run not in conversations:
        run = await caller.store.records.run(approval.run)
        conversations[approval.run] = await conversation_of(caller, run.conversation)
    return conversations[approval.run]
