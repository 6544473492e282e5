"""Approvals: requests that wait for a person's decision, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator, Field, JsonValue

from moot.config.settings import Settings
from moot.errors import Refused, UsageError
from moot.features.approvals import command_of, destructive_in, diff_of, explain, preview_in
from moot.features.family import lineage
from moot.server.auth import Chatter, Reader, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.resources import Cursor, Limit, approval_of, conversation_of, cut, run_of
from moot.server.state import CurrentServer
from moot.tools.catalogue import configures
from moot.types.approval import Answer, Approval, ApprovalPart, Option
from moot.types.canonical import dumps, loads_exact
from moot.types.conversation import Conversation


class AskedPartOut(Out, of=ApprovalPart, fields="text action why patterns always within edits"):
    """Part of a tool call that is decided separately: one command in a shell line, a path or a URL."""


Text = Annotated[str, BeforeValidator(lambda data: data.decode("utf-8", "replace") if isinstance(data, bytes) else data)]
"""A string field that also accepts bytes, which are decoded as UTF-8."""


class GivenOut(Out, of=Answer, fields="approved option reason answered_by value patterns arguments"):
    """The answer to an approval."""

    value: Any
    arguments: Text | None
    """Arguments that replaced the call's own arguments."""


class OptionOut(Out, of=Option, fields="id label kind"):
    """An answer offered by an outside agent; send its `id` as the `option`."""


class ApprovalOut(
    Out,
    of=Approval,
    fields="""id run conversation title directory agent tool_call tool input arguments command asked_at expires_at questions parts lasting
    always edits options editable by_client answer used_at""",
):
    """A request to a person: allow or deny a tool call, or answer a tool's questions."""

    id: str
    conversation: str
    title: str
    directory: ShownPath
    """Working directory of the call."""
    agent: str
    input: Any
    """The arguments as JSON; null if they are not valid JSON."""
    arguments: Text
    """The exact arguments of the call, as text."""
    command: str
    """The shell line that a call of a custom tool runs; empty for other tools."""
    questions: Any
    """Questions of a tool; null for a yes-or-no decision."""
    parts: list[AskedPartOut]
    destructive: list[str]
    """Commands of the call, as in the `text` of `parts`, that can destroy data or change the system."""
    lasting: list[str]
    """The narrowest patterns that together match the call. If empty, the call can only be allowed once."""
    always: bool
    """True if the patterns in `lasting` may be allowed permanently."""
    edits: bool
    """True if the answer may use the option `edits`, which allows all file edits in this conversation."""
    options: list[OptionOut]
    """Options offered by an outside agent, in its order; empty for moot's own agents."""
    editable: bool
    """True if the call's arguments may be replaced."""
    path: list[str]
    """Names of agents, from the one that a person prompted down to the sub-agent that made the request."""
    by_client: bool
    """True for a client's own tool. The client runs it and answers with the output, so no person decides."""
    answer: GivenOut | None
    used_at: int | None


class PreviewOut(Out):
    """Preview of the file change that the call would make."""

    fact: str
    """Description of the change, such as that the file is new; empty for a call that writes no file."""
    diff: str | None
    """Unified diff from the current to the new content; null if there is none to show."""


class ApprovalSeen(ApprovalOut):
    """An approval with a preview of the file change."""

    preview: PreviewOut


class AnswerIn(In):
    """An answer to an approval. Only the first answer counts."""

    approved: bool
    option: Annotated[str, Field(min_length=1, max_length=200)] = "once"
    """Extent of the decision: `once`, `conversation`, `edits` (all file edits in this conversation), `always` (adds a rule to the
    configuration; requires the scope `machine`), or the `id` of an outside agent's option.
    """
    reason: Annotated[str, Field(max_length=10_000)] = ""
    patterns: Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(default_factory=list, max_length=100)]
    """Patterns that `conversation` and `always` allow from now on; empty = the narrowest pattern for each part."""
    arguments: dict[str, JsonValue] | None = None
    """Replacement for the call's arguments, for this call only. For a question with `edits`, an object with that name as the key and the
    changed text.
    """
    value: JsonValue = None
    """Replies to a tool's questions: for each question, a list of option labels or free texts."""


