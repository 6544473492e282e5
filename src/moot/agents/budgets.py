"""Texts about budgets, and the warning that is added to a run when most of a budget is used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo

from moot.errors import NotFound
from moot.types import chunk
from moot.types.chunk import Chunk
from moot.types.limits import NEARLY, Budget, BudgetState, Limits
from moot.types.message import Part
from moot.types.store import Store, WarnBudget

_NANO = 1e9


def limit_budgets(limits: Limits) -> list[Budget]:
    """Convert the cost and token limits of a run to budgets that end the run."""
    own = ("limits.cost", limits.cost, 0), ("limits.tokens", 0, limits.tokens)
    return [Budget(name, cost=cost, tokens=tokens, ends_run=True) for name, cost, tokens in own if cost or tokens]


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A budget that covers no runs, because its user or project does not exist."""

    budget: str
    key: Literal["user", "project"]
    problem: str


async def unknown_names(store: Store, budgets: Iterable[Budget]) -> list[UnknownName]:
    """Return the budgets with an unknown user or project. A budget without a user can refer to any user's project."""
    named = [budget for budget in budgets if budget.user or budget.project]
    users = {name: user.id for user in await store.tokens.users() for name in (user.id, user.name)} if named else {}
    found: list[UnknownName] = []
    for budget in named:
        owners = {users[budget.user]} if budget.user in users else set[str]() if budget.user else set(users.values())
        if not owners:
            found.append(UnknownName(budget.name, "user", f"User {budget.user!r} not found."))
        elif budget.project and not [owner for owner in owners if await _has_project(store, owner, budget.project)]:
            found.append(UnknownName(budget.name, "project", f"Project {budget.project!r} not found."))
    return found


async def _has_project(store: Store, owner: str, project: str) -> bool:
    try:
        await store.of(owner).projects.get(project)
    except NotFound:
        return False
    return True


def used_text(state: BudgetState) -> str:
    """Return how much of a budget is used, such as `$4.20 of $5.00`, with the number of runs whose price is unknown."""
    budget, spent = state.budget, state.spent
    texts: list[str] = []
    if budget.cost:
        unknown = f" + {spent.unpriced:,} run{'s'[: spent.unpriced != 1]} of unknown price" if spent.unpriced else ""
        texts.append(f"{dollars(spent.cost)} of {dollars(budget.cost)}{unknown}")
    if budget.tokens:
        texts.append(f"{spent.tokens:,} of {budget.tokens:,} tokens")
    return ", ".join(texts)


def limit_text(budget: Budget) -> str:
    """Return the limits of a budget, such as `$5.00, 100,000 tokens`."""
    texts = (dollars(budget.cost) if budget.cost else "", f"{budget.tokens:,} tokens" if budget.tokens else "")
    return ", ".join(filter(None, texts))


def dollars(nano: int) -> str:
    """Format an amount of nano-dollars in dollars, with four decimals if it is small."""
    return f"${nano / _NANO:,.2f}" if not nano or nano >= _NANO else f"${nano / _NANO:.4f}"


def reset_text(state: BudgetState) -> str:
    """Return the end of the budget's period in its time zone, such as `2026-12-24 00:00`, or an empty string for a budget per run."""
    if state.resets_at is None:
        return ""
    return f"{datetime.fromtimestamp(state.resets_at / 1000, UTC).astimezone(ZoneInfo(state.budget.tz)):%Y-%m-%d %H:%M}"


def warning(state: BudgetState, parts: Iterable[Part], subject: str = "") -> tuple[tuple[Chunk, ...], tuple[WarnBudget, ...]]:
    """Return a note to add to an answer with these `parts`, and a warning for webhooks.

    Both are empty if the budget is not nearly used up, or if the answer already has the note.

    Only one warning is sent for each `subject`. An empty subject means the run.
    """
    budget, is_used_up = state.budget, state.share >= 1
    id = f"budget-{budget.name}-{state.since}{'-used' if is_used_up else ''}"
    if state.share < NEARLY or any(part.get("type") == "data-note" and part.get("id") == id for part in parts):
        return (), ()
    used, most = (state.spent.cost, budget.cost) if state.limit == "cost" else (state.spent.tokens, budget.tokens)
    warned = WarnBudget(state.limit, used, most, budget.name, budget.per, state.resets_at, subject)
    if is_used_up and budget.ends_run:  # the error of the run reports it
        return (), (warned,)
    return (chunk.data("note", {"text": _note(state)}, id=id),), (warned,)


def _note(state: BudgetState) -> str:
    name = f"{'limit' if state.budget.ends_run else 'budget'} {state.budget.name!r}"
    start = f"The {name} is used up" if state.share >= 1 else f"{state.percent}% of the {name} is used"
    reset = f" It resets at {reset_text(state)}." if state.resets_at is not None else ""
    return f"{start}: {used_text(state)}.{reset}"
