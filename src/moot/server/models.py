"""Response models shared by several routes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from moot.convert.serialization import conversation_json, node_json, run_json
from moot.engine.locks import Place
from moot.types.agent import Mode
from moot.types.conversation import Conversation
from moot.types.run import OnBusy, Run, RunStatus
from moot.types.tree import Node

Item = TypeVar("Item")


class Out(BaseModel):
    """Base class of responses."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class In(BaseModel):
    """Base class of request bodies. Unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ListOut(Out, Generic[Item]):
    """A page of a list."""

    data: list[Item]
    next_cursor: str | None = None
    """Send as `cursor` to get the next page; null on the last page."""


def shown_path(path: str) -> str:
    """Return the path in a form valid in JSON: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


class PlaceOut(Out):
    """Process in which a run is active."""

    pid: int
    host: str


class RunOut(Out):
    """A run: the processing of one prompt. Times are in milliseconds, money in nano-dollars."""

    id: str
    no: int
    conversation: str
    message: str
    """The assistant message written by the run."""
    agent: str
    model: str
    trigger: Literal["user", "api", "cron", "webhook", "delegate", "channel", "import", "agent"]
    parent_run: str | None
    status: RunStatus
    error: dict[str, Any] | None
    usage: dict[str, Any]
    cost: int | None
    """Null = unknown."""
    created_at: int
    started_at: int | None
    ended_at: int | None
    first_seq: int
    last_seq: int
    result_seq: int | None
    process: PlaceOut | None = None
    """Only for an active run."""


def run_out(run: Run, place: Place | None = None) -> RunOut:
    """Return the response for a run."""
    process = None if place is None else PlaceOut(pid=place.pid, host=place.host)
    return RunOut.model_validate({**run_json(run), "process": process})


Name = Annotated[str, Field(min_length=1, max_length=200)]
PartIn = dict[str, JsonValue]
MOST_PARTS = 1000


class UsageOut(Out):
    """Numbers of tokens; null = unknown."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class GrantOut(Out):
    """Permission granted for the duration of the conversation."""

    tool: str
    match: str
    at: int
    by: str


class ConversationOut(Out):
    """A conversation. Times are in milliseconds, money in nano-dollars."""

    id: str
    no: int
    client_id: str | None
    """Id chosen by the client; routes accept it in place of `id`."""
    title: str
    title_source: Literal["none", "first-line", "model", "user"]
    agent: str
    model: str
    project: str
    directory: str
    status: Literal["queued", "running", "waiting", "interrupted", "finished", "pending", "standby"]
    """Status of its live run; otherwise `finished`, `pending` or `standby`."""
    head: str | None
    """Last message of the current branch."""
    message_count: int
    usage: UsageOut
    cost: int | None
    unpriced_runs: int
    context_usage: float | None
    settings: dict[str, JsonValue]
    grants: list[GrantOut]
    parent: str | None
    """The conversation whose agent started this one."""
    forked_from: str | None
    origin: dict[str, JsonValue] | None
    """Origin of an imported conversation: `{format, version, source_id, path, directory, fidelity, …}`; null if it was created here."""
    created_at: int
    updated_at: int
    archived_at: int | None
    deleted_at: int | None
    last_seq: int | None = None
    """Seq of the last event, for `/events?after=`; null in lists."""


class ConversationIn(In):
    """A conversation to create."""

    client_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    title: Annotated[str, Field(max_length=200)] = ""
    project: Name | None = None
    directory: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Absolute path; requires the scope `tools`. Defaults to the project's root or the server's working directory."""
    agent: Name = "default"
    model: Annotated[str, Field(max_length=200)] = ""


class ConversationChange(In):
    """Fields to change; omitted fields are unchanged."""

    title: Annotated[str, Field(max_length=200)] | None = None
    archived: bool | None = None
    agent: Name | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    """Empty = the agent's own model."""
    project: Name | None = None
    settings: dict[str, JsonValue] | None = None
    """New settings, which replace all others except grants."""
    head: Name | None = None
    """Id of a message whose branch becomes the current one."""


