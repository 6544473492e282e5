"""Sub-agents: runs that a run starts, each in its own conversation below that of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from moot.types.run import TERMINAL, References, Run

DELEGATING = ("delegate", "run_status")
"""The tools with which an agent starts sub-agents and watches them."""
FINISH = "finish_task"
"""The tool that ends a sub-agent's run with a summary."""

BACKGROUND = "background"
"""The key in `Run.settings` that marks a sub-agent whose parent doesn't wait for it."""

ChildStatus: TypeAlias = Literal["standby", "running", "pending", "finished"]
"""standby: queued or interrupted · running · pending: waiting for a person, its client or a time · finished: ended in any way."""


@dataclass(frozen=True, slots=True)
class ChildTask:
    """The work of one sub-agent."""

    agent: str
    prompt: str
    context: str = ""
    """Text that precedes the prompt, the same for all agents that are started together."""
    left: int = 1
    """Number of tasks that the same call starts, counted from this task. They share the budget with the parent."""


@dataclass(frozen=True, slots=True)
class Child:
    """A sub-agent's run as its parent sees it."""

    run: Run
    task: str = ""
    """The first line of its prompt."""
    summary: str = ""
    """The result: the sub-agent's summary if there is one, else its last text. Empty until the run has ended."""

    @property
    def status(self) -> ChildStatus:
        return child_status(self.run)

    @property
    def ended(self) -> bool:
        return self.run.status in TERMINAL


def child_status(run: Run) -> ChildStatus:
    """Return a run's status as shown in the agent tree."""
    if run.status in TERMINAL:
        return "finished"
    if run.status == "waiting" and run.awaits != "run":
        return "pending"
    return "standby" if run.status in ("queued", "interrupted") else "running"


class Children(Protocol):
    """The sub-agents of one run. A child never gets more rights, folders, budget or nesting depth than its parent has left."""

    async def start(self, task: ChildTask, number: int = 0, *, background: bool = False) -> Child:
        """Start a sub-agent, or return the one that the same call has already started with this number.

        With `background`, the parent doesn't wait for it. Raise UsageError if the agent is unknown or may not be called, LimitReached if
        there are too many sub-agents.
        """
        ...

    async def references(self, agent: str, prompt: str, *, attended: bool) -> References:
        """Return everything that a prompt for a sub-agent refers to with `@`.

        Raise Refused or UsageError if something can't be attached. `attended` is true if a person chose the prompt, which counts as
        approval under an `ask` rule.
        """
        ...

    async def status(self) -> list[Child]:
        """Return the run's sub-agents, and the background sub-agents of earlier runs of its conversation, oldest first.

        Sub-agents whose process has died are resumed.
        """
        ...

    async def result(self, child: Child) -> Child:
        """Return the child once it has ended.

        Raise Parked if the child is still working. The call starts again when all awaited children have ended.
        """
        ...

    async def cancel(self, run: str) -> None:
        """Stop one of these sub-agents and its own sub-agents. Raise NotFound if there is no such child."""
        ...
