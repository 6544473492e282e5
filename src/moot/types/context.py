"""The context that the runtime passes to an agent service for one leg of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from moot.types.agent import Mode
from moot.types.approval import Answer, Approval, OutsideAnswer, OutsideCall, Session
from moot.types.blob import Blobs
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.hooks import HookAnswer
from moot.types.knowledge import Documents
from moot.types.limits import Limits
from moot.types.media import Transcripts
from moot.types.message import Message, Part
from moot.types.model import Model, ModelRole, ModelSettings
from moot.types.provider import Dialect, Provider
from moot.types.run import RunOutcome, RunRequest
from moot.types.sandbox import Access, Confinement
from moot.types.served import Served
from moot.types.store import Change, InboxItem
from moot.types.tool import Tool, ToolContext, ToolOutput


class Parked(BaseException):
    """The end of a leg that waits for a person, its client, sub-agents or a time.

    Not a subclass of Exception, so that no `except Exception` catches it.
    """

    def __init__(self, wake_at: int | None = None) -> None:
        """`wake_at` is the time in ms at which the next leg starts; None = the run waits for something else."""
        super().__init__()
        self.wake_at = wake_at


@dataclass(frozen=True, slots=True)
class Result:
    """The result of work recorded in the journal. The value is JSON, so that a resumed run gets the same value."""

    value: Json
    chunks: tuple[Chunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """The outcome of work that must not be repeated and that the journal shows as started but not ended."""

    key: str
    """Journal key of the attempt that was started. Its `end` is not written yet."""
    started_at: int
    """Time of the start, in microseconds since the epoch."""
    note: JsonObject
    """The last fact that the work recorded with `ToolContext.note`; empty if none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A model to call, with its provider and dialect."""

    model: Model
    provider: Provider
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class StepSetup:
    """Settings, tools and models of one step, read for each step so that a reloaded configuration takes effect."""

    choices: tuple[Choice, ...]
    """The model and its fallbacks, in order; never empty."""
    tools: tuple[Tool, ...]
    system: str
    settings: ModelSettings
    history_tokens: int
    """Maximum size of the history in tokens."""
    max_steps: int
    """Number of steps after which the run stops; 0 = no limit."""
    limits: Limits
    served: Served | None = None
    """The program that the run serves, with the program's own tools; None = none."""
    compact_at: int = 0
    """Number of tokens in a request at which the history is compacted; 0 = never."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy's decision on a call, made before the call's `start`."""

    allowed: bool
    reason: str = ""
    approval: str | None = None
    """Id of the answered approval to mark as used together with the call's start."""
    digest: bytes = b""
    asked: bool = False
    """True if a person refused, as opposed to policy."""
    nobody: bool = False
    """True if a person should have been asked but none is available."""
    arguments: bytes | None = None
    """Arguments with which the person replaced those of the call."""


Work: TypeAlias = Callable[[], Awaitable[Result]]


