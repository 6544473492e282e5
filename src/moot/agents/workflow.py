"""Workflows: each step of the run is a sub-agent, and its check is a shell command or a test of its output.

Steps and checks are calls to the tools `delegate` and `shell`, so policy, journal, sandbox and display are the same as for calls by a
model. All state is in the journal and the answer, so a resumed run does not repeat steps that have ended.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from anyio import to_thread

from moot.agents.calls import UNKNOWN, UNKNOWN_REPEATED, run_call
from moot.agents.journal import Call, take_steers
from moot.convert.history import output_text
from moot.convert.vendor import as_list
from moot.errors import MootError, Refused, StoreError
from moot.guard import processes
from moot.tools.catalogue import provided_tool
from moot.tools.patterns import NOT_FOUND
from moot.types import chunk
from moot.types.canonical import JsonObject
from moot.types.children import Children
from moot.types.chunk import Chunk
from moot.types.context import RunContext
from moot.types.event import Event
from moot.types.exchange import Failure
from moot.types.message import Part, is_tool, text_of
from moot.types.run import References, RunOutcome, RunRequest
from moot.types.workflow import CheckKind, StepCheck, Workflow, WorkflowStep, filled, filled_line, filled_test

KEY = "workflow:"
"""Prefix of the journal keys of a workflow's calls."""

_SEARCHED = 100_000
"""Maximum number of characters of an output to search with a regular expression, and maximum length of the expression."""

_SECONDS = 10.0
"""Time limit for applying a regular expression."""

_UNKNOWN = (UNKNOWN, UNKNOWN_REPEATED)
"""Errors of a check that was interrupted. Old versions stored the first of these texts."""

_QUOTED = 4_000
"""Maximum number of characters of an earlier attempt's output to quote in the next attempt."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """The reason why an attempt failed."""

    reason: str
    output: str = ""
    shown: bool = False
    """True if the answer already shows the reason as the error of a call."""
    final: bool = False
    """True if another attempt would be pointless: a person stopped the step, or its check is not allowed."""


class WorkflowRunner:
    """The agent service for runs that have a workflow, regardless of their agents. Stateless."""

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
        """Return the step's output, or the reason why its last attempt failed."""
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
        key, agent = f"{KEY}{step.name}:{attempt}", step.agent or self.request.run.agent
        found = References()
        if self.context.standing(f"{key}:call") == "new":
            try:
                found = await self._prompt(step, agent)
            except StoreError:
                raise
            except MootError as error:
                return _Fault(error.advice(), final=True)
        part = await self._call(key, "delegate", {"agent": agent, "prompt": found.text + _about(fault)}, title, found)
        output = output_text(part)
        if part.get("state") != "output-available":
            own = [child.run.status for child in await self._children.status() if child.run.parent_run == self.request.run.id]
            return _Fault(
                output or "The call was not allowed.", shown=True, final="cancelled" in own or part.get("state") == "output-denied"
            )
        if step.check is None:
            return output
        return await self._check(step.check, f"{KEY}{step.name}:{attempt}:check", output, {**self.outputs, step.name: output})

    @property
    def _children(self) -> Children:
        return self.context.tool_context(provided_tool("delegate"), KEY, "").services.children

    async def _prompt(self, step: WorkflowStep, agent: str) -> References:
        """Return the step's prompt with all values filled in, and its attachments.
        Outputs of earlier steps are not searched for references.
        """
        marks = {name: f"\x1f{self.request.run.id}:{name}\x1f" for name in self.outputs}  # a reference ends before such a character
        outputs = {mark: self.outputs[name] for name, mark in marks.items()}
        found = await self._children.references(agent, filled(step.prompt, self.workflow.values, marks), attended=self.workflow.attended)
        if not outputs:
            return found
        pattern = re.compile("|".join(map(re.escape, outputs)))
        notes = tuple(pattern.sub("…", note) for note in found.notes)
        return replace(found, text=pattern.sub(lambda mark: outputs[mark[0]], found.text), notes=notes)

    async def _check(self, check: StepCheck, key: str, output: str, outputs: dict[str, str]) -> str | _Fault:
        """Return the output if it passes the check, otherwise the reason for the failure."""
        if check.kind != "command":
            return await _tested(check.kind, filled_test(check, self.workflow.values, outputs), output)
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

    async def _call(self, key: str, tool: str, arguments: JsonObject, title: str, found: References | None = None) -> Part:
        """Make a call, once, and return its part of the answer. Raise Parked if the call is waiting for a sub-agent or a person.

        If the call is already in the answer, its arguments don't change. A prompt's attachments are stored with the arguments.
        """
        context = self.context
        id = f"step-{hashlib.sha256(f'{self.request.run.id}/{key}'.encode()).hexdigest()[:32]}"  # endpoints accept at most 40 characters
        if context.standing(f"{key}:call") == "new":
            await take_steers(context)
            if tool == "delegate" and (added := _steered(context)):
                arguments = {**arguments, "prompt": f"{arguments['prompt']}\n\nThe user adds: {added}"}
            texts = (*((title,) if title else ()), *(found.notes if found is not None else ()))
            notes = [chunk.data("note", {"text": text}, id=f"{key}:note{at or ''}") for at, text in enumerate(texts)]
            body: JsonObject = {}
            if found is not None and (found.parts or found.calls):
                body = {"parts": [*found.parts], "calls": [*found.calls]}
            piece: Chunk = {"type": "tool-input-available", "toolCallId": id, "toolName": tool, "input": arguments}
            chunks = (*_next_step(context), *notes, piece)
            await context.append(Event("chunks", chunks, phase="end", key=f"{key}:call.0", body=body or None), fold=True)
        # the person who runs a workflow has chosen its agents; what its checks may do is up to the permissions
        call = Call(id, tool, _part(context, id).get("input"), chosen=tool == "delegate", repeated=tool == "shell")
        await run_call(context, key, call, {tool: provided_tool(tool)})
        return _part(context, id)


