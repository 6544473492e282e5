"""What an agent service is handed for one leg of a run: the log, the journal, the answers and the inbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from moot.types.agent import Mode
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import Message
from moot.types.model import Model, ModelRole, ModelSettings
from moot.types.outside import OutsideAnswer, OutsideCall, Session
from moot.types.provider import Dialect, Provider
from moot.types.run import RunOutcome, RunRequest
from moot.types.served import Served
from moot.types.store import Blobs, Change, InboxItem
from moot.types.tool import Tool, ToolContext


class Parked(BaseException):
    """Ends a leg that waits for a person; raised by `ask`. Not an Exception, so that no tool's `except` holds it up."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a piece of journaled work came to; the value is JSON so that a resumed run gets the same."""

    value: Json
    chunks: tuple[Chunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """The journal has the work's start and no end, and it may not be repeated."""

    key: str
    """Of the attempt that began; its `end` is still to be written."""
    started_at: int
    """µs"""
    note: JsonObject
    """The last fact it put down (`ToolContext.note`); empty when none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A model to try, with whom to call and how to speak."""

    model: Model
    provider: Provider
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class StepSetup:
    """Settings, tools and models of one step, taken afresh so that a reloaded configuration shows."""

    choices: tuple[Choice, ...]
    """The model and its fallbacks, in order; never empty."""
    tools: tuple[Tool, ...]
    system: str
    settings: ModelSettings
    history_tokens: int
    """The budget for history."""
    max_steps: int
    """Steps after which the run stops; 0 = no limit."""
    served: Served | None = None
    """For whom else the run is made, with tools of its own."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What policy says of a call before its `start`."""

    allowed: bool
    reason: str = ""
    approval: str | None = None
    """The answered approval that must be used with the call's start."""
    digest: bytes = b""
    asked: bool = False
    """A person said no, as against policy."""
    nobody: bool = False
    """A person should have been asked, and none is there."""
    arguments: bytes | None = None
    """What the person put in the place of the call's arguments."""


Work: TypeAlias = Callable[[], Awaitable[Result]]


class Ports(Protocol):
    """What is neither the log nor a decision: content, time, chance. Tests bring their own."""

    @property
    def blobs(self) -> Blobs: ...

    def now(self) -> int:
        """Wall time, µs."""
        ...

    def jitter(self) -> float:
        """A random number from 0 to 1, for backing off."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits; cancellable."""
        ...

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        """Held for as long as that provider is being called: entering waits while `limits.per_provider` others are at it."""
        ...


class OutsideContext(Protocol):
    """What a leg of an outside agent needs beside the rest."""

    @property
    def mode(self) -> Mode:
        """The run's, else the configuration's: `decide` goes by it, and the agent should be started in what comes nearest."""
        ...

    async def decide(self, call: OutsideCall) -> OutsideAnswer:
        """What becomes of a call that an outside agent asks about: policy first, else a person is asked and this waits for the answer.

        The run is `waiting` meanwhile and takes no slot; it stays ours, for the agent's process waits with it. A refusal when nobody is
        there to be asked, or nobody answers in time. What can't be answered any more since the agent has gone on is ended by cancelling
        this. Raises FenceLost.
        """
        ...

    async def session(self) -> Session | None:
        """The agent's own session that holds the branch up to here, as far as it does; None = begin a new one."""
        ...

    async def set_session(self, id: str) -> None:
        """Remembers the session that this run is made in, committed on return; the next prompt finds it, also when this run fails."""
        ...


class RunContext(OutsideContext, Protocol):
    """The leg's only way out. Owned by `runtime/drive.py`, which also owns its cancel scope."""

    @property
    def ports(self) -> Ports: ...

    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range:
        """Stamps run and time, commits, then shows the events to watchers; their seqs. Raises FenceLost.

        `fold` writes the message's parts as they stand with these events, in the same transaction.
        """
        ...

    async def journal(self) -> list[Event]:
        """All events of this run so far, in order."""
        ...

    async def history(self, tokens: int) -> list[Message]:
        """The branch that this run answers, oldest first, without the run's own message; at least the last `tokens` of it."""
        ...

    def message(self) -> Message:
        """The run's own message, folded to now."""
        ...

    async def setup(self, role: ModelRole = "main") -> StepSetup:
        """Raises UsageError when no model can be had."""
        ...

    async def once(self, key: str, *, idempotent: bool, work: Work, body: JsonObject, verdict: Verdict | None = None) -> Result | Unknown:
        """Runs the work between a durable `start` (with `body`) and one event that is both its `end` and its chunks.

        A key with an end returns its result again without running anything; one with only a start is run again when `idempotent`,
        else Unknown.
        """
        ...

    def standing(self, key: str) -> Literal["new", "begun", "ended"]:
        """What the journal says of a piece of work, whatever its attempts."""
        ...

    async def allow(self, tool: Tool, key: str, tool_call: str, arguments: bytes, subject: str) -> Verdict:
        """Policy's word on a call, asking a person when it says so. Raises Parked when the answer is still out.

        `subject` is what rules match: a command, a path, a URL.
        """
        ...

    async def ask(self, key: str, approval: Approval) -> Answer:
        """The stored answer, else the question is stored and shown. Raises Parked while it is out."""
        ...

    async def inbox(self) -> list[InboxItem]:
        """What has come in and not been taken."""
        ...

    def tool_context(self, tool: Tool, key: str, tool_call: str) -> ToolContext: ...


class AgentService(Protocol):
    """Runs agents of one `agent_type`: everything a run says goes through the context, nothing is yielded. Instances are stateless.

    `start`, `finish`, `abort` and the run's end are the runtime's to write; steps, exchanges and tool outputs are the service's.
    """

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        """Drives one leg to its end. Cancellation and Parked pass through; any other exception fails the run at its border."""
        ...


@runtime_checkable
class Tried(Protocol):
    """An optional power of an agent service: `Agent.options` to be tried with on this machine alone, as the conformance suite does."""

    trials: Mapping[str, JsonObject]
    """`answer`: it says something and ends · `slow`: it begins its work and would go on for a minute."""
