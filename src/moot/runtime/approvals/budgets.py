"""Budgets of runs.

Before each step, people are warned about budgets that are nearly used up, and a used-up budget parks the run with a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from moot.agents.budgets import limit_budgets, reset_text, unknown_names, used_text, warning
from moot.convert.vendor import as_list
from moot.errors import Busy, LimitReached, NotFound
from moot.plugins.registry import attribute
from moot.runtime.approvals.requests import Asker, answered, ask, expiry
from moot.runtime.runtime import Runtime
from moot.types import chunk
from moot.types.approval import Answer, Approval, bind
from moot.types.canonical import Json, dumps
from moot.types.chunk import Chunk
from moot.types.conversation import Project
from moot.types.event import Event
from moot.types.limits import NEARLY, QUESTION, Budget, BudgetState, Spending, SpendingQuery
from moot.types.message import Message
from moot.types.run import Run
from moot.types.served import Served
from moot.types.store import Expire, WarnBudget
from moot.types.token import LOCAL_USER

CONTINUE, STOP = "Continue", "Stop"

_CLOSED = "The budget is no longer used up."

_PERIOD = "moot.config.schedules:period_of"
"""Loaded by path: most configurations have no budgets."""


class Spender(Asker, Protocol):
    """The part of a leg that its budgets depend on."""

    project: Project

    def message(self) -> Message: ...


async def check_budgets(leg: Spender) -> None:
    """Add warnings to the answer about budgets that are nearly used up. If a budget is used up, ask whether the run may continue.

    Raise Parked if the question is still open, and LimitReached if the run may not continue.
    """
    chain = await _chain(leg)
    states = await _states(leg, chain)
    await _report_unknown_names(leg)
    await _close_questions(leg, {_question_id(chain[0], state) for state in states if state.share >= 1})
    await _warn(leg, states)
    has_no_person = Served.of(leg.request.settings) is not None  # a program waits for the response to its request
    for state in states:
        if state.share >= 1 and (has_no_person or not await _may_continue(leg, chain, state)):
            more = "" if has_no_person else f", then `moot chat continue {leg.request.conversation.id[:13]}`"
            fix = f"Raise `budgets.{state.budget.name}` in the configuration{more}."
            raise LimitReached(f"The run stopped because the budget {state.budget.name!r} is used up: {used_text(state)}.", fix=fix)


async def budget_states(runtime: Runtime, owner: str) -> list[BudgetState]:
    """Return the owner's budgets and limits, in the order of the configuration.

    The local user also sees budgets of unknown users and projects.
    """
    users = {name: user.id for user in await runtime.store.tokens.users() for name in (user.id, user.name)}
    found: list[BudgetState] = []
    for budget in (*runtime.settings.budgets, *limit_budgets(runtime.settings.limits)):
        state, project = _state(runtime, budget), ""
        if budget.user and users.get(budget.user) != owner:
            if owner == LOCAL_USER and budget.user not in users:
                found.append(replace(state, problem=f"User {budget.user!r} not found."))
            continue
        try:
            project = (await runtime.store.of(owner).projects.get(budget.project)).id if budget.project else ""
        except NotFound:
            if owner == LOCAL_USER:
                found.append(replace(state, problem=f"Project {budget.project!r} not found."))
            continue
        if state.resets_at is not None:
            (spent,) = await runtime.store.stats.spent([SpendingQuery(owner, state.since, project, budget.agent)])
            state = replace(state, spent=spent)
        found.append(state)
    return found


def _state(runtime: Runtime, budget: Budget) -> BudgetState:
    since, until = attribute(_PERIOD)(budget.per, budget.tz, runtime.now() // 1000)
    return BudgetState(budget, Spending(), since, until)


async def _names_of(runtime: Runtime, owner: str) -> set[str]:
    """Return the user's names, or an empty set if no budget names a user by name."""
    if all(budget.user in ("", owner) for budget in runtime.settings.budgets):
        return set()
    return {user.name for user in await runtime.store.tokens.users() if user.id == owner}


async def _chain(leg: Spender) -> list[Run]:
    """Return the leg's run, and for a sub-agent also the runs above it."""
    chain = [leg.request.run]
    while (parent := chain[-1].parent_run) is not None:
        chain.append(await leg.runtime.store.records.run(parent))
    return chain


async def _states(leg: Spender, chain: Sequence[Run]) -> list[BudgetState]:
    """Return the state of each budget that covers the run."""
    runtime, owner, project = leg.runtime, leg.request.conversation.owner, leg.project
    names = {"", owner, *await _names_of(runtime, owner)}
    agents = {"", *(run.agent for run in chain)}
    covering = [
        _state(runtime, budget)
        for budget in runtime.settings.budgets
        if budget.user in names and budget.project in ("", project.id, project.name) and budget.agent in agents
    ]
    queries = [_query(state, owner, project.id, chain) for state in covering]
    spent = await runtime.store.stats.spent(queries) if queries else []
    return [replace(state, spent=one) for state, one in zip(covering, spent, strict=True)]


def _query(state: BudgetState, owner: str, project: str, chain: Sequence[Run]) -> SpendingQuery:
    budget = state.budget
    if budget.per == "run":  # the topmost run of the budget's agent, or of any agent
        return SpendingQuery(run=[run.id for run in chain if budget.agent in ("", run.agent)][-1])
    return SpendingQuery(owner, state.since, project if budget.project else "", budget.agent)


