"""Budgets: how much the runs of a user, a project or an agent may spend in a period, and how much they have spent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from moot.types.canonical import JsonObject

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
