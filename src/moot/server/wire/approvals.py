"""What is asked of a person, and what they answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from moot.server.wire.base import In, Out, shown_path
from moot.types.approval import Approval
from moot.types.canonical import Json, loads_exact
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