async def _report_unknown_names(leg: Spender) -> None:
    """At the start of a local user's run, add notes about budgets with unknown users or projects, which this user can correct."""
    run, has_started = leg.request.run, any(part.get("type") == "step-start" for part in leg.message().parts)
    if leg.request.conversation.owner != LOCAL_USER or run.parent_run is not None or has_started:
        return
    texts = [
        (one.budget, f"The budget {one.budget!r} has no effect. {one.problem}")
        for one in await unknown_names(leg.runtime.store, leg.runtime.settings.budgets)
    ]
    known = {str(part.get("id")) for part in leg.message().parts if part.get("type") == "data-note"}
    chunks = tuple(chunk.data("note", {"text": text}, id=id) for name, text in texts if (id := f"budget-{name}-unknown") not in known)
    if chunks:
        await leg.append(Event("chunks", chunks), fold=True)


async def _warn(leg: Spender, states: Sequence[BudgetState]) -> None:
    chunks: list[Chunk] = []
    changes: list[WarnBudget] = []
    parts = leg.message().parts
    for state in states:
        subject = f"{state.budget.name}:{state.since}:{leg.request.conversation.owner if state.since else leg.request.run.id}"
        notes, warned = warning(state, parts, subject)
        chunks += notes
        changes += warned
    if chunks:
        await leg.append(Event("chunks", tuple(chunks)), changes=changes, fold=True)
    near = [state for state in states if state.share >= NEARLY]
    leg.runtime.budget_status = ", ".join(f"budget {state.budget.name} {state.percent}%" for state in near)


def _question_id(run: Run, state: BudgetState) -> str:
    return f"{run.id}/{QUESTION}:{state.budget.name}:{state.since}"


async def _may_continue(leg: Spender, chain: Sequence[Run], state: BudgetState) -> bool:
    """Return True if a person lets the run, or a run above it, continue in this period. Raise Parked if no one has answered yet."""
    for run in chain[1:]:
        stored = await leg.runtime.store.records.approval(_question_id(run, state))
        if stored is not None and stored.answer is not None and _allows(stored.answer):
            return True
    id = await _open_id(leg, _question_id(chain[0], state))
    answer = await ask(leg, _question(leg, id, chain[0], state))
    if answer.answered_by == "moot" and state.resets_at is not None:  # the question expires when the budget resets
        return leg.runtime.now() // 1000 >= state.resets_at
    return _allows(answer)


async def _open_id(leg: Spender, id: str) -> str:
    """Return the question's id. A number is appended if moot closed earlier questions because the budget was raised."""
    number, found = 0, id
    while (stored := await leg.runtime.store.records.approval(found)) is not None and stored.answer is not None:
        if stored.answer.answered_by != "moot" or stored.answer.reason != _CLOSED:
            break
        number += 1
        found = f"{id}#{number}"
    return found


def _allows(answer: Answer) -> bool:
    """Return True if a person chose to continue. Approving the question without a reply means the same."""
    first = next(iter(as_list(answer.value)), CONTINUE)
    reply = first[0] if isinstance(first, list) and first else first
    return answer.approved and str(reply).strip().casefold() == CONTINUE.casefold()


def _question(leg: Spender, id: str, run: Run, state: BudgetState) -> Approval:
    """Return a question about continuing the run. It is open until the budget resets; then the run continues by itself."""
    reset = reset_text(state)
    if leg.request.run.on_crash == "resume":  # a server continues it
        later = f" Without an answer, the run continues at {reset}, when the budget resets."
    else:
        place = f"`moot chat resume {leg.request.conversation.id[:13]}`"
        later = f" It resets at {reset}. The run continues then if this conversation is still open, or later with {place}."
    question: Json = {
        "header": "Budget",
        "text": f"The budget {state.budget.name!r} is used up: {used_text(state)}.{later if reset else ''}",
        "options": [
            {"label": CONTINUE, "description": "Continue this run without this budget" + (" until it resets." if reset else ".")},
            {"label": STOP, "description": "Stop this run."},
        ],
        "multiple": False,
        "choices_only": True,
    }
    arguments, now = dumps([question]), leg.runtime.now() // 1000
    expires = state.resets_at
    if expires is None and leg.request.settings.get("unattended") == "deny":
        expires = expiry(leg, now)
    digest = bind(run.id, leg.request.conversation.directory, QUESTION, b"", arguments)
    return Approval(id, run.id, "", QUESTION, arguments, digest, now, expires, questions=[question])


async def _close_questions(leg: Spender, kept: set[str]) -> None:
    """Close the run's open questions about budgets that are no longer used up, because they were reset, raised or removed."""
    prefix = f"{leg.request.run.id}/{QUESTION}:"
    asked = [str(part.get("id")) for part in leg.message().parts if part.get("type") == "data-questions"]
    for id in asked:
        if not id.startswith(prefix) or id.partition("#")[0] in kept or f"answer:{id}" in leg.index.ends:
            continue
        stored = await leg.runtime.store.records.approval(id)
        if stored is None or stored.answer is not None:
            continue
        closing = answered(stored, Answer(False, reason=_CLOSED, answered_by="moot"))
        try:
            await leg.append(closing, changes=(Expire(id, _CLOSED, early=True),), sync=True)
        except Busy:  # a person answered just now
            continue
