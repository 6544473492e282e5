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
    """Something that we send."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class In(BaseModel):
    """Something that we are sent: a key that nobody knows is a mistake, and said to be one."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ListOut(Out, Generic[Item]):
    """A page of a list."""

    data: list[Item]
    next_cursor: str | None = None
    """Send it as `cursor` to get what follows; null at the end."""


def shown_path(path: str) -> str:
    """A path as JSON can hold it: what of it is no UTF-8 becomes U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


class PlaceOut(Out):
    """Where a run goes on."""

    pid: int
    host: str


class RunOut(Out):
    """A run: one prompt to its end. Times are milliseconds, money nano-dollars."""

    id: str
    no: int
    conversation: str
    message: str
    """The assistant message that it writes."""
    agent: str
    model: str
    trigger: Literal["user", "api", "cron", "webhook", "delegate", "channel", "import", "agent"]
    parent_run: str | None
    status: RunStatus
    error: dict[str, Any] | None
    usage: dict[str, Any]
    cost: int | None
    """Null = not known."""
    created_at: int
    started_at: int | None
    ended_at: int | None
    first_seq: int
    last_seq: int
    result_seq: int | None
    process: PlaceOut | None = None
    """Of a run that goes on."""


def run_out(run: Run, place: Place | None = None) -> RunOut:
    """A run as it is sent."""
    process = None if place is None else PlaceOut(pid=place.pid, host=place.host)
    return RunOut.model_validate({**run_json(run), "process": process})


Name = Annotated[str, Field(min_length=1, max_length=200)]
PartIn = dict[str, JsonValue]
MOST_PARTS = 1000


class UsageOut(Out):
    """Tokens; null = not known."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class GrantOut(Out):
    """What was allowed for as long as the conversation lasts."""

    tool: str
    match: str
    at: int
    by: str


class ConversationOut(Out):
    """A conversation. Times are milliseconds, money nano-dollars."""

    id: str
    no: int
    client_id: str | None
    """The id that a client gave it; routes take it in the place of ours."""
    title: str
    title_source: Literal["none", "first-line", "model", "user"]
    agent: str
    model: str
    project: str
    directory: str
    status: Literal["queued", "running", "waiting", "interrupted", "finished", "pending", "standby"]
    """Of its live run; without one `finished`, `pending` or `standby`."""
    head: str | None
    """The message that the shown branch ends with."""
    message_count: int
    usage: UsageOut
    cost: int | None
    unpriced_runs: int
    context_usage: float | None
    settings: dict[str, JsonValue]
    grants: list[GrantOut]
    parent: str | None
    """The conversation whose agent began this one."""
    forked_from: str | None
    origin: dict[str, JsonValue] | None
    """Where it was brought in from: `{format, version, source_id, path, directory, fidelity, …}`; null = it began here."""
    created_at: int
    updated_at: int
    archived_at: int | None
    deleted_at: int | None
    last_seq: int | None = None
    """Its last event, for `/events?after=`; null in lists."""


class ConversationIn(In):
    """A conversation to make."""

    client_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    title: Annotated[str, Field(max_length=200)] = ""
    project: Name | None = None
    directory: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Absolute; needs the scope `tools`. Without it the project's root, else where the server was started."""
    agent: Name = "default"
    model: Annotated[str, Field(max_length=200)] = ""


class ConversationChange(In):
    """What is to be changed; what is left out stays."""

    title: Annotated[str, Field(max_length=200)] | None = None
    archived: bool | None = None
    agent: Name | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    """Empty = the agent's own."""
    project: Name | None = None
    settings: dict[str, JsonValue] | None = None
    """Replaces all of them, but not what was allowed in it."""
    head: Name | None = None
    """A message: its branch is shown."""


class MessageOut(Out):
    """A message in the shape of the AI SDK's UIMessage, with its place and state."""

    id: str
    client_id: str | None
    """The id that a client gave it; routes take it in the place of ours."""
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, Any]]
    metadata: dict[str, Any]
    status: Literal["streaming", "finished", "failed", "cancelled", "interrupted"]
    parent: str | None
    run: str | None
    created_at: int


class NodeOut(Out):
    """A message in its place in the tree."""

    no: int
    id: str
    parent: str | None
    role: Literal["system", "user", "assistant"]
    status: Literal["streaming", "finished", "failed", "cancelled", "interrupted"]
    line: str
    """The beginning of what it says."""
    created_at: int
    run: str | None
    shown: bool
    deleted: bool


class TreeOut(ListOut[NodeOut]):
    """Every message of a conversation, in the order they were stored."""

    conversation: str
    head: str | None


class PartsIn(In):
    """What a message is to say."""

    parts: Annotated[list[PartIn], Field(min_length=1, max_length=MOST_PARTS)]


class PromptIn(In):
    """Something to say; the answer is watched or read elsewhere."""

    text: Annotated[str, Field(min_length=1)] | None = None
    """The short way to one text part."""
    parts: Annotated[list[PartIn], Field(default_factory=list, max_length=MOST_PARTS)]
    """Without text and parts the last prompt is answered, or `answers`."""
    client_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    edits: str | None = None
    """A prompt that this one takes the place of, as a new branch."""
    answers: str | None = None
    """A message to answer; an answer is made once more."""
    agent: Name | None = None
    model: Name | None = None
    mode: Mode | None = None
    """`edits` and `auto` need the scope `tools`."""
    effort: Literal["none", "low", "medium", "high", "max"] | None = None
    max_steps: Annotated[int, Field(ge=1, le=1000)] | None = None
    on_busy: OnBusy = "reject"


class SubmittedOut(Out):
    """What became of a prompt."""

    conversation: str
    run: RunOut
    """The new run; when steered, the live one that will see the prompt."""
    seq: int
    """The last event before the run's own: watch `/events` after it."""
    steered: bool


class ForkIn(In):
    """Where to copy from."""

    message: str | None = None
    """The branch that ends with it; the shown one without it."""
    title: Annotated[str, Field(max_length=200)] = ""


class ContinueIn(In):
    """Where to go on from."""

    message: str | None = None
    """The branch that ends with it; the shown one without it."""


class GoingOut(Out):
    """Where a conversation is gone on with."""

    conversation: ConversationOut
    message: str | None
    """What the message that was named is there."""


class HeadIn(In):
    """Which branch is shown."""

    message: str
    exactly: bool = False
    """It ends there; else with the newest message behind it."""


class QueuedOut(RunOut):
    """A run that waits for its turn, with what was said."""

    prompt: MessageOut | None


class EventOut(Out):
    """An event of the log."""

    seq: int
    at: int
    """µs"""
    run: str | None
    kind: str
    exchange: str | None
    chunks: list[dict[str, Any]]
    phase: str | None = None
    key: str | None = None
    dir: Literal["in", "out"] | None = None
    """Of raw: `out` is what moot said to a vendor's program."""
    raw: str | None = None
    raw_base64: str | None = None
    """In the place of `raw` when the bytes are no UTF-8."""


def conversation_out(conversation: Conversation, live: Mapping[str, RunStatus], last_seq: int | None = None) -> ConversationOut:
    """A conversation as it is sent."""
    directory = shown_path(conversation.directory)
    return ConversationOut.model_validate({**conversation_json(conversation, live), "directory": directory, "last_seq": last_seq})


def node_out(node: Node) -> NodeOut:
    """A place in the tree as it is sent."""
    return NodeOut.model_validate(node_json(node))
