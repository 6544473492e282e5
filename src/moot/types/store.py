"""The seam of the store: each Protocol is one file of the store's room. All methods raise StoreError and its children.

Everything a run does to the store goes through `Log.append`: events and changes together, under its fence, in one transaction.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from moot.types.approval import Answer, Approval, Grants
from moot.types.blob import Blobs
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation, Project
from moot.types.conversations import Conversations
from moot.types.event import Event
from moot.types.exchange import Ended, Exchange, Failure, Purpose
from moot.types.forgetting import Forgetting
from moot.types.imports import Imports
from moot.types.meaning import Meaning
from moot.types.message import Message, MessageStatus
from moot.types.part import Part
from moot.types.projects import Projects
from moot.types.run import OnBusy, Run, RunStatus
from moot.types.search import Search
from moot.types.share import Shares
from moot.types.stats import Stats
from moot.types.token import Tokens
from moot.types.tree import Tree
from moot.types.upkeep import Upkeep
from moot.types.usage import Usage
from moot.types.verify import Translations, Verifying


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to append a live run's events: one owner at a time, checked in the appending transaction."""

    conversation: str
    run: str
    message: str
    number: int


# ── what an append may change beside adding events ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Fold:
    """The run's message as it stands with the events of this append; `folded_through` becomes their last seq."""

    parts: tuple[Part, ...]
    metadata: JsonObject
    status: MessageStatus = "streaming"


@dataclass(frozen=True, slots=True)
class Park:
    """The run waits; its owner lets go."""


@dataclass(frozen=True, slots=True)
class End:
    """The run's terminal state, reached once; the conversation's sums change with it.

    Fails the append with Busy when the run would be finished and an untaken steer is in its inbox: it goes on for that.
    """

    status: Literal["finished", "failed", "cancelled"]
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    cost: int | None = None
    context_usage: float | None = None
    model: str = ""
    """`model@provider` that answered; the conversation remembers it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A new open approval. The same id again is the same approval."""

    approval: Approval
    hold: bool = False
    """The run waits from here on and its owner stays at it, because an outside agent's process waits too. It is running again with
    the transaction in which nothing is open any more."""


@dataclass(frozen=True, slots=True)
class Use:
    """Marks an approval used; fails the append with Busy when it is not answered yes, expired, bound to other bytes, or used already."""

    approval: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Took:
    """Inbox items up to this number have been acted on."""

    through: int


@dataclass(frozen=True, slots=True)
class OpenExchange:
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class CloseExchange:
    id: str
    ended: Ended


@dataclass(frozen=True, slots=True)
class Spent:
    """What an exchange outside of any run took, for the sums."""

    exchange: str
    purpose: Purpose
    model: str
    usage: Usage
    cost: int | None


@dataclass(frozen=True, slots=True)
class Expire:
    """Answers a question with no, for nobody did in time. Raises Busy when somebody did after all."""

    approval: str
    reason: str
    early: bool = False
    """Its time is not over, but whoever asked does not want to know any more."""


@dataclass(frozen=True, slots=True)
class SetSession:
    """The run's `agent_session_id`."""

    id: str


Change: TypeAlias = Fold | Park | End | Ask | Use | Expire | SetSession | Took | OpenExchange | CloseExchange | Spent


class LogReading(Protocol):
    async def read(
        self, conversation: str, *, after: int = 0, limit: int = 512, run: str | None = None, newest: bool = False
    ) -> list[Event]:
        """At most `limit` events behind `after`, in order, from one snapshot over segments and rows; of one run when named.

        With `newest` the chunks are those that the newest translation of an exchange gives; else those that were made when it came.
        """
        ...

    async def last_seq(self, conversation: str) -> int:
        """0 = no events."""
        ...

    async def last_seqs(self, conversations: Sequence[str]) -> dict[str, int]:
        """The same of several; without those that there are not."""
        ...


class Log(LogReading, Protocol):
    async def append(
        self, conversation: str, events: Sequence[Event], *, fence: Fence | None = None, changes: Sequence[Change] = (), sync: bool = False
    ) -> range:
        """The new seqs, dense; committed on return, and with `sync` fsynced. Nothing of it happens when anything of it fails.

        Without a fence only exchanges outside any run can be changed.
        Shielded: once queued it is awaited to its outcome, also under cancellation. Raises FenceLost when the fence is not the
        newest, NotFound for an unknown conversation, StoreFull.
        """
        ...


@dataclass(frozen=True, slots=True)
class Submission:
    """A prompt ready to be stored: everything is decided but who wins."""

    run: Run
    """With the ids of run and assistant message, status `queued`."""
    conversation: Conversation
    """Used as it is when it has to be made; an existing one (by id, else by key) keeps its own fields."""
    user: Message | None
    """None = answer the branch as it stands."""
    on_busy: OnBusy = "reject"
    owner: str | None = None
    """Claimed at once by this owner when it need not queue."""
    at_most: int = 0
    """Top-level runs of the user that may be running at once; with more it queues. 0 = any number."""
    remember: bool = False
    """An existing conversation takes over agent and model: the prompt has named them."""
    edits: str | None = None
    """The user message that `user` becomes a sibling of."""
    answers: str | None = None
    """Without `user`: the message to answer, again or for the first time; an answer stands for what it answers. None = the last prompt."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What `submit` made of it."""

    conversation: Conversation
    run: Run
    """`running` with a fence when it was claimed, `queued` when it stands behind another."""
    seq: int
    """Last seq before the run's first own event."""
    fence: Fence | None = None
    steered: bool = False
    interrupts: str | None = None
    """The live run that must be cancelled before this one may start (`on_busy` = interrupt)."""
    superseded: tuple[str, ...] = ()
    """Runs that nobody worked on and that ended for this one."""


