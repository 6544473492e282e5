"""The interface of the store. All methods may raise StoreError and its subclasses.

A run changes the store only through `Log.append`: events and changes together, under its fence, in one transaction.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from moot.types.approval import Answer, Approval, Grants
from moot.types.blob import Blobs, StagedBlobs
from moot.types.canonical import Json, JsonObject
from moot.types.channel import Outlets
from moot.types.conversation import Conversation, Conversations, Project, Projects
from moot.types.cron import Due, JobStore
from moot.types.event import Event
from moot.types.exchange import Ended, Exchange, Failure, Purpose
from moot.types.limits import Period
from moot.types.message import Message, MessageStatus, Part
from moot.types.run import Awaits, OnBusy, Run, RunStatus
from moot.types.share import Shares
from moot.types.task import TaskDue, Tasks
from moot.types.token import Tokens
from moot.types.tree import Tree
from moot.types.usage import Usage

if TYPE_CHECKING:
    from moot.types.imports import Imports
    from moot.types.knowledge import Knowledge
    from moot.types.maintenance import Erasure, Upkeep
    from moot.types.push import Devices
    from moot.types.search import Search, SemanticSearch
    from moot.types.stats import Stats
    from moot.types.verify import Translations, Verifier


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to append an active run's events. Only one owner at a time has it; every append checks it in its transaction."""

    conversation: str
    run: str
    message: str
    number: int


# ── changes that an append can make in addition to adding events ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Fold:
    """The run's message, including the events of this append; `folded_through` becomes their last seq."""

    parts: tuple[Part, ...]
    metadata: JsonObject
    status: MessageStatus = "streaming"


@dataclass(frozen=True, slots=True)
class Park:
    """The run becomes `waiting` and gives up its owner.

    With open approvals, the run awaits its client if only the client can answer them, otherwise a person.
    """

    awaits: Awaits = "person"
    """Cause of the wait if the run has no open approval."""
    wake_at: int | None = None
    """Time at which a run that awaits a time continues, in ms."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of the run, which also updates the conversation's sums.

    The append fails with Busy if the status is `finished` but the inbox has an unhandled steer: the run must continue for it.
    If the status is a different one, unread steering messages are stored as user messages at the end of the run's branch.
    """

    status: Literal["finished", "failed", "cancelled"]
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    context_usage: float | None = None
    model: str = ""
    """`model@provider` that answered, or the name that an outside agent reported. moot's own models are stored in the conversation too."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A new open approval. Repeating an id has no effect."""

    approval: Approval
    hold: bool = False
    """The run becomes `waiting` but keeps its owner, because an outside agent's process waits too. It becomes `running` again in the
    transaction that closes its last open approval."""


@dataclass(frozen=True, slots=True)
class Use:
    """The use of an approval. The append fails with Busy if it was not granted, has expired, has another digest, or is used up."""

    approval: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class HandleInbox:
    """The inbox items up to this number have been handled."""

    through: int


@dataclass(frozen=True, slots=True)
class OpenExchange:
    exchange: Exchange
    pieces: StagedBlobs | None = None  # None if the pieces of its request are already stored


@dataclass(frozen=True, slots=True)
class CloseExchange:
    id: str
    ended: Ended


@dataclass(frozen=True, slots=True)
class RecordUsage:
    """Usage of an exchange outside any run, to be added to the totals."""

    exchange: str
    purpose: Purpose
    model: str
    usage: Usage
    cost: int | None


@dataclass(frozen=True, slots=True)
class Expire:
    """The denial of an approval that has timed out. The append fails with Busy if the approval already has an answer."""

    approval: str
    reason: str
    early: bool = False
    """True if the approval has not expired, but the agent that requested it no longer needs the answer."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """Another agent continues the run, with its own model and without a session."""

    agent: str
    agent_type: str


@dataclass(frozen=True, slots=True)
class SetSession:
    """The run's new `agent_session_id`."""

    id: str


@dataclass(frozen=True, slots=True)
class WarnBudget:
    """A notice to outgoing webhooks that most of a budget, or of one of the run's limits, has been used."""

    limit: Literal["cost", "tokens"]
    used: int
    """Amount used so far, in nano-dollars or tokens."""
    most: int
    name: str = ""
    """Name of the budget, or the key of the limit."""
    per: Period = "run"
    resets_at: int | None = None
    """End of the budget's period, in milliseconds since the epoch; None for budgets per run."""
    subject: str = ""
    """A warning with the same subject is sent only once; empty = the subject is the run."""

    def to_json(self) -> JsonObject:
        names = ("limit", "used", "most", "name", "per", "resets_at")
        return {name: getattr(self, name) for name in names}


Change: TypeAlias = (
    Fold | Park | End | Ask | Use | Expire | HandOver | SetSession | WarnBudget | HandleInbox | OpenExchange | CloseExchange | RecordUsage
)