class ExplainedOut(Out):
    """A model's explanation of a call. It is untrusted and does not affect the decision."""

    text: str


def approval_out(approval: Approval, path: Sequence[Conversation], settings: Settings) -> ApprovalOut:
    """Return the response for an approval. `path` lists the conversations from the one a person prompted down to the approval's own."""
    conversation = path[-1]
    try:
        parsed = loads_exact(approval.arguments)
    except ValueError:
        parsed = None
    command = command_of(settings, approval)
    return ApprovalOut.of(
        approval,
        conversation,
        conversation=conversation.id,
        path=[one.agent for one in path],
        input=parsed,
        command=command,
        destructive=destructive_in(approval, command),
        questions=None if approval.by_client else approval.questions,
        editable=approval.questions is None and (approval.outside is None or approval.outside.editable),
    )


def answer_of(body: AnswerIn) -> Answer:
    """Return the answer in a request."""
    edited = None if body.arguments is None else dumps(body.arguments)
    return Answer(body.approved, body.option, body.reason, value=body.value, patterns=tuple(body.patterns), arguments=edited)


router = Router(prefix="/api/approvals", tags=["approvals"])


@router.get("")
async def list_approvals(
    server: CurrentServer,
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
    paths: dict[str, list[Conversation]] = {}
    data = [approval_out(each, await _path(caller, each, paths), server.engine.settings) for each in page.items]
    return ListOut(data=data, next_cursor=page.next_cursor)


@router.get("/{approval_id:path}")
async def get_approval(server: CurrentServer, caller: Reader, approval_id: str) -> ApprovalSeen:
    """Get an approval with a preview of the file the call would write."""
    approval = await approval_of(caller, approval_id)
    path = await _path(caller, approval, {})
    inspected = await preview_in(server.engine.runtime, approval, path[-1].id, approval.arguments)
    return ApprovalSeen.of(
        approval_out(approval, path, server.engine.settings), preview=PreviewOut(fact=inspected.fact, diff=diff_of(inspected))
    )


@router.post("/{approval_id:path}/explain")
async def explain_approval(server: CurrentServer, caller: Chatter, approval_id: str) -> ExplainedOut:
    """Ask a model to explain what the call would do. The explanation is untrusted and does not affect the decision."""
    approval = await approval_of(caller, approval_id)
    return ExplainedOut(text=await explain(server.engine.runtime, approval, approval.arguments))


@router.post("/{approval_id:path}")
async def answer_approval(
    server: CurrentServer, caller: ToolUser, attempt: CurrentAttempt, approval_id: str, body: AnswerIn
) -> ApprovalOut:
    """Answer an approval. The first answer counts; a later one returns 409."""
    approval = await approval_of(caller, approval_id)
    if body.approved and body.option == "always" and not caller.may("machine"):
        raise Refused("Option 'always' adds a rule to the configuration, which requires the 'machine' scope.", fix="Use the option 'once'.")
    if body.approved and approval.outside is None and configures(approval.tool, server.engine.settings) and not caller.may("machine"):
        raise Refused("This call changes moot's configuration, so allowing it requires the 'machine' scope.")
    answer = answer_of(body)
    if not (attempt.repeated and approval.answer is not None and approval.answer.approved == answer.approved):
        await server.engine.runs.answer(approval.id, answer)
    return approval_out(await approval_of(caller, approval.id), await _path(caller, approval, {}), server.engine.settings)


async def _path(caller: Caller, approval: Approval, paths: dict[str, list[Conversation]]) -> list[Conversation]:
    if approval.run not in paths:
        run = await caller.store.records.run(approval.run)
        paths[approval.run] = await lineage(caller.store, await conversation_of(caller, run.conversation))
    return paths[approval.run]
