"""Runs: the execution of one prompt to its end. A run can be cancelled, billed and resumed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from moot.types.agent import Agent, McpServer, Mode
from moot.types.approval import Answer
from moot.types.canonical import JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.cron import Due
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.message import Part
from moot.types.task import TaskDue
from moot.types.token import LOCAL_USER
from moot.types.usage import Usage

RunStatus: TypeAlias = Literal["queued", "running", "waiting", "interrupted", "finished", "failed", "cancelled"]
TERMINAL: frozenset[RunStatus] = frozenset({"finished", "failed", "cancelled"})
STARTED: frozenset[RunStatus] = frozenset({"running", "waiting", "interrupted"})
"""States that at most one run of a conversation can be in."""
OPEN: frozenset[RunStatus] = frozenset({*STARTED, "queued"})
CLAIMABLE: frozenset[RunStatus] = frozenset({"waiting", "interrupted", "queued"})
OWNED: frozenset[RunStatus] = frozenset({"running", "queued", "waiting"})
"""States in which a run may have an owner: a process that is working on the run, waiting for its turn, or keeping its agent running."""

Awaits: TypeAlias = Literal["person", "client", "run", "time"]
"""Cause of a run's wait: a person's answer, the client's output of its own tool, runs that it started, or a time. For a run that is waiting
for several of these, it is the first of them in this order."""
GOES_ON: frozenset[Awaits] = frozenset({"run", "time"})
"""Values of `Run.awaits` that mean that the run continues without a person or client."""

Trigger: TypeAlias = Literal["user", "api", "cron", "task", "webhook", "delegate", "channel", "import", "agent"]
OnCrash: TypeAlias = Literal["resume", "ask"]
OnBusy: TypeAlias = Literal["reject", "queue", "steer", "interrupt"]


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the `run` table."""

    id: str
    conversation: str
    message: str
    """Id of the assistant message that the run writes."""
    no: int = 0
    agent: str = "default"
    agent_type: str = "moot"
    agent_session_id: str | None = None
    model: str = ""
    trigger: Trigger = "user"
    parent_run: str | None = None
    """Id of the run that started this one as a sub-agent; None = none."""
    status: RunStatus = "queued"
    on_crash: OnCrash = "ask"
    owner: str | None = None
    """The process that executes the run: the name of a lock file in `state/owners`."""
    fence: int = 0
    """Increased by every claim; an append with an older fence fails."""
    settings: JsonObject = field(default_factory=empty)
    """Mode, limits, model settings and other options of the prompt. `inherited` contains the conversation's `STEP_SETTINGS` at that
    time."""
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Cost in nano-dollars; None = unknown."""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""
    started_at: int | None = None
    """Time of the start, in milliseconds since the epoch; None = not started."""
    ended_at: int | None = None
    """Time of the end, in milliseconds since the epoch; None = not ended."""
    result_seq: int | None = None
    """`seq` of the event that ended the run; None = not ended."""
    first_seq: int = 0
    last_seq: int = 0
    user: str = LOCAL_USER
    """Id of the user who submitted the run. It counts toward this user's limit `runs_per_user`."""
    awaits: Awaits | None = None
    """Cause of the wait while the status is `waiting`: `person`, `client`, `run` (a sub-agent) or `time`; None otherwise."""
    wake_at: int | None = None
    """Time at which a run that awaits a time continues, in milliseconds since the epoch; None otherwise."""

    @property
    def held(self) -> bool:
        """True if the run is waiting inside an outside agent's process and therefore keeps its owner."""
        return self.status == "waiting" and self.owner is not None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt submitted by a face: a conversation to find or create, and the user's message."""

    parts: tuple[Part, ...]
    """Parts of the new user message; () = answer the branch's last user message, for the first time or again, see `answers`."""
    conversation: str | None = None
    """Id of an existing conversation; None = create one."""
    key: str | None = None
    """Key to find or create the conversation by."""
    conversation_client_id: str | None = None
    """The client's id for a new conversation. If a conversation with this id exists, it is used instead."""
    client_id: str | None = None
    """The client's id for the user message."""
    edits: str | None = None
    """Id of the user message that the new message edits: `parts` become its sibling."""
    answers: str | None = None
    """Without `parts`: the message to answer instead of the last one. The id of an answer stands for the message that it answers."""
    parent: str | None = None
    """Parent of the new message; None = the end of the current branch."""
    directory: str = ""
    project: str = ""
    """Project id for a new conversation; empty = the project whose root contains the directory."""
    allowed_uris: tuple[str, ...] = ()
    agent: str | None = None
    """Name of the agent; None = the conversation's agent, or else the default agent."""
    model: str | None = None
    mode: Mode | None = None
    once: bool = False
    """True if agent and model apply to this run only, and an existing conversation keeps its own."""
    on_busy: OnBusy = "reject"
    trigger: Trigger = "user"
    on_crash: OnCrash = "ask"
    settings: JsonObject = field(default_factory=empty)
    """tools (bool or list), web_search, effort, max_steps, max_cost, timeout, schema, unattended, attended: see `runtime/setup.py`."""
    id: str = ""
    """Id of the prompt's run; empty = a new one. A prompt with an id that was submitted before is not stored again."""
    parent_run: str | None = None
    """The run that started this one as a sub-agent. A new conversation becomes a child of its conversation."""
    parent_tool_call: str | None = None
    """Id of the tool call that started this run as a sub-agent."""
    temporary: bool = False
    """True to make a new conversation temporary; see `Conversation.expires_at`."""
    user: str | None = None
    """Id of the submitter, who can use only their own conversations and owns new ones. None = the person at this machine, unlimited."""
    due: Due | TaskDue | None = None
    """The cron job's instant or the task's changes that the prompt is for. Submitting the prompt raises Busy if they are already
    recorded."""


