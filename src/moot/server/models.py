"""Response models shared by several routes."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from moot.convert.serialization import conversation_json
from moot.engine.locks import Place
from moot.types.agent import Mode
from moot.types.approval import Grant
from moot.types.conversation import Conversation, ListChoices
from moot.types.message import Message
from moot.types.run import OnBusy, Run, RunStatus
from moot.types.tree import Node

Item = TypeVar("Item")


ID_BYTES = 128


def _opaque(id: str) -> str:
    if not id or not id.isprintable() or len(id.encode("utf-8", "replace")) > ID_BYTES or id in (".", ".."):
        raise ValueError(f"An id must have 1 to {ID_BYTES} bytes, all printable, and must not be '.' or '..'.")
    return id


ClientId = Annotated[str, AfterValidator(_opaque)]
"""An opaque id chosen by a client."""


class Out(BaseModel):
    """Base class of responses.

    `class TokenOut(Out, of=Token, fields="id name")` has these fields of the dataclass `Token`, in this order, with their types and
    descriptions. A field declared in the class itself replaces the dataclass's field of the same name, or is added at the end.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, from_attributes=True)

    def __init_subclass__(cls, of: type[Any] | None = None, fields: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if of is not None:
            own = dict(cls.__annotations__)
            # only these types: others may not exist at runtime
            wanted = {name: of.__annotations__[name] for name in fields.split() if name not in own}
            types = get_type_hints(type(of.__name__, (), {"__annotations__": wanted, "__module__": of.__module__}))
            docs = _docstrings(of)
            taken = {name: Annotated[types[name], Field(description=docs.get(name))] for name in wanted}
            cls.__annotations__ = {**{name: (own | taken)[name] for name in fields.split()}, **own}

    @classmethod
    def of(cls, *sources: object, **fields: Any) -> Self:
        """Return a response. Each field not in `fields` is read from the first source that has such an attribute."""
        names = [name for name in cls.model_fields if name not in fields]
        found = {name: getattr(source, name) for source in reversed(sources) for name in names if hasattr(source, name)}
        return cls.model_validate({**found, **fields})


def _docstrings(kind: type[Any]) -> dict[str, str]:
    """Return the docstrings of a dataclass's fields, with `null` for None. Parsing the source with `ast` would slow down the start."""
    try:
        source = inspect.getsource(sys.modules[kind.__module__])
    except OSError:  # a compiled module without its source
        return {}
    body = source.partition(f"\nclass {kind.__name__}:\n")[2].partition("\n\n\n")[0]
    found = re.findall(r'^    (\w+): [^\n]*\n    """(.+?)"""', body, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.replace("None", "null").replace("()", "[]").split()) for name, text in found}


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


ShownPath = Annotated[str, BeforeValidator(shown_path)]
"""A path in a form valid in JSON."""


class PlaceOut(Out, of=Place, fields="pid host"):
    """The process that executes a run."""


class RunOut(
    Out,
    of=Run,
    fields="""id no conversation message agent model trigger parent_run status awaits wake_at error usage cost created_at started_at
    ended_at first_seq last_seq result_seq""",
):
    """A run: the processing of one prompt. Times are in milliseconds, money in nano-dollars."""

    error: dict[str, Any] | None
    usage: dict[str, Any]
    process: PlaceOut | None = None
    """The process that executes the run; null if it is not active."""


def run_out(run: Run, place: Place | None = None) -> RunOut:
    """Return the response for a run."""
    return RunOut.of(run, error=run.error and run.error.to_json(), usage=run.usage.to_json(), process=place)


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
    cache_write_1h: int | None = None
    web_searches: int | None = None


class GrantOut(Out, of=Grant, fields="tool match at by"):
    """Permission granted for the duration of the conversation."""


class ConversationOut(
    Out,
    of=Conversation,
    fields="""id no client_id title title_source agent model last_model project directory host status head message_count usage cost
    unpriced_runs context_usage settings grants tags parent forked_from origin created_at updated_at pinned_at archived_at deleted_at
    expires_at""",
):
    """A conversation. Times are in milliseconds, money in nano-dollars."""

    client_id: str | None
    """Id chosen by the client; routes accept it in place of `id`."""
    project: str
    directory: ShownPath
    host: str
    """Name of the machine that it was imported from with `moot sync`; empty = this machine."""
    status: Literal["queued", "running", "waiting", "interrupted", "finished", "pending", "standby"]
    """Status of the live run. If no run is live: `finished` for a finished task, otherwise `pending` for a sub-agent and `standby` for
    others.
    """
    usage: UsageOut
    settings: dict[str, JsonValue]
    grants: list[GrantOut]
    tags: list[str]
    parent: str | None
    """The conversation whose agent started this one."""
    origin: dict[str, JsonValue] | None
    """Origin of an imported conversation: `{format, version, source_id, path, directory, fidelity, …}`; null if it was created here."""
    last_seq: int | None = None
    """Sequence number of the last event, for `/events?after=`; null in lists."""
    resume: str | None = None
    """Shell command that continues the conversation, if possible in its original program; null for sub-agents and in lists."""