class MessageOut(Out):
    """A message in the format of the AI SDK's UIMessage, with its position and status."""

    id: str
    client_id: str | None
    """Id chosen by the client; routes accept it in place of `id`."""
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, Any]]
    metadata: dict[str, Any]
    status: Literal["streaming", "finished", "failed", "cancelled", "interrupted"]
    parent: str | None
    run: str | None
    created_at: int


class NodeOut(Out):
    """A message and its position in the tree."""

    no: int
    id: str
    parent: str | None
    role: Literal["system", "user", "assistant"]
    status: Literal["streaming", "finished", "failed", "cancelled", "interrupted"]
    line: str
    """Start of its text."""
    created_at: int
    run: str | None
    shown: bool
    deleted: bool


class TreeOut(ListOut[NodeOut]):
    """All messages of a conversation, in the order they were stored."""

    conversation: str
    head: str | None


class PartsIn(In):
    """Parts of a message."""

    parts: Annotated[list[PartIn], Field(min_length=1, max_length=MOST_PARTS)]


class PromptIn(In):
    """A prompt; the answer is streamed or read through other routes."""

    text: Annotated[str, Field(min_length=1)] | None = None
    """Shorthand for a single text part."""
    parts: Annotated[list[PartIn], Field(default_factory=list, max_length=MOST_PARTS)]
    """Without text and parts, the last prompt or the message `answers` is answered."""
    client_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    edits: str | None = None
    """Id of a user message that this prompt replaces, as a new branch."""
    answers: str | None = None
    """Id of a message to answer; an answer is retried."""
    agent: Name | None = None
    model: Name | None = None
    mode: Mode | None = None
    """`edits` and `auto` require the scope `tools`."""
    effort: Literal["none", "low", "medium", "high", "max"] | None = None
    max_steps: Annotated[int, Field(ge=1, le=1000)] | None = None
    on_busy: OnBusy = "reject"


class SubmittedOut(Out):
    """Result of submitting a prompt."""

    conversation: str
    run: RunOut
    """The new run; if steered, the live run that will receive the prompt."""
    seq: int
    """Seq of the last event before the run: stream `/events` after it."""
    steered: bool


class ForkIn(In):
    """The branch to copy."""

    message: str | None = None
    """Last message of the branch. Defaults to the current branch."""
    title: Annotated[str, Field(max_length=200)] = ""


class ContinueIn(In):
    """The branch to continue."""

    message: str | None = None
    """Last message of the branch. Defaults to the current branch."""


class GoingOut(Out):
    """The conversation in which to continue."""

    conversation: ConversationOut
    message: str | None
    """Id of the given message in that conversation."""


class HeadIn(In):
    """The branch to switch to."""

    message: str
    exactly: bool = False
    """End the branch at this message; otherwise at its newest descendant."""


class QueuedOut(RunOut):
    """A queued run with its prompt."""

    prompt: MessageOut | None


class EventOut(Out):
    """An event of the log."""

    seq: int
    at: int
    """In µs."""
    run: str | None
    kind: str
    exchange: str | None
    chunks: list[dict[str, Any]]
    phase: str | None = None
    key: str | None = None
    dir: Literal["in", "out"] | None = None
    """Direction of raw data: `out` was sent by moot to a vendor's program."""
    raw: str | None = None
    raw_base64: str | None = None
    """Sent in place of `raw` if the bytes are not UTF-8."""


def conversation_out(conversation: Conversation, live: Mapping[str, RunStatus], last_seq: int | None = None) -> ConversationOut:
    """Return the response for a conversation."""
    directory = shown_path(conversation.directory)
    return ConversationOut.model_validate({**conversation_json(conversation, live), "directory": directory, "last_seq": last_seq})


def node_out(node: Node) -> NodeOut:
    """Return the response for a node of the tree."""
    return NodeOut.model_validate(node_json(node))