@dataclass(frozen=True, slots=True)
class References:
    """A prompt with everything it refers to: the expanded text, notes for the user, and the parts to send and calls to make before it."""

    text: str = ""
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    calls: tuple[JsonObject, ...] = ()
    """Entries for `before_run` in a run's hooks, see `ReferencedCall`."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The result of submitting a prompt."""

    conversation: Conversation
    run: Run
    """The new run; with `steer`, the active run that receives the prompt."""
    seq: int
    """The last `seq` before the run's own events. To get the run's events, watch the conversation after this position."""
    steered: bool = False


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One leg of a run, as passed to an agent service."""

    run: Run
    conversation: Conversation
    agent: Agent
    settings: JsonObject
    """`Run.settings`, with those settings of the conversation that the run does not override."""
    servers: tuple[McpServer, ...] = ()
    """MCP servers available to the agent."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of a leg. `parked`: the run is waiting and takes no slot."""

    status: Literal["finished", "failed", "cancelled", "parked"]
    finish_reason: str = "stop"
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    """Usage of the whole run."""
    cost: int | None = None
    """Cost of the whole run in nano-dollars; None = unknown."""
    metadata: JsonObject = field(default_factory=empty)
    """Facts for `message.metadata`."""


class Runs(Protocol):
    async def submit(self, prompt: Prompt) -> Submitted:
        """Store the prompt and start or queue its run in the background.

        Raise Busy if the conversation is busy, UsageError if the prompt is invalid, StoreError if storing fails.
        """
        ...

    async def resume(self, run: str) -> Run:
        """Resume an interrupted, waiting or orphaned run in this process. Raise Busy if its owner is alive, UsageError if it has ended."""
        ...

    async def revive(self, run: str) -> Run:
        """Resume the run here if its process has died, and return its current state."""
        ...

    async def cancel(self, run: str) -> None:
        """Stop the run, whichever process runs it; do nothing if it has ended."""
        ...

    async def answer(self, approval: str, answer: Answer) -> None:
        """Answer an approval; the first answer wins, and a parked run continues.

        Raise NotFound if the approval is unknown, Busy if it is already answered, UsageError if the answer is not possible, or ConfigError
        if the rule can't be written.
        """
        ...

    async def wait(self, run: str) -> Run:
        """Return the run once it has ended or is interrupted, or once it or one of its sub-agents is waiting for a person or the client.

        A run that is waiting for its sub-agents or for a time continues by itself.
        """
        ...


class Tail(Protocol):
    def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """Yield every event after `after`, once and in order. Never ends; the caller closes the generator with `aclosing`."""
        ...