class ToolHooks(Protocol):
    """The hooks for tool calls and incoming messages, as the loop uses them."""

    async def before(self, tool: str, key: str, tool_call: str, input: JsonObject) -> HookAnswer | None:
        """Run the hooks before a call and return their decision, or None if there are no hooks."""
        ...

    async def after(self, tool: str, key: str, tool_call: str, input: JsonObject, output: ToolOutput) -> ToolOutput:
        """Run the hooks after a call and return its output with the hooks' additions."""
        ...

    async def steered(self, id: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Run the hooks for a message sent while an answer is in progress.

        Return the message's parts with the hooks' additions, or () if a hook blocks the message.
        """
        ...

    @property
    def stopping(self) -> str:
        """Return why a hook wants the run to end after its current calls; empty if none does."""
        ...


class Ports(Protocol):
    """Access to content, hooks, time and randomness. Tests pass in their own."""

    @property
    def blobs(self) -> Blobs: ...
    @property
    def documents(self) -> Documents: ...
    @property
    def transcripts(self) -> Transcripts: ...

    @property
    def hooks(self) -> ToolHooks | None:
        """The user's hooks, or None if none are configured."""
        ...

    def now(self) -> int:
        """Return the wall time in microseconds since the epoch."""
        ...

    def jitter(self) -> float:
        """Return a random number from 0 to 1, for backoff."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep. Can be cancelled."""
        ...

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        """Return a context to hold during a call to the provider. Entering it waits while `limits.per_provider` calls are active."""
        ...

    def recorded(self, tool: Tool, input: Json) -> AbstractAsyncContextManager[object]:
        """Return a context in which the tool may change files. Its changes are recorded for undo."""
        ...


class OutsideContext(Protocol):
    """The part of the context that only outside agents use."""

    @property
    def mode(self) -> Mode:
        """The run's mode, or the configured mode if the run has none.

        `decide` applies this mode. The agent should be started in its own closest mode.
        """
        ...

    async def decide(self, call: OutsideCall) -> OutsideAnswer:
        """Decide about a call of an outside agent: apply the policy and, if it requires that, ask a person and wait for the answer.

        Meanwhile the run is `waiting` and takes no slot, but keeps its owner because the agent's process waits too. The call is refused if
        no one can be asked or no one answers in time. Cancel this method if the agent no longer needs the answer.
        Raise FenceLost if this process no longer owns the run.
        """
        ...

    @property
    def waited(self) -> int:
        """Return the time in µs for which `decide` has waited for people; overlapping waits count once."""
        ...

    async def confinement(self, command: str, directory: Path, access: Access = "sandbox") -> Confinement | None:
        """Return the sandbox for an agent's command, or None for no sandbox. Raise Refused if one is required but not available."""
        ...

    async def session(self) -> Session | None:
        """Return the agent's own session that contains this branch or its beginning; None = start a new session."""
        ...

    async def set_session(self, id: str) -> None:
        """Store the run's session, committed on return. The next prompt finds the session even if this run fails."""
        ...


class RunContext(OutsideContext, Protocol):
    """Everything a leg may use. Owned by `runtime/drive.py`, which also owns its cancel scope."""

    @property
    def ports(self) -> Ports: ...

    async def append(self, *events: Event, changes: Sequence[Change] = (), sync: bool = False, fold: bool = False) -> range:
        """Set run and time on the events, commit them, publish them to watchers and return their seqs.

        Raise FenceLost if this process no longer owns the run.
        If `fold` is set, also store the message's parts including these events, in the same transaction.
        """
        ...

    async def journal(self) -> list[Event]:
        """Return all events of this run so far, in order."""
        ...

    async def history(self, tokens: int, *, compact_to: int = 0) -> list[Message]:
        """Return at least the last `tokens` of the branch that this run answers, oldest first, without the run's own message.

        It starts with the branch's summary if it was compacted. If `compact_to` is set, the branch is compacted before, to at most that
        many tokens if possible.
        """
        ...

    def message(self) -> Message:
        """Return the run's own message, folded up to its latest event."""
        ...

    async def setup(self, role: ModelRole = "main") -> StepSetup:
        """Return the settings, tools and models of the next step. Raise UsageError if no model is available."""
        ...

    async def once(self, key: str, *, idempotent: bool, work: Work, body: JsonObject, verdict: Verdict | None = None) -> Result | Unknown:
        """Run the work between a durable `start` (with `body`) and one event that holds both its `end` and its chunks.

        If the key already has an end, return its stored result without running anything. If the key has only a start, run the work again if
        `idempotent`, else return Unknown.
        """
        ...

    def standing(self, key: str) -> Literal["new", "begun", "ended"]:
        """Return the state of a piece of work in the journal, over all its attempts."""
        ...

    async def allow(self, tool: Tool, key: str, tool_call: str, arguments: bytes, subject: str, hook: HookAnswer | None = None) -> Verdict:
        """Apply the policy to a call, and ask a person if the policy requires that. Raise Parked if there is no answer yet.

        `subject` is what rules match: a command, a path, a URL. A hook can require approval by a person, or allow a call that needs
        approval only because of the mode.
        """
        ...

    async def ask(self, key: str, approval: Approval) -> Answer:
        """Return the stored answer. If there is none, store and show the question, and raise Parked."""
        ...

    async def inbox(self) -> list[InboxItem]:
        """Return the inbox items that have not been handled yet."""
        ...

    def tool_context(self, tool: Tool, key: str, tool_call: str) -> ToolContext: ...


class AgentService(Protocol):
    """A runner of agents of one `agent_type`. All output goes through the context; nothing is yielded. Instances are stateless.

    The runtime writes `start`, `finish`, `abort` and the run's end; the service writes steps, exchanges and tool outputs.
    """

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        """Run one leg to its end. Cancellation and Parked pass through; any other exception ends the run as failed."""
        ...


@runtime_checkable
class HasTrials(Protocol):
    """Optional capability of an agent service: options for tests that use only this machine. The conformance suite uses it."""

    trials: Mapping[str, JsonObject]
    """`answer`: produce output and end · `slow`: start working and continue for a minute."""