class LogReader(Protocol):
    async def read(
        self, conversation: str, *, after: int = 0, limit: int = 512, run: str | None = None, newest: bool = False
    ) -> list[Event]:
        """Return at most `limit` events after `after`, in order, from one snapshot of segments and rows; optionally only those of one run.

        If `newest` is set, chunks come from the newest translation of each exchange, else from the original one.
        """
        ...

    async def last_seq(self, conversation: str) -> int:
        """Return the last seq; 0 = no events."""
        ...

    async def last_seqs(self, conversations: Sequence[str]) -> dict[str, int]:
        """Return the last seqs of several conversations; unknown ones are omitted."""
        ...


class Log(LogReader, Protocol):
    async def append(
        self, conversation: str, events: Sequence[Event], *, fence: Fence | None = None, changes: Sequence[Change] = (), sync: bool = False
    ) -> range:
        """Append events and return their seqs. Committed on return, and fsynced with `sync`. If any part fails, nothing is stored.

        Without a fence, only exchanges outside any run can be changed. Once queued, the append is completed even if the caller is
        cancelled. Raise FenceLost if the fence is outdated, NotFound for an unknown conversation, or StoreFull if there is no space.
        """
        ...


@dataclass(frozen=True, slots=True)
class Submission:
    """A prompt that is ready to be stored; only conflicts with other runs are not resolved yet."""

    run: Run
    """The new run, with its id, the id of its assistant message, and the status `queued`."""
    conversation: Conversation
    """Stored if it is new. An existing one, found by id or else by key, keeps its fields; it takes the directory if it has none."""
    user: Message | None
    """The new user message; None = answer the branch as it is."""
    on_busy: OnBusy = "reject"
    owner: str | None = None
    """The owner that claims the run immediately unless the run has to queue."""
    at_most: int = 0
    """Maximum number of the user's top-level runs that run at the same time; further runs are queued. 0 = no limit."""
    remember: bool = False
    """True if agent and model are also stored in an existing conversation, because the prompt sets them."""
    edits: str | None = None
    """The user message of which `user` becomes a sibling."""
    answers: str | None = None
    """Without `user`: the message to answer; None = the last prompt. The id of an answer stands for the message that it answers."""
    may_exist: bool = False
    """True if the same submission, with the same ids of run and user message, may have been stored before."""
    children: tuple[int, int] = (0, 0)
    """For a sub-agent: the maximum number that its parent run may start, and the maximum number of the user's sub-agents that may work at
    once. 0 = no limit.

    Working sub-agents of earlier runs of the conversation count toward the first number."""
    due: Due | TaskDue | None = None
    """The cron job's instant, or the task's changes that a watcher handles, recorded in the same transaction."""
    continuing: frozenset[str] = frozenset()
    """Waiting runs of the conversation that continue by themselves. They count as running."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The result of `submit`."""

    conversation: Conversation
    run: Run
    """`running`, with a fence, if it was claimed; `queued` if another run is ahead."""
    seq: int
    """Last seq before the run's first event."""
    fence: Fence | None = None
    steered: bool = False
    interrupts: str | None = None
    """Id of the active run to cancel before this one may start (`on_busy` = interrupt)."""
    superseded: tuple[str, ...] = ()
    """Ids of the inactive runs that were ended so that this one can start."""


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A request from outside to an active run."""

    kind: Literal["answer", "steer", "queue", "cancel"]
    body: Json = None
    no: int = 0
    """Position in the inbox; set by the store."""
    at: int = 0
    """Time of the request, in ms."""


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The complete state of a run for a new owner, from one snapshot."""

    run: Run
    conversation: Conversation
    project: Project
    message: Message
    """The stored message; `events` contains everything after its last fold."""
    events: tuple[Event, ...]
    """All events of the run so far, in order."""
    inbox: tuple[InboxItem, ...]
    """Unhandled items, in order."""
    answered: frozenset[str]
    """Ids of the run's answered approvals."""
    has_background: bool
    """True if this or an earlier run of the conversation has started a sub-agent in the background."""


class RunReader(Protocol):
    """Read access to runs, their inboxes and approvals. Changes go through the engine (`Runs`)."""

    async def run(self, id: str) -> Run:
        """Return the run with this id or unique prefix of an id. Raise NotFound if none or several match."""
        ...

    async def runs(
        self, *, conversation: str | None = None, statuses: frozenset[RunStatus] | None = None, limit: int = 200, before: int | None = None
    ) -> list[Run]:
        """List runs, newest first; if `before` is set, only those with a lower `no`."""
        ...

    async def last_answer(self, message: str) -> Run | None:
        """Return the newest run that answers the message."""
        ...

    async def inbox(self, run: str) -> list[InboxItem]:
        """Return the unhandled items, in order."""
        ...

    async def approval(self, id: str) -> Approval | None: ...

    async def children(self, run: str = "", *, conversation: str = "", tree: bool = False) -> list[Run]:
        """List the runs that this run, or all runs of this conversation, have started as sub-agents, oldest first.

        If `tree` is set, include sub-agents of sub-agents at any depth.
        """
        ...

    async def approvals(
        self, *, run: str | None = None, conversation: str | None = None, open_only: bool = True, tree: bool = False
    ) -> list[Approval]:
        """List approvals, oldest first. If `tree` is set, include the approvals of sub-agents at any depth."""
        ...

    async def exchange(self, id: str) -> Exchange | None: ...


