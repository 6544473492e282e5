"""Workflows: each step of the run is a sub-agent, its check a shell command or a test of its output.

The calls are those of the tools `delegate` and `shell`, so policy, journal, sandbox and display are the same as for calls of a model. All
state is in the journal and the answer, so a resumed run repeats no step that has ended.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from moot.agents.calls import UNKNOWN, UNKNOWN_REPEATED, run_call
from moot.agents.journal import take_steers
from moot.agents.position import Call
from moot.convert.history import output_text
from moot.convert.vendor import as_list
from moot.errors import Refused
from moot.guard import processes
from moot.tools.catalogue import provided_tool
from moot.tools.patterns import NOT_FOUND
from moot.types import chunk
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.context import RunContext
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.message import Part, is_tool, text_of
from moot.types.run import RunOutcome, RunRequest
from moot.types.workflow import StepCheck, Workflow, WorkflowStep, filled, filled_line

KEY = "workflow:"
"""Prefix of the journal keys of a workflow's calls."""

_SEARCHED = 100_000
"""Number of characters of an output that a regular expression is applied to."""

_SECONDS = 10.0
"""Time limit for applying a regular expression."""

_UNKNOWN = (UNKNOWN, UNKNOWN_REPEATED)
"""Errors of a check that was cut off. Old versions stored the first one."""

_QUOTED = 4_000
"""Number of characters of an earlier attempt that the next one gets to see."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """The reason why an attempt failed."""

    reason: str
    output: str = ""
    shown: bool = False
    """True if the answer already shows it, as the error of a call."""
    final: bool = False
    """True if another attempt would be pointless: a person stopped the step, or its check is not allowed."""


class WorkflowRunner:
    """The service of runs with a workflow, whatever their agent is. Stateless."""

    async def run(self, request: RunRequest, context: RunContext) -> RunOutcome:
        workflow = Workflow.of(request.settings) or Workflow("", ())
        await take_steers(context)  # those that arrived while the run was ending
        outputs: dict[str, str] = {}
        for number, step in enumerate(workflow.steps, 1):
            found = await _Attempts(request, context, workflow, outputs, number).run(step)
            if isinstance(found, _Fault):
                message = f"Step {number} of {len(workflow.steps)}, {step.name!r}, failed: {found.reason}"
                return RunOutcome(
                    "failed", finish_reason="error", error=Failure(message, "needs_approval" if _is_unanswered(context) else "step")
                )
            outputs[step.name] = found
        await _answer(context, outputs[workflow.steps[-1].name] if workflow.steps else "")
        return RunOutcome("finished", finish_reason="stop")


@dataclass(frozen=True, slots=True)
class _Attempts:
    """The attempts of one step."""

    request: RunRequest
    context: RunContext
    workflow: Workflow
    outputs: dict[str, str]
    number: int

    async def run(self, step: WorkflowStep) -> str | _Fault:
        """Return the step's output, or why its last attempt failed."""
        fault: _Fault | None = None
        for attempt in range(step.retries + 1):
            found = await self._attempt(step, attempt, fault)
            if isinstance(found, str) or found.final:
                return found
            fault = found
        return fault or _Fault("It has no attempts.")

    async def _attempt(self, step: WorkflowStep, attempt: int, fault: _Fault | None) -> str | _Fault:
        title = f"Step {self.number} of {len(self.workflow.steps)}: {step.name}"
        if fault is not None:
            title = f"{title}, attempt {attempt + 1} of {step.retries + 1}{'' if fault.shown else f'. {fault.reason}'}"
        prompt = filled(step.prompt, self.workflow.values, self.outputs)
        arguments: JsonObject = {"agent": step.agent or self.request.run.agent, "prompt": prompt + _about(fault)}
        part = await self._call(f"{KEY}{step.name}:{attempt}", "delegate", arguments, title)
        output = output_text(part)
        if part.get("state") != "output-available":
            children = await self.context.tool_context(provided_tool("delegate"), KEY, "").services.children.status()
            own = [child.run.status for child in children if child.run.parent_run == self.request.run.id]
            return _Fault(
                output or "The call was not allowed.", shown=True, final="cancelled" in own or part.get("state") == "output-denied"
            )
        if step.check is None:
            return output
        return await self._check(step.check, f"{KEY}{step.name}:{attempt}:check", output, {**self.outputs, step.name: output})

    async def _check(self, check: StepCheck, key: str, output: str, outputs: dict[str, str]) -> str | _Fault:
        """Return the output if it passes the check."""
        if check.kind == "contains":
            return output if check.text in output else _Fault(f"The output does not contain {check.text!r}.", output)
        if check.kind == "matches":
            passed = await _matches(check.text, output[:_SEARCHED])
            if passed is None:
                return _Fault(f"Searching the output for {check.text!r} took more than {_SECONDS:g} s.", output, final=True)
            return output if passed else _Fault(f"The output does not match {check.text!r}.", output)
        try:
            line = filled_line(check.text, self.workflow.values, outputs)
        except ValueError as error:
            return _Fault(str(error), final=True)
        repetition = 0
        while (part := await self._call(f"{key}:{repetition}", "shell", {"command": line}, "")).get("errorText") in _UNKNOWN:
            repetition += 1  # moot was stopped while the check ran
        if part.get("state") == "output-available":
            return output
        why = output_text(part) or "The call was not allowed."
        is_refused = _is_unanswered(self.context) or part.get("state") == "output-denied"
        return _Fault(f"Its check {line!r} failed: {why}", output, True, is_refused)

    async def _call(self, key: str, tool: str, arguments: JsonObject, title: str) -> Part:
        """Make a call, once, and return its part of the answer. Raise Parked while it waits for a sub-agent or a person.

        The arguments of a call that is already in the answer stay as they are.
        """
        context = self.context
        id = f"step-{hashlib.sha256(f'{self.request.run.id}/{key}'.encode()).hexdigest()[:32]}"  # endpoints accept at most 40 characters
        if context.standing(f"{key}:call") == "new":
            await take_steers(context)
            if tool == "delegate" and (added := _steered(context)):
                arguments = {**arguments, "prompt": f"{arguments['prompt']}\n\nThe user adds: {added}"}
            notes = (chunk.data("note", {"text": title}, id=f"{key}:note"),) if title else ()
            piece: Chunk = {"type": "tool-input-available", "toolCallId": id, "toolName": tool, "input": arguments}
            chunks = (*_next_step(context), *notes, piece)
            await context.append(Event("chunks", chunks, phase="end", key=f"{key}:call.0"), fold=True)
        # the person who runs a workflow has chosen its agents; what its checks may do is up to the permissions
        call = Call(id, tool, _part(context, id).get("input"), chosen=tool == "delegate", repeated=tool == "shell")
        await run_call(context, key, call, {tool: provided_tool(tool)})
        return _part(context, id)


