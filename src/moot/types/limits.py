"""Limits of runs, budgets, and rules for deleting old conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import JsonObject

TOOL_OUTPUT_CHARACTERS = 30_000
"""Maximum length of a tool output sent to a model; the rest is in a blob that read_file can page through."""

INLINE_BYTES = 16 * 1024
"""Maximum size in bytes of an output inside an event. A larger one is stored as a blob."""

TAIL_BYTES = 4 * 1024
"""Maximum size of the end of a long output, which is the part shown to people."""


@dataclass(frozen=True, slots=True)
class Limits:
    runs_per_user: int = 3
    subagents_per_user: int = 20
    subagents_per_run: int = 8
    depth: int = 3
    steps: int = 50
    repeats: int = 3
    """Number of identical tool calls in a row after which the run stops."""
    per_provider: int = 0
    """Maximum number of concurrent calls to one provider, per process; 0 = no limit."""
    cached_conversations: int = 20
    cost: int = 0
    """Maximum cost of a run in nano-dollars; 0 = no limit."""
    tokens: int = 0
    """Maximum number of input and output tokens of a run; 0 = no limit."""
    uploads: int = 1 << 30
    """Maximum total size of one user's uploads, in bytes."""
    seconds: float = 0
    """Maximum working time of a run in seconds, excluding waits for people; 0 = no limit."""
    wait_for_reset: float = 0
    """Maximum number of seconds that a step waits until a provider's usage limit resets; 0 = don't wait."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Periods after which conversations are deleted automatically; 0 = never."""

    keep_days: int = 0
    """Days without activity before a conversation is deleted."""
    archived_days: int = 0
    """Days after archiving before a conversation is deleted."""


@dataclass(frozen=True, slots=True)
class Retention(RetentionRule):
    """The retention rules of a store."""

    trash_days: int = 30
    """Days between deletion and purge. 0 = never purge automatically."""
    projects: Mapping[str, RetentionRule] = field(default_factory=dict[str, RetentionRule])
    """Rules by project name or id; they replace the general ones."""


Period: TypeAlias = Literal["run", "day", "week", "month"]

NEARLY = 0.8
"""Used share of a budget at which people are warned."""

QUESTION = "budget"
"""`Approval.tool` for the question whether a run may continue although a budget is used up. No tool has this name."""


@dataclass(frozen=True, slots=True)
class Budget:
    """One entry of `budgets`. It covers the runs of one user that match all of `user`, `project` and `agent`, and their sub-agents."""

    name: str
    per: Period = "run"
    cost: int = 0
    """Maximum cost in nano-dollars; 0 = no limit."""
    tokens: int = 0
    """Maximum number of input and output tokens; 0 = no limit."""
    user: str = ""
    """Name or id of the user; empty = each user has this budget."""
    project: str = ""
    """Name or id of the project; empty = all projects."""
    agent: str = ""
    """Name of the agent; empty = all agents."""
    tz: str = "UTC"
    """IANA name of the time zone in which days, weeks and months begin."""
    ends_run: bool = False
    """True for `limits.cost` and `limits.tokens`, which end a run instead of asking whether it may continue."""


@dataclass(frozen=True, slots=True)
class SpendingQuery:
    """A set of runs: either one run and its sub-agents, or all runs of an owner since a given time."""

    owner: str = ""
    since: int = 0
    """Time in ms. Steps that ended before it are not counted."""
    project: str = ""
    """Project id; empty = all projects."""
    agent: str = ""
    """Only runs of this agent and their sub-agents; empty = all runs."""
    run: str = ""
    """Id of the run; empty = the runs that match the other fields."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The sum of what runs have spent. Each sub-agent is a run of its own, so it is counted once."""

    cost: int = 0
    """Known cost in nano-dollars."""
    tokens: int = 0
    """Input and output tokens."""
    unpriced: int = 0
    """Number of runs whose cost is completely or partly unknown."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.cost + other.cost, self.tokens + other.tokens, self.unpriced + other.unpriced)


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget and what has been spent of it."""

    budget: Budget
    spent: Spending
    since: int = 0
    """Start of the current period, in milliseconds since the epoch; 0 for per-run budgets."""
    resets_at: int | None = None
    """End of the current period, in milliseconds since the epoch; None for per-run budgets."""
    problem: str = ""
    """Reason why the budget covers no runs; empty if there is no problem."""

    @property
    def share(self) -> float:
        """The used share of the budget; 1 = used up. Unknown costs are not included."""
        budget, spent = self.budget, self.spent
        shares = ((spent.cost, budget.cost), (spent.tokens, budget.tokens))
        return max((used / most for used, most in shares if most), default=0.0)

    @property
    def percent(self) -> int:
        """The used share in percent, rounded down."""
        return int(round(self.share * 100, 6))

    @property
    def limit(self) -> Literal["cost", "tokens"]:
        """The limit, `cost` or `tokens`, that is closer to being used up."""
        budget, spent = self.budget, self.spent
        return "cost" if budget.cost and (not budget.tokens or spent.cost * budget.tokens >= spent.tokens * budget.cost) else "tokens"

    def to_json(self) -> JsonObject:
        """Serialize. `spent` and `share` are None for per-run budgets, which start again with each run, and for budgets with a problem."""
        document: JsonObject = asdict(self.budget)
        spent = None if self.resets_at is None or self.problem else asdict(self.spent)
        share = None if spent is None else round(self.share, 4)
        return {**document, "spent": spent, "share": share, "since": self.since, "resets_at": self.resets_at, "problem": self.problem}
