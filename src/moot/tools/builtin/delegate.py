"""delegate, run_status and finish_task: start sub-agents, watch them, and report a sub-agent's result."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from moot.errors import MootError, NotFound
from moot.tools.basics import BaseTool, count, error_text, title
from moot.types.canonical import Json
from moot.types.children import Child, ChildTask
from moot.types.tool import ToolContext, ToolOutput, View


class TaskArguments(BaseModel):
    agent: str = Field(min_length=1, max_length=200, description="Name of the agent")
    prompt: str = Field(min_length=1, max_length=100_000, description="Its task, complete: it sees nothing of this conversation")


class DelegateArguments(TaskArguments):
    background: bool = Field(default=False, description="Don't wait for it; read its result with run_status")
    more: list[TaskArguments] = Field(default=[], max_length=7, description="Further agents to start at the same time")
    context: str = Field(default="", max_length=100_000, description="Text that all of them get before their prompts")


class Delegate(BaseTool):
    """The `delegate` tool. A call that is repeated after a crash finds the sub-agents that it has already started."""

    name = "delegate"
    description = "Give a task to another agent and return its result."
    arguments = DelegateArguments
    concurrent = True
    idempotent = True
    hidden = True
    needs_folder = False
    effects = frozenset({"delegate"})

    async def call(self, arguments: DelegateArguments, context: ToolContext) -> ToolOutput:
        wanted = (arguments, *arguments.more)
        tasks = [ChildTask(one.agent, one.prompt, arguments.context, len(wanted) - at) for at, one in enumerate(wanted)]
        children = context.services.children
        started: list[Child | ToolOutput] = []
        for number, task in enumerate(tasks):
            try:
                started.append(await children.start(task, number, background=arguments.background))
            except MootError as error:
                started.append(ToolOutput(f"{task.agent}: {error_text(error)}", error=True))
        if arguments.background:
            return _output([one if isinstance(one, ToolOutput) else _running(one) for one in started])
        return _output([one if isinstance(one, ToolOutput) else _ended(await children.result(one)) for one in started])

    def doing(self, arguments: DelegateArguments) -> View:
        names = ", ".join(one.agent for one in (arguments, *arguments.more))
        return View(title("Ask", names), "in the background" if arguments.background else "", arguments.prompt, "markdown")

    def done(self, arguments: DelegateArguments, output: ToolOutput) -> View:
        names = ", ".join(one.agent for one in (arguments, *arguments.more))
        return View(title("Asked", names), "in the background" if arguments.background else "", output.text, "markdown")


def _running(child: Child) -> ToolOutput:
    return ToolOutput(f"{child.run.agent} was started. Its run is {child.run.id}.", {"run": child.run.id})


def _ended(child: Child) -> ToolOutput:
    if child.run.status == "finished":
        return ToolOutput(child.summary or f"{child.run.agent} ended without a text.", {"run": child.run.id})
    why = child.run.error.message if child.run.error is not None else "It was stopped."
    so_far = f"\nIts last text:\n{child.summary}" if child.summary else ""
    return ToolOutput(f"{child.run.agent} {child.run.status}: {why}{so_far}", {"run": child.run.id}, error=True)


def _output(outputs: Sequence[ToolOutput]) -> ToolOutput:
    """Return the outputs of all agents as one, which is an error only if all of them are."""
    if len(outputs) == 1:
        return outputs[0]
    text = "\n\n".join(f"{number}. {one.text}" for number, one in enumerate(outputs, 1))
    return ToolOutput(text, [one.value for one in outputs], error=all(one.error for one in outputs))


class StatusArguments(BaseModel):
    run: str = Field(default="", max_length=200, description="A run from delegate; empty = all")
    cancel: bool = Field(default=False, description="Stop that run")


class RunStatus(BaseTool):
    """The `run_status` tool."""

    name = "run_status"
    description = "Show the agents that you started, and their results."
    arguments = StatusArguments
    concurrent = True
    idempotent = True
    hidden = True
    needs_folder = False
    effects = frozenset({"read"})

    async def call(self, arguments: StatusArguments, context: ToolContext) -> ToolOutput:
        if arguments.cancel:
            await context.services.children.cancel(arguments.run)
        children = [child for child in await context.services.children.status() if arguments.run in ("", child.run.id)]
        if arguments.run and not children:
            raise NotFound(f"No agent was started with the run id {arguments.run!r}.", fix="Call run_status without arguments.")
        lines = [_line(child) for child in children]
        value: list[Json] = [{"run": one.run.id, "agent": one.run.agent, "status": one.run.status} for one in children]
        return ToolOutput("\n\n".join(lines) or "No agent was started.", value)

    def doing(self, arguments: StatusArguments) -> View:
        return View("Stop a sub-agent" if arguments.cancel else "Check sub-agents")

    def done(self, arguments: StatusArguments, output: ToolOutput) -> View:
        found = len(output.value) if isinstance(output.value, list) else 0
        return View("Checked sub-agents", count(found, "agent"), output.text, "markdown")


def _line(child: Child) -> str:
    head = f"{child.run.id} {child.run.agent}: {child.run.status}"
    if child.run.awaits is not None:
        head += f", waits for a {child.run.awaits}"
    return f"{head}\n{child.summary}" if child.summary else head


class FinishArguments(BaseModel):
    summary: str = Field(min_length=1, max_length=100_000, description="The result, for the agent that asked")


class FinishTask(BaseTool):
    """The `finish_task` tool, which ends a sub-agent's run. The summary is read from the call's arguments."""

    name = "finish_task"
    description = "End your task and report its result."
    arguments = FinishArguments
    idempotent = True
    hidden = True
    needs_folder = False
    effects = frozenset({"read"})
    ends_run = True

    async def call(self, arguments: FinishArguments, context: ToolContext) -> ToolOutput:
        return ToolOutput("Reported.")

    def doing(self, arguments: FinishArguments) -> View:
        return View("Report the result", body=arguments.summary, language="markdown")

    def done(self, arguments: FinishArguments, output: ToolOutput) -> View:
        return View("Reported the result", body=arguments.summary, language="markdown")
