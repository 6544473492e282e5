"""`decide`: one approval or set of questions, put to the person at the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from functools import partial

from moot.cli.approving import typed
from moot.cli.approving.calls import CallPrompt
from moot.cli.approving.offered import label
from moot.cli.approving.prompting import Prompt, Wish
from moot.cli.approving.questions import QuestionPrompt
from moot.cli.approving.rows import spelled
from moot.cli.approving.situations import Decided, Situation, seconds_left, settled
from moot.cli.editor import edit_text
from moot.cli.output import Output
from moot.errors import MootError
from moot.plugins.registry import Registry
from moot.types.approval import Answer, Approval
from moot.types.canonical import loads_exact

__all__ = ["decide"]

_SCREENS = Registry("moot.prompts", {"application": "moot.cli.approving.application:run"})
"""By path, so that a run in a pipe never waits for prompt-toolkit."""


async def decide(approval: Approval, situation: Situation, output: Output, *, draft: str = "") -> Decided:
    """What the person says; nothing of it is stored yet. Ends by itself when it expires or somebody else has answered.

    `draft` is what stands in a composer, which must not be running: what is typed here and is no answer comes back behind it.
    """
    if os.environ.get("TERM", "") in ("dumb", ""):
        decided = await typed.decide(approval, situation, output)
    else:
        decided = await _on_screen(approval, situation, output)
    output.say(_outcome(approval, situation, decided), "dim")
    return Decided(decided.answer, draft + decided.draft, decided.how)


async def _on_screen(approval: Approval, situation: Situation, output: Output) -> Decided:
    prompt = await _prompt(approval, situation)
    return await _SCREENS.load("application")(
        prompt,
        output,
        settled=partial(settled, approval, situation),
        perform=_performing(prompt, situation, output),
        expires=lambda: seconds_left(approval, situation),
    )


async def _prompt(approval: Approval, situation: Situation) -> Prompt:
    if isinstance(approval.questions, list):
        questions = [question for question in approval.questions if isinstance(question, dict)]
        return QuestionPrompt(questions, situation.asked_by)
    return CallPrompt(approval, await situation.look(approval.arguments), situation.directory, situation.asked_by)


def _performing(prompt: Prompt, situation: Situation, output: Output) -> Callable[[], Awaitable[Decided | None]]:
    async def perform() -> Decided | None:
        wish, prompt.wish = prompt.wish, None
        if wish is Wish.ANSWER and prompt.proposed is not None:
            prompt.message = await situation.check(prompt.proposed)
            return None if prompt.message else Decided(prompt.proposed)
        if isinstance(prompt, CallPrompt):
            try:
                await _do(prompt, wish, situation, output)
            except MootError as error:
                prompt.message = f"{error.message}; {error.fix}" if error.fix else error.message
        return None

    return perform


async def _do(prompt: CallPrompt, wish: Wish | None, situation: Situation, output: Output) -> None:
    """Raises MootError when it could not be done; the call stays pending."""
    if wish is Wish.EXPLAIN:
        prompt.explanation, prompt.message = await situation.explain(prompt.arguments) or "(nothing)", ""
        return
    text: str | None = prompt.text
    if wish is Wish.EDITOR:
        text = await edit_text(_pretty(prompt.arguments), suffix=".json", output=output)
    if text is None:
        prompt.message = "nothing was changed"
    elif (arguments := prompt.take_edited(text)) is not None:
        problem = await situation.check(Answer(True, arguments=arguments))
        if problem:
            prompt.message = problem
        else:
            prompt.show(await situation.look(arguments))


def _pretty(arguments: bytes) -> str:
    return json.dumps(loads_exact(arguments), indent=2, ensure_ascii=False) + "\n"


def _outcome(approval: Approval, situation: Situation, decided: Decided) -> str:
    name = " ".join(spelled(approval.tool))
    match decided.how:
        case "elsewhere":
            return f"{name}: answered elsewhere"
        case "expired":
            return f"{name}: expired, which is a no"
        case "later":
            return f"{name}: left waiting; {situation.resume}"
        case "stop":
            return f"{name}: stopping the run"
        case "answered":
            return f"{name}: {_said(approval, decided.answer)}" if approval.questions is None else f"{name}: answered"


def _said(approval: Approval, answer: Answer | None) -> str:
    option = next((option for option in approval.options if answer is not None and option.id == answer.option), None)
    if option is not None and option.kind not in ("allow_once", "reject_once"):
        return label(option)
    if answer is None or not answer.approved:
        return "denied"
    if answer.arguments is not None:
        return "allowed once, as edited"
    return {"conversation": "allowed in this conversation", "always": "always allowed"}.get(answer.option, "allowed once")
