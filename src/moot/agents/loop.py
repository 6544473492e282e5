"""moot's own loop (agent_type `moot`): repeat model call and tool calls until the answer is complete or a limit is reached."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from moot.agents.budgets import limit_budgets, warning
from moot.agents.calls import run_calls
from moot.agents.journal import HANDED, Attempt, Position, Timing, answer_metadata, locate, take_steers
from moot.agents.model_call import answer
from moot.types import chunk
from moot.types.canonical import JsonObject
from moot.types.context import Choice, RunContext, StepSetup
from moot.types.crash import point
from moot.types.event import Event
from moot.types.exchange import Ending, Failure
from moot.types.hooks import STOPPED
from moot.types.limits import BudgetState, Limits, Spending
from moot.types.message import is_tool
from moot.types.run import RunOutcome, RunRequest
from moot.types.tool import Tool


def over_limit(limits: Limits, position: Position, max_steps: int) -> Failure | None:
    """Return the reason why the run must stop before its next step, or None if it may continue."""
    if max_steps and position.step > max_steps:
        return _limit(f"The run stopped after {max_steps} steps.", "--max-steps or limits.steps")
    if limits.repeats and len(last := position.signatures[-limits.repeats :]) == limits.repeats and len(set(last)) == 1:
        return _limit(f"The run stopped after {limits.repeats} identical tool calls in a row.", "limits.repeats")
    usage = position.usage
    tokens = (usage.input or 0) + (usage.output or 0)
    if limits.tokens and tokens >= limits.tokens:
        return _limit(f"The run stopped after {tokens:,} tokens.", "limits.tokens")
    if limits.cost and any(cost is None for cost in position.costs):
        return _limit("The run stopped because a cost limit is set, but the price of this model is unknown.", "limits.cost")
    if limits.cost and position.spent >= limits.cost:
        return _limit(f"The run stopped after ${position.spent / 1e9:.4f}.", "--max-cost or limits.cost")
    return None


def used_limits(limits: Limits, position: Position) -> list[BudgetState]:
    """Return the run's cost and token limits, and how much of each is used."""
    spent = Spending(position.spent, (position.usage.input or 0) + (position.usage.output or 0))
    return [BudgetState(budget, spent) for budget in limit_budgets(limits)]


def _limit(message: str, key: str) -> Failure:
    return Failure(message, kind="limit", fix=f"Raise the limit with {key}.")


class Loop:
    """The agent service of moot itself. Stateless: a run's position is in its journal."""

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        position = locate(await context.journal())
        last = position.endings[-1] if position.endings else Ending("stop")
        while True:
            await _steer(context, position)
            if position.finished:
                return _outcome(position, last.finish_reason)
            setup = await context.setup()
            if (failure := over_limit(setup.limits, position, setup.max_steps)) is not None:
                return _outcome(position, "other", failure)
            # in the last step, a small model that calls by schema gets no tools, so that it must answer
            by_schema = setup.choices[0].model.tools == "schema"
            tools = () if by_schema and 0 < setup.max_steps <= position.step else setup.tools
            attempt, choice = await answer(context, request, position, _announce(setup, tools, position.tools), tools)
            last = attempt.ending or last
            if last.error is not None:
                return _outcome(position, "error", last.error)
            await run_calls(context, position.step, attempt.calls, {tool.name: tool for tool in tools}, setup.served)
            passed = setup.served is not None and any(setup.served.takes(call.tool) for call in attempt.calls)
            passed = passed or _is_ended(context, tools, attempt)
            used = used_limits(setup.limits, position)
            await _finish_step(context, request, position, attempt, choice, handed=passed, used=used)
            if attempt.calls and (hooks := context.ports.hooks) is not None and hooks.stopping:
                return _outcome(position, STOPPED)


def _announce(setup: StepSetup, tools: tuple[Tool, ...], before: frozenset[str] | None) -> StepSetup:
    """Inform the model, once, that the set of tools has changed since its last answer."""
    names = frozenset(tool.name for tool in tools)
    if before is None or names == before or not names:
        return setup
    line = f"The available tools have changed. They are now: {', '.join(sorted(names))}."
    return dataclasses.replace(setup, system=f"{setup.system}\n\n{line}")


def _is_ended(context: RunContext, tools: tuple[Tool, ...], attempt: Attempt) -> bool:
    """Return True if a tool that ends the run was called successfully."""
    enders = {tool.name for tool in tools if getattr(tool, "ends_run", False)}
    calls = {call.id for call in attempt.calls if call.tool in enders}
    return bool(calls) and any(
        part.get("toolCallId") in calls and part.get("state") == "output-available" for part in context.message().parts if is_tool(part)
    )


async def _steer(context: RunContext, position: Position) -> None:
    """Add the messages that users sent during the last step. A run that had finished then continues, to answer them."""
    if not position.attempts and await take_steers(context):
        point("steer.taken")
        position.finished = False


async def _finish_step(
    context: RunContext,
    request: RunRequest,
    position: Position,
    attempt: Attempt,
    choice: Choice,
    *,
    handed: bool,
    used: Sequence[BudgetState],
) -> None:
    ending = attempt.ending or Ending("other")
    step: JsonObject = {"step": position.step, "model": str(choice.model.id)}
    cost = position.costs[-1] if position.costs else None
    agent, model, provider = request.run.agent, choice.model.id.model, choice.provider.name
    timing = Timing(attempt.at, attempt.ended_at, attempt.first_at)
    metadata = answer_metadata(context, ending, step, cost, timing, agent=agent, model=model, provider=provider)
    if choice.model.note:
        metadata["note"] = choice.model.note
    if choice.model.context and ending.usage.input is not None:
        metadata["context_usage"] = round(min((ending.usage.input + (ending.usage.output or 0)) / choice.model.context, 1.0), 4)
    parts = context.message().parts if used else ()
    warnings = [warning(state, parts) for state in used]
    notes = [note for notes, _ in warnings for note in notes]
    chunks = (chunk.message_metadata(metadata), *notes, chunk.FINISH_STEP)
    event = Event("chunks", chunks, phase="end", key=f"step:{position.step}", body=HANDED if handed else None)
    await context.append(event, changes=[change for _, changes in warnings for change in changes], fold=True)
    point("step.finished")
    position.finish_step(handed=handed)


def _outcome(position: Position, reason: str, failure: Failure | None = None) -> RunOutcome:
    return RunOutcome(
        "finished" if failure is None else "failed", finish_reason=reason, error=failure, usage=position.usage, cost=position.cost
    )