class ConversationIn(In):
    """A conversation to create."""

    client_id: ClientId | None = None
    title: Annotated[str, Field(max_length=200)] = ""
    project: Name | None = None
    directory: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Absolute path; requires the `tools` scope. Defaults to the project's root or the server's working directory."""
    agent: Name = "default"
    model: Annotated[str, Field(max_length=200)] = ""
    temporary: bool = False
    """True = a conversation that is not listed or searched, and is permanently deleted 24 hours after its last prompt."""


class ConversationChange(In):
    """Fields to change; omitted fields are unchanged."""

    title: Annotated[str, Field(max_length=200)] | None = None
    archived: bool | None = None
    temporary: Literal[False] | None = None
    """False = keep a temporary conversation."""
    pinned: bool | None = None
    """True = list the conversation before others."""
    tags: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=200)] | None = None
    """All tags, which replace the previous ones: at most 20 words of lowercase letters, digits, `-` and `_`, 30 characters each."""
    agent: Name | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    """Model to use; empty = the agent's own model."""
    project: Name | None = None
    settings: dict[str, JsonValue] | None = None
    """Settings to change: mode, model, effort, detail, agent, tools, allowed_uris, network, skills. Null removes one;
    others are unchanged.
    """
    head: Name | None = None
    """Id of a message whose branch becomes the current one."""


class MessageOut(Out, of=Message, fields="id client_id role parts metadata status parent run created_at"):
    """A message in the format of the AI SDK's UIMessage, with its parent message, run and status."""

    client_id: str | None
    """Id chosen by the client; routes accept it in place of `id`."""
    parts: list[dict[str, Any]]
    metadata: dict[str, Any]


class NodeOut(Out, of=Node, fields="no id parent role status line created_at run shown deleted"):
    """A message and its position in the tree."""

    created_at: int


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
    """Content of the prompt. If `text` and `parts` are missing, the run answers the message `answers`, by default the last prompt."""
    client_id: ClientId | None = None
    edits: str | None = None
    """Id of a user message that this prompt replaces, as a new branch."""
    answers: str | None = None
    """Id of a user message to answer, or of an answer to retry."""
    agent: Name | None = None
    model: Name | None = None
    mode: Mode | None = None
    """`edits` and `auto` require the scope `tools`."""
    effort: Literal["none", "low", "medium", "high", "max"] | None = None
    max_steps: Annotated[int, Field(ge=1, le=1000)] | None = None
    on_busy: OnBusy = "reject"
    references: bool = False
    """Attach what the last text refers to with `@`, such as files in the conversation's folder. Requires the scope `tools` and the user
    `local`. By default, texts are sent unchanged.
    """


class SubmittedOut(Out):
    """Result of submitting a prompt."""

    conversation: str
    run: RunOut
    """The new run; if `steered` is true, the live run that receives the prompt."""
    seq: int
    """Sequence number of the last event before the run. Pass it as `after` to stream the run's events."""
    steered: bool
    notes: list[str] = Field(default_factory=list[str])
    """Warnings about what the prompt refers to, such as files that were not found."""


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
    """The conversation to continue in."""

    conversation: ConversationOut
    message: str | None
    """Id of the requested message in that conversation."""


class HeadIn(In):
    """The branch to switch to."""

    message: str
    exactly: bool = False
    """True = the branch ends at this message. False = it ends at the newest descendant of the message."""


class QueuedOut(RunOut):
    """A queued run with its prompt."""

    prompt: MessageOut | None


class QueueOut(ListOut[QueuedOut]):
    """Prompts that no model has read yet: queued runs, and messages for the live run."""

    steered: list[MessageOut]
    """Messages that the live run receives at its next step, oldest first."""


class EventOut(Out):
    """An event of a conversation's log."""

    seq: int
    at: int
    """Time in microseconds."""
    run: str | None
    kind: str
    exchange: str | None
    chunks: list[dict[str, Any]]
    phase: str | None = None
    key: str | None = None
    dir: Literal["in", "out"] | None = None
    """Direction of the raw data: `out` = sent by moot to a vendor's program."""
    raw: str | None = None
    raw_base64: str | None = None
    """The raw data in base64; replaces `raw` if the bytes are not UTF-8."""


class ListChoicesOut(Out, of=ListChoices, fields="agents models hosts tags calls latest_call"):
    """Values by which the list of conversations can be filtered."""

    agents: list[str]
    models: list[str]
    hosts: list[str]
    tags: list[str]


def conversation_out(
    conversation: Conversation, live: Mapping[str, RunStatus], last_seq: int | None = None, resume: str | None = None
) -> ConversationOut:
    """Return the response for a conversation."""
    return ConversationOut.model_validate({**conversation_json(conversation, live), "last_seq": last_seq, "resume": resume})
