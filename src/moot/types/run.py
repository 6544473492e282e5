"""One prompt to its end: what you cancel, bill, hook and resume."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.types.agent import Agent, Mode
from moot.types.canonical import JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.exchange import Failure
from moot.types.limits import Limits
from moot.types.mcp import McpServer
from moot.types.part import Part
from moot.types.token import LOCAL_USER
from moot.types.usage import Usage

RunStatus: TypeAlias = Literal["queued", "running", "waiting", "interrupted", "finished", "failed", "cancelled"]
TERMINAL: frozenset[RunStatus] = frozenset({"finished", "failed", "cancelled"})
STARTED: frozenset[RunStatus] = frozenset({"running", "waiting", "interrupted"})
"""At most one run of a conversation is in one of these."""
OPEN: frozenset[RunStatus] = frozenset({*STARTED, "queued"})

Trigger: TypeAlias = Literal["user", "api", "cron", "webhook", "delegate", "channel", "import", "agent"]
OnCrash: TypeAlias = Literal["resume", "ask"]
OnBusy: TypeAlias = Literal["reject", "queue", "steer", "interrupt"]


@dataclass(frozen=True, slots=True)
class Run:
    """The row of `run`."""

    id: str
    conversation: str
    message: str
    """The assistant message that it writes."""
    no: int = 0
    agent: str = "default"
    agent_type: str = "moot"
    agent_session_id: str | None = None
    model: str = ""
    trigger: Trigger = "user"
    parent_run: str | None = None
    status: RunStatus = "queued"
    on_crash: OnCrash = "ask"
    owner: str | None = None
    """The process that holds it: the name of a lock file in `state/owners`."""
    fence: int = 0
    """Raised by every claim; an append with an older one fails."""
    settings: JsonObject = field(default_factory=empty)
    """Mode, limits, model settings and the like that were given with the prompt; enough to run it again after a crash."""
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    """Nano-dollars; None = unknown."""
    created_at: int = 0
    """ms"""
    started_at: int | None = None
    ended_at: int | None = None
    result_seq: int | None = None
    first_seq: int = 0
    last_seq: int = 0
    user: str = LOCAL_USER
    """Who submitted it, and whose `runs_per_user` it takes."""

    @property
    def held(self) -> bool:
        """Whether it waits inside the process of an outside agent, so that its owner stays at it."""
        return self.status == "waiting" and self.owner is not None


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a face hands in: a conversation (found or made) and what the person said."""

    parts: tuple[Part, ...]
    """Of the new user message; () = answer the last user message of the branch again or for the first time, see `answers`."""
    conversation: str | None = None
    """Id of an existing conversation; None = make one."""
    key: str | None = None
    """Find-or-create key of the conversation."""
    conversation_client_id: str | None = None
    """The client's own id for a conversation that is to be made; one that has it already is found."""
    client_id: str | None = None
    """The client's own id for the user message."""
    edits: str | None = None
    """Id of the user message that `parts` take the place of, as its sibling."""
    answers: str | None = None
    """Without `parts`: the message to answer instead of the last; an answer stands for what it answers, so it is made once more."""
    parent: str | None = None
    """The message that `parts` come behind; None = the end of the shown branch."""
    directory: str = ""
    project: str = ""
    """Id of the project that a new conversation is put into; empty = the one whose root holds the directory."""
    allowed_uris: tuple[str, ...] = ()
    agent: str | None = None
    """None = the conversation's own, else the default one."""
    model: str | None = None
    mode: Mode | None = None
    on_busy: OnBusy = "reject"
    trigger: Trigger = "user"
    on_crash: OnCrash = "ask"
    settings: JsonObject = field(default_factory=empty)
    """tools (bool or list), effort, max_steps, max_cost, timeout, schema: see `runtime/setup.py`."""
    user: str | None = None
    """Whose prompt it is: it reaches that owner's conversations only, and one that it makes is theirs. None = the person at this
    machine, who reaches all."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a prompt."""

    conversation: Conversation
    run: Run
    """The new run; with `steer`, the live run that will see the prompt."""
    seq: int
    """The last event before the run's own: watch after this."""
    steered: bool = False


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One leg of a run, as an agent service gets it."""

    run: Run
    conversation: Conversation
    agent: Agent
    limits: Limits
    settings: JsonObject
    """`Run.settings`."""
    servers: tuple[McpServer, ...] = ()
    """MCP servers that the agent is to have."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a leg ended. `parked`: the run waits for an answer and takes no slot."""

    status: Literal["finished", "failed", "cancelled", "parked"]
    finish_reason: str = "stop"
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    """Of the whole run."""
    cost: int | None = None
    """Nano-dollars of the whole run; None = unknown."""
    metadata: JsonObject = field(default_factory=empty)
    """For `message.metadata`."""