class Records(RunReader, Protocol):
    """Read access, and the engine's changes to runs."""

    async def submit(self, submission: Submission) -> Accepted:
        """Store conversation, user message, assistant message, run and head in one durable transaction.

        If a prompt with the same client id and parts was stored before, return its run. If `on_busy` is `steer` and a run is running, add
        the prompt to its inbox instead. A run that is waiting and not `continuing`, interrupted, or queued without an owner is cancelled,
        and its approvals are denied ("superseded"). Raise Busy if `on_busy` is `reject` and a run is running, `continuing` or queued, or
        LimitReached if there are too many sub-agents. Also raise Busy if `due` is already recorded, or the job's last run has not ended.
        """
        ...

    async def note(self, submission: Submission) -> Conversation:
        """Store the prompt as the last message of its conversation, without a run. Raise Busy if `due` is already recorded."""
        ...

    async def claim(self, run: str, owner: str, *, statuses: frozenset[RunStatus], at_most: int = 0) -> Fence:
        """Make `owner` the run's owner, increase its fence and set its status to running. Raise Busy if its status is not in `statuses`, an
        earlier run of the conversation has not ended, or the user already has `at_most` top-level runs running (0 = no limit)."""
        ...

    async def snapshot(self, run: str) -> RunSnapshot:
        """Return the state of the run with this exact id. Raise NotFound if there is none."""
        ...

    async def cancelled(self, runs: Collection[str]) -> frozenset[str]:
        """Return the runs that have a cancel in their inbox."""
        ...

    async def parked(self, runs: Collection[str]) -> dict[str, bool]:
        """Return the parked runs among these, each with True if it can continue.

        A run can continue if it has no open approvals, and if it has an answer that no leg has read or all sub-agents that it awaits have
        ended.
        """
        ...

    async def child_owners(self, runs: Collection[str]) -> dict[str, str | None]:
        """Map the open sub-agents of these runs, at any depth, to their owners, or to None if they are interrupted. Others are omitted."""
        ...

    async def interrupt(self, run: str, *, owner: str | None, fence: int) -> bool:
        """Interrupt a dead owner's run and return True, unless it has been claimed since (owner or fence differ).

        running → interrupted. waiting with an owner → interrupted, and its process's open approvals are denied. queued → interrupted if it
        is first in line; otherwise it only loses its owner, and the method returns False.
        """
        ...

    async def withdraw(self, run: str) -> bool:
        """Cancel a queued run and close its message, durably. Return False if the run is no longer queued."""
        ...

    async def withdraw_steers(self, run: str, message: str | None = None) -> list[InboxItem]:
        """Remove all unread steering messages, or only the one with this id, from the run's inbox. Return them, oldest first."""
        ...

    async def post(self, run: str, item: InboxItem) -> int:
        """Add an item to the run's inbox, durably, and return its number. Raise NotFound if there is no such run, Busy if it has ended."""
        ...

    async def answer(self, id: str, answer: Answer) -> Approval:
        """Store the first answer and post it to the run's inbox, durably.

        An approval for the whole conversation also grants the patterns. Raise NotFound if the approval is unknown, Busy if it is already
        answered or has expired.
        """
        ...


class Indexes(Protocol):
    """The parts of a store that cover all of its contents: search, statistics and imports."""

    @property
    def search(self) -> Search: ...
    @property
    def meaning(self) -> SemanticSearch: ...
    @property
    def knowledge(self) -> Knowledge: ...
    @property
    def stats(self) -> Stats: ...
    @property
    def imports(self) -> Imports: ...


class OwnerStore(Indexes, Protocol):
    """The parts of a store, for all owners or for one (see `Store.of`)."""

    @property
    def log(self) -> LogReader: ...
    @property
    def records(self) -> RunReader: ...
    @property
    def conversations(self) -> Conversations: ...
    @property
    def tree(self) -> Tree: ...
    @property
    def projects(self) -> Projects: ...
    @property
    def grants(self) -> Grants: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def shares(self) -> Shares: ...
    @property
    def jobs(self) -> JobStore: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def devices(self) -> Devices: ...


class Store(OwnerStore, Outlets, Protocol):
    """One open database, including the parts that don't belong to an owner."""

    @property
    def log(self) -> Log: ...
    @property
    def records(self) -> Records: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def verifier(self) -> Verifier: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def translations(self) -> Translations: ...
    @property
    def erasure(self) -> Erasure: ...
    async def has_pending_erasure(self) -> bool:
        """Return True if a purge or redaction is unfinished, or a temporary conversation has expired."""
        ...

    def of(self, owner: str) -> OwnerStore:
        """Return a view restricted to one owner: resources of other owners are treated as nonexistent.

        A new owner has no data; the user is created when data is first stored.
        """
        ...

    def foreign_commits(self, *, interval: float = 0.02) -> AsyncGenerator[None, None]:
        """Yield whenever another process has committed. This is the process's only poller."""
        ...

    async def health(self) -> JsonObject:
        """Return facts for `moot doctor`: library, version, protection, schema, integrity, sizes."""
        ...

    async def close(self) -> None:
        """Close the store after draining the writer."""
        ...
