"""`decide`: ask the user at the terminal about one approval or set of questions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial

from moot.cli.approving import typed
from moot.cli.approving.calls import CallPrompt
from moot.cli.approving.offered import label
from moot.cli.approving.prompting import Pending, Prompt
from moot.cli.approving.questions import QuestionPrompt
from moot.cli.approving.rows import visible_line
from moot.cli.approving.situations import ApprovalContext, Decision, resolved, seconds_left
from moot.cli.editor import edit_text
from moot.cli.output import Output
from moot.cli.picking.drawing import moves_cursor
from moot.errors import MootError
from moot.plugins.registry import attribute
from moot.types.approval import Answer, Approval
from moot.types.canonical import loads_exact

__all__ = ["decide"]

_APPLICATION = "moot.cli.approving.application:run"
"""Loaded by path, so that a run in a pipe never imports prompt-toolkit."""


async def decide(approval: Approval, context: ApprovalContext, output: Output, *, draft: str = "") -> Decision:
    """Ask the user and return their decision without storing it. End early if the approval expires or is answered elsewhere.

    `draft` is the text in the composer, which must not be running. Text typed here that is not an answer is appended to it.
    """
    if moves_cursor():
        decision = await _on_screen(approval, context, output)
    else:
        decision = await typed.ask(approval, context, output)
    output.say(_outcome_text(approval, context, decision), "dim")
    return Decision(decision.answer, draft + decision.draft, decision.outcome)


async def _on_screen(approval: Approval, context: ApprovalContext, output: Output) -> Decision:
    prompt = await _prompt(approval, context)
    return await attribute(_APPLICATION)(
        prompt,
        output,
        resolved=partial(resolved, approval, context),
        perform=_performer(prompt, context, output),
        expires=lambda: seconds_left(approval, context),
    )


async def _prompt(approval: Approval, context: ApprovalContext) -> Prompt:
    if isinstance(approval.questions, list):
        questions = [question for question in approval.questions if isinstance(question, dict)]
        return QuestionPrompt(questions, context.requested_by)
    return CallPrompt(approval, await context.look(approval.arguments), context.directory, context.requested_by)


def _performer(prompt: Prompt, context: ApprovalContext, output: Output) -> Callable[[], Awaitable[Decision | None]]:
    async def perform() -> Decision | None:
        pending, prompt.pending = prompt.pending, None
        if pending is Pending.ANSWER and prompt.proposed is not None:
            prompt.message = await context.check(prompt.proposed)
            return None if prompt.message else Decision(prompt.proposed)
        if isinstance(prompt, CallPrompt):
            try:
                await _perform(prompt, pending, context, output)
            except MootError as error:
                prompt.message = f"{error.message} {error.fix}".rstrip()
        return None

    return perform


async def _perform(prompt: CallPrompt, pending: Pending | None, context: ApprovalContext, output: Output) -> None:
    """Raise MootError if the action fails; the approval stays open."""
    if pending is Pending.EXPLAIN:
        prompt.explanation, prompt.message = await context.explain(prompt.arguments) or "(no explanation)", ""
        return
    text: str | None = prompt.text
    if pending is Pending.EDITOR:
        text = await edit_text(_pretty(prompt.arguments), suffix=".json", output=output)
    if text is None:
        prompt.message = "Nothing was changed."
    elif (arguments := prompt.take_edited(text)) is not None:
        problem = await context.check(Answer(True, arguments=arguments))
        if problem:
            prompt.message = problem
        else:
            prompt.show(await context.look(arguments))


def _pretty(arguments: bytes) -> str:
    return json.dumps(loads_exact(arguments), indent=2, ensure_ascii=False) + "\n"


def _outcome_text(approval: Approval, context: ApprovalContext, decision: Decision) -> str:
    name = visible_line(approval.tool)
    match decision.outcome:
        case "elsewhere":
            return f"{name}: answered elsewhere"
        case "expired":
            return f"{name}: expired, so it was denied"
        case "later":
            return f"{name}: still waiting for approval; {context.resume}"
        case "stop":
            return f"{name}: stopping the run"
        case "answered":
            return f"{name}: {_answer_text(approval, decision.answer)}" if approval.questions is None else f"{name}: answered"


def _answer_text(approval: Approval, answer: Answer | None) -> str:
    option = next((option for option in approval.options if answer is not None and option.id == answer.option), None)
    if option is not None and option.kind not in ("allow_once", "reject_once"):
        return label(option)
    if answer is None or not answer.approved:
        return "denied"
    if answer.arguments is not None:
        return "allowed once, with changes"
    return {"conversation": "allowed in this conversation", "always": "always allowed"}.get(answer.option, "allowed once")