async def _tested(kind: CheckKind, wanted: str, output: str) -> str | _Fault:
    """Return the output if it contains the text or matches the pattern, otherwise the reason for the failure."""
    if kind == "contains":
        return output if wanted in output else _Fault(f"The output does not contain {wanted!r}.", output)
    if problem := _problem_of(wanted):
        return _Fault(f"Its check {wanted[:_QUOTED]!r} can't be used: {problem}.", output, final=True)
    passed = await _matches(wanted, output[:_SEARCHED])
    if passed is None:
        return _Fault(f"Searching the output for {wanted!r} took more than {_SECONDS:g} s.", output, final=True)
    return output if passed else _Fault(f"The output does not match {wanted!r}.", output)


def _problem_of(pattern: str) -> str:
    """Return the reason why an expression can't be used after its values are filled in, or an empty string if it can."""
    if len(pattern.encode("utf-8", "replace")) > _SEARCHED or "\0" in pattern:
        return f"with its values, it is longer than {_SEARCHED:,} bytes or contains a NUL character"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""


async def _matches(pattern: str, text: str) -> bool | None:
    """Return whether a regular expression matches, or None if the search takes too long.
    `re` can't be stopped, so the search runs in a child process.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "output.txt")
        await to_thread.run_sync(partial(path.write_text, text, "utf-8", "replace", newline=""))
        done = await processes.output([sys.executable, "-I", "-m", "moot.tools.patterns", pattern, str(path)], timeout=_SECONDS)
    if done.code not in (0, NOT_FOUND, None):
        raise Refused(f"The search for {pattern!r} failed: {done.stderr.decode('utf-8', 'replace')[-500:]}")
    return None if done.code is None else done.code == 0


async def _answer(context: RunContext, text: str) -> None:
    """Write the output of the last step as the text of the answer, unless it is already there."""
    if context.standing(f"{KEY}end") == "new":
        id = f"{KEY}end"
        pieces: tuple[Chunk, ...] = (
            {"type": "text-start", "id": id},
            {"type": "text-delta", "id": id, "delta": text},
            {"type": "text-end", "id": id},
        )
        await context.append(Event("chunks", (*_next_step(context), *pieces), phase="end", key=f"{KEY}end.0"), fold=True)


def _next_step(context: RunContext) -> tuple[Chunk, ...]:
    """Return the chunks that end the answer's open step, if there is one, and start the next step."""
    is_open = any(part.get("type") == "step-start" for part in context.message().parts)
    return (chunk.FINISH_STEP, chunk.START_STEP) if is_open else (chunk.START_STEP,)


def _part(context: RunContext, id: str) -> Part:
    return next(part for part in context.message().parts if part.get("toolCallId") == id)


def _is_unanswered(context: RunContext) -> bool:
    """Return whether a call needed an approval but no one was available to give it."""
    return context.message().metadata.get("needs_approval") is True


def _steered(context: RunContext) -> str:
    """Return the messages that the user has sent since the last call."""
    texts: list[str] = []
    for part in context.message().parts:
        if is_tool(part):
            texts.clear()
        elif part.get("type") == "steering-message":
            texts.append(text_of([piece for piece in as_list(part.get("parts")) if isinstance(piece, dict)]))
    return "\n\n".join(filter(None, texts))


def _about(fault: _Fault | None) -> str:
    """Return the text that describes the failed attempt to the next one."""
    if fault is None:
        return ""
    answer = f"\nIts answer was:\n{fault.output[:_QUOTED]}\n" if fault.output else ""
    return f"\n\nAn earlier attempt at this task failed.{answer}\nThe reason:\n{fault.reason[-_QUOTED:]}"