async def _matches(pattern: str, text: str) -> bool | None:
    """Return whether a regular expression matches; None if that takes too long. A child process searches, because nothing stops `re`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "output.txt")
        await to_thread.run_sync(partial(path.write_text, text, "utf-8", "replace", newline=""))
        done = await processes.output([sys.executable, "-I", "-m", "moot.tools.patterns", pattern, str(path)], timeout=_SECONDS)
    if done.code not in (0, NOT_FOUND, None):
        raise Refused(f"The search for {pattern!r} failed: {done.stderr.decode('utf-8', 'replace')[-500:]}")
    return None if done.code is None else done.code == 0


async def _answer(context: RunContext, text: str) -> None:
    """Write the output of the last step as the text of the answer, once."""
    if context.standing(f"{KEY}end") == "new":
        id = f"{KEY}end"
        pieces: tuple[Chunk, ...] = (
            {"type": "text-start", "id": id},
            {"type": "text-delta", "id": id, "delta": text},
            {"type": "text-end", "id": id},
        )
        await context.append(Event("chunks", (*_next_step(context), *pieces), phase="end", key=f"{KEY}end.0"), fold=True)


def _next_step(context: RunContext) -> tuple[Chunk, ...]:
    """Return the chunks that end the open step of the answer, if there is one, and start the next."""
    is_open = any(part.get("type") == "step-start" for part in context.message().parts)
    return (chunk.FINISH_STEP, chunk.START_STEP) if is_open else (chunk.START_STEP,)


def _part(context: RunContext, id: str) -> Part:
    return next(part for part in context.message().parts if part.get("toolCallId") == id)


def _is_unanswered(context: RunContext) -> bool:
    """Return whether a call needed an approval that no one was available to give."""
    return context.message().metadata.get("needs_approval") is True


def _steered(context: RunContext) -> str:
    """Return the texts that the user sent since the last call."""
    texts: list[str] = []
    for part in context.message().parts:
        if is_tool(part):
            texts.clear()
        elif part.get("type") == "steering-message":
            texts.append(text_of([piece for piece in as_list(part.get("parts")) if isinstance(piece, dict)]))
    return "\n\n".join(filter(None, texts))


def _about(fault: _Fault | None) -> str:
    """Return what the next attempt gets to know about the one that failed."""
    if fault is None:
        return ""
    answer = f"\nIts answer was:\n{fault.output[:_QUOTED]}\n" if fault.output else ""
    return f"\n\nAn earlier attempt at this task failed.{answer}\nThe reason:\n{fault.reason[-_QUOTED:]}"