InboxKind: TypeAlias = Literal["answer", "steer", "queue", "cancel"]


@dataclass(frozen=True, slots=True)
class InboxItem:
    """What others say to a live run."""

    kind: InboxKind
    body: Json = None
    no: int = 0
    """Position in the inbox; only the store sets it."""
    at: int = 0
    """ms"""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a run stands at when its new owner takes it up; all of it from one snapshot."""

    run: Run
    conversation: Conversation
    project: Project
    message: Message
    """As stored: what came behind its last fold is in the events."""
    events: tuple[Event, ...]
    """All of the run so far, in order."""
    inbox: tuple[InboxItem, ...]
    """What has not been taken yet, in order."""
    answered: frozenset[str]
    """Approvals of the run that have their answer."""


class RunReading(Protocol):
    """Runs, their inboxes and approvals, to be looked at. What changes them goes through the engine (`Runs`)."""

    async def run(self, id: str) -> Run:
        """By id or unique prefix. Raises NotFound."""
        ...

    async def runs(
        self,
        *,
        conversation: str | None = None,
        statuses: frozenset[RunStatus] | None = None,
        limit: int = 200,
        before: int | None = None,
    ) -> list[Run]:
        """Newest first; only those before that `no`, when given."""
        ...

    async def last_answer(self, message: str) -> Run | None:
        """The newest run whose message answers that one."""
        ...

    async def inbox(self, run: str) -> list[InboxItem]:
        """What has not been taken yet, in order."""
        ...

    async def approval(self, id: str) -> Approval | None: ...

    async def approvals(self, *, run: str | None = None, conversation: str | None = None, open_only: bool = True) -> list[Approval]:
        """Oldest first."""
        ...

    async def exchange(self, id: str) -> Exchange | None: ...


class Records(RunReading, Protocol):
    """The same, and what the engine does to them."""

    async def submit(self, submission: Submission) -> Accepted:
        """One transaction, fsynced: conversation, user message, assistant message, run, head. `steer` on a running run posts to its inbox.

        A run that is waiting, interrupted, or queued without an owner ends cancelled, its approvals denied ("superseded").
        Raises Busy (on_busy = reject and a run is running or queued).
        """
        ...

    async def claim(self, run: str, owner: str, *, statuses: frozenset[RunStatus], at_most: int = 0) -> Fence:
        """Makes `owner` the owner, raises the fence, status becomes running. Raises Busy when the status is not one of those, an
        earlier run of the conversation has not ended, or the user has `at_most` top-level runs running already (0 = any number)."""
        ...

    async def standing(self, run: str) -> Standing:
        """By the run's id. Raises NotFound."""
        ...

    async def called_off(self, runs: Collection[str]) -> frozenset[str]:
        """Those of the runs in whose inbox a cancel lies."""
        ...

    async def interrupt(self, run: str, *, owner: str | None, fence: int) -> bool:
        """running → interrupted, when that owner still holds that fence: called for a dead owner. False when somebody was faster.
        So with one that waits and has an owner: what its process has asked is denied.
        queued → interrupted when it stands first; else it only loses its owner, and False."""
        ...

    async def withdraw(self, run: str) -> bool:
        """queued → cancelled, with its message closed, fsynced: a run that never had its turn. False when it is not queued any more."""
        ...

    async def post(self, run: str, item: InboxItem) -> int:
        """Puts it into the run's inbox, fsynced; its number. Raises Busy when the run has ended."""
        ...

    async def answer(self, id: str, answer: Answer) -> Approval:
        """Stores the first answer, fsynced, and posts it to the run's inbox; a yes for the conversation grants its patterns.

        Raises NotFound, Busy (answered or expired already).
        """
        ...


class Holdings(Protocol):
    """What is kept for everybody, or for one owner: see `Store.of`."""

    @property
    def log(self) -> LogReading: ...
    @property
    def records(self) -> RunReading: ...
    @property
    def conversations(self) -> Conversations: ...
    @property
    def tree(self) -> Tree: ...
    @property
    def projects(self) -> Projects: ...
    @property
    def grants(self) -> Grants: ...
    @property
    def search(self) -> Search: ...
    @property
    def meaning(self) -> Meaning: ...
    @property
    def stats(self) -> Stats: ...
    @property
    def imports(self) -> Imports: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def shares(self) -> Shares: ...


class Store(Holdings, Protocol):
    """One open database, with what is everybody's."""

    @property
    def log(self) -> Log: ...
    @property
    def records(self) -> Records: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def verifier(self) -> Verifying: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def translations(self) -> Translations: ...
    @property
    def forgetting(self) -> Forgetting: ...
    async def is_forgetting(self) -> bool:
        """Whether a purge or redaction is not done."""
        ...

    def of(self, owner: str) -> Holdings:
        """What is that owner's and nothing else: for whatever is another's each method answers as for what there is not.

        A new owner has nothing, and is made with the first thing that is stored.
        """
        ...

    def others(self, *, interval: float = 0.02) -> AsyncGenerator[None, None]:
        """Something each time another process has committed; the one poller of this process."""
        ...

    async def health(self) -> JsonObject:
        """For `moot doctor`: library, version, protection, schema, integrity, sizes."""
        ...

    async def close(self) -> None:
        """Drains the writer first."""
        ...
