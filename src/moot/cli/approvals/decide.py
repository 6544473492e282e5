"""Ask the user in the terminal about one approval or one set of questions."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from moot.cli.approvals.preview import call_rows
from moot.cli.approvals.prompts import QUIET, CallPrompt, Pending, Prompt, QuestionPrompt
from moot.cli.console.output import Output
from moot.cli.terminal.prompts.editor import edit_text
from moot.cli.terminal.prompts.layout import moves_cursor
from moot.cli.terminal.prompts.plain import ask_line
from moot.engine import Engine
from moot.errors import MootError
from moot.features.approvals import CallPreview, command_of, explain, preview_call
from moot.guard.roots import allowed_folders
from moot.guard.terminal import visible_line
from moot.plugins.registry import attribute
from moot.runtime.approvals.answers import check_answer, rule_on_edited
from moot.runtime.approvals.typed_answers import TypedQuestion, answer_command, choices, label, parse_answer
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject, loads_exact
from moot.types.conversation import Conversation

if TYPE_CHECKING:
    from moot.cli.remote import AnyEngine
    from moot.cli.remote.engine import RemoteEngine

Outcome: TypeAlias = Literal["answered", "elsewhere", "expired", "later", "stop"]

_STEP = re.compile(r"/tool:(\d+)\.")


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of asking the user."""

    answer: Answer | None
    """The answer to pass to `Runs.answer`; None unless `outcome` is `answered`."""
    draft: str = ""
    """Text that was typed during the question but is not an answer. It belongs in the composer."""
    outcome: Outcome = "answered"
    """`answered`: see `answer`. `elsewhere`: answered by another client. `later`: the approval stays open. `stop`: cancel the run."""


@dataclass(frozen=True, slots=True)
class ApprovalContext:
    """The engine operations that an approval prompt needs."""

    directory: str
    """Working directory of the call; untrusted."""
    requested_by: str
    """Agent and step that made the call, to show to the user."""
    resume: str
    """Instruction for answering later, such as a command; shown to the user."""
    now: Callable[[], int]
    """Return the current time in ms since the epoch."""
    answered: Callable[[], Awaitable[Answer | None]]
    """Return the stored answer, or None if the approval is open."""
    check: Callable[[Answer], Awaitable[str]]
    """Return the reason why an answer is invalid, or an empty string if the answer is valid."""
    explain: Callable[[bytes], Awaitable[str]]
    """Return a model's explanation of the call with these arguments. Raise MootError on failure."""
    look: Callable[[bytes], Awaitable[CallPreview]]
    """Return a preview of the call with these arguments."""


def approval_context(engine: AnyEngine, approval: Approval, conversation: Conversation) -> ApprovalContext:
    """Return the operations for asking about an approval, using this engine."""
    if not isinstance(engine, Engine):
        return _context_on_server(engine, approval, conversation)

    async def answered() -> Answer | None:
        stored = await engine.store.records.approval(approval.id)
        return stored.answer if stored is not None else None

    async def check(answer: Answer) -> str:
        try:
            await check_answer(engine.runtime, approval.id, answer)
        except MootError as error:
            return f"{error.message} {error.fix}".rstrip()
        return ""

    async def look(arguments: bytes) -> CallPreview:
        same = arguments == approval.arguments
        parts = approval.parts if same else (await rule_on_edited(engine.runtime, approval, arguments)).parts
        directory = Path(conversation.directory)
        command = command_of(engine.settings, approval, arguments)
        return await preview_call(arguments, parts, allowed_folders(conversation, directory), directory, command)

    return ApprovalContext(
        directory=conversation.directory,
        requested_by=_requested_by(approval, conversation),
        resume=answer_command(approval, conversation.id) if approval.outside is None else "the agent keeps waiting",
        now=lambda: engine.runtime.now() // 1000,
        answered=answered,
        check=check,
        explain=partial(explain, engine.runtime, approval),
        look=look,
    )


def _context_on_server(engine: RemoteEngine, approval: Approval, conversation: Conversation) -> ApprovalContext:
    async def answered() -> Answer | None:
        stored = await engine.store.records.approval(approval.id)
        return stored.answer if stored is not None else None

    calls = engine.approvals
    return ApprovalContext(
        directory=conversation.directory,
        requested_by=_requested_by(approval, conversation),
        resume=answer_command(approval, conversation.id),
        now=engine.now,
        answered=answered,
        check=partial(calls.check, approval),
        explain=partial(calls.explain, approval),
        look=partial(calls.preview, approval),
    )


def _requested_by(approval: Approval, conversation: Conversation) -> str:
    step = _STEP.search(approval.id)
    role = "sub-agent " if conversation.parent is not None else ""
    return " · ".join(filter(None, (f"{role}{conversation.agent}", f"step {step[1]}" if step else "")))


async def resolved(approval: Approval, context: ApprovalContext) -> Decision | None:
    """Return the decision if the approval has expired or was answered elsewhere, or None if it is still open."""
    if seconds_left(approval, context) == 0:
        return Decision(None, outcome="expired")
    return Decision(None, outcome="elsewhere") if await context.answered() is not None else None


def seconds_left(approval: Approval, context: ApprovalContext) -> int | None:
    """Return the number of seconds until the approval expires, or None if it never does."""
    return None if approval.expires_at is None else max(0, -(-(approval.expires_at - context.now()) // 1000))


_POLL_SECONDS = 0.5


async def ask(approval: Approval, context: ApprovalContext, output: Output) -> Decision:
    """Ask the user to type an answer. End early if the approval expires or is answered by another client."""
    decision: Decision | None = None

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal decision
        while decision is None:
            await anyio.sleep(_POLL_SECONDS)
            decision = await resolved(approval, context)
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        decision = Decision(await _answer_to(approval, context, output))
        group.cancel_scope.cancel()
    if decision is not None and decision.outcome == "elsewhere":
        output.say("")
    return decision or Decision(None, outcome="later")


async def _answer_to(approval: Approval, context: ApprovalContext, output: Output) -> Answer:
    if isinstance(approval.questions, list):
        replies: list[Json] = []
        for question in approval.questions:
            if isinstance(question, dict):
                reply = await _reply(question, output)
                if reply is None:
                    return Answer(approved=False, reason="the user did not answer")
                replies.append(list[Json](reply))
        return Answer(approved=True, value=replies)
    prompt = CallPrompt(approval, await context.look(approval.arguments), context.directory, context.requested_by)
    output.say(f"\n{prompt.title.text}", "bold", exact=True)
    for row in [*call_rows(prompt.preview), *prompt.body()[-1:]]:
        output.say(f"  {row.text}" + (f"  [{row.right}]" if row.right else ""), exact=True)
    await anyio.sleep(QUIET)
    while True:
        line = await ask_line(f"Allow? {choices(approval)}: ", output)
        if line is None:
            return Answer(approved=False, reason="the user left without answering")
        answer = parse_answer(approval, line)
        if answer is None:
            continue
        if problem := await context.check(answer):
            output.say(problem, "yellow")
            continue
        return answer


async def _reply(asked: JsonObject, output: Output) -> Sequence[str] | None:
    question = TypedQuestion(asked)
    output.say(f"\n{question.title}", "bold")
    for number, (name, description) in enumerate(question.options, 1):
        output.say(f"  {number} {name}" + (f" · {description}" if description else ""))
    await anyio.sleep(QUIET)
    while True:
        line = await ask_line(f"Answer ({question.hint}): ", output)
        if line is None:
            return None
        reply = question.parse(line)
        if not isinstance(reply, str):
            return reply
        if reply:
            output.say(reply, "yellow")


_APPLICATION = "moot.cli.approvals.screen:run"
"""Import path, loaded on first use, so that a run in a pipe never imports prompt-toolkit."""


async def decide(approval: Approval, context: ApprovalContext, output: Output, *, draft: str = "") -> Decision:
    """Ask the user and return their decision without storing it. End early if the approval expires or is answered elsewhere.

    `draft` is the text in the composer, which must be suspended. Text typed here that is not an answer is appended to it.
    """
    if moves_cursor():
        prompt = await _prompt(approval, context)
        decision: Decision = await attribute(_APPLICATION)(
            prompt,
            output,
            resolved=partial(resolved, approval, context),
            perform=partial(_perform, prompt, context, output),
            expires=lambda: seconds_left(approval, context),
        )
    else:
        decision = await ask(approval, context, output)
    words = {
        "elsewhere": "answered elsewhere",
        "expired": "expired, so it was denied",
        "later": f"still waiting for {'approval' if approval.questions is None else 'your answer'}; {context.resume}",
        "stop": "stopping the run",
        "answered": _answer_text(approval, decision.answer) if approval.questions is None else "answered",
    }
    output.say(f"{visible_line(approval.tool)}: {words[decision.outcome]}", "dim")
    return Decision(decision.answer, draft + decision.draft, decision.outcome)


async def _prompt(approval: Approval, context: ApprovalContext) -> Prompt:
    if isinstance(approval.questions, list):
        questions = [question for question in approval.questions if isinstance(question, dict)]
        return QuestionPrompt(questions, context.requested_by)
    return CallPrompt(approval, await context.look(approval.arguments), context.directory, context.requested_by)


async def _perform(prompt: Prompt, context: ApprovalContext, output: Output) -> Decision | None:
    pending, prompt.pending = prompt.pending, None
    if pending is Pending.ANSWER and prompt.proposed is not None:
        prompt.message = await context.check(prompt.proposed)
        return None if prompt.message else Decision(prompt.proposed)
    if isinstance(prompt, CallPrompt | QuestionPrompt):
        try:
            if isinstance(prompt, CallPrompt):
                await _explain_or_edit(prompt, pending, context, output)
            elif pending is Pending.EDITOR:
                prompt.change(await edit_text(f"{prompt.document}\n", suffix=".md", output=output))
        except MootError as error:
            prompt.message = f"{error.message} {error.fix}".rstrip()
    return None


async def _explain_or_edit(prompt: CallPrompt, pending: Pending | None, context: ApprovalContext, output: Output) -> None:
    """Get an explanation of the call, or edit its arguments. Raise MootError on failure; the approval stays open."""
    if pending is Pending.EXPLAIN:
        prompt.explanation, prompt.message = await context.explain(prompt.arguments) or "(no explanation)", ""
        return
    text: str | None = prompt.text
    if pending is Pending.EDITOR:
        pretty = json.dumps(loads_exact(prompt.arguments), indent=2, ensure_ascii=False) + "\n"
        text = await edit_text(pretty, suffix=".json", output=output)
    if text is None:
        prompt.message = "Nothing was changed."
    elif (arguments := prompt.take_edited(text)) is not None:
        if problem := await context.check(Answer(True, arguments=arguments)):
            prompt.message = problem
        else:
            prompt.show(await context.look(arguments))


def _answer_text(approval: Approval, answer: Answer | None) -> str:
    option = next((option for option in approval.options if answer is not None and option.id == answer.option), None)
    if option is not None and option.kind not in ("allow_once", "reject_once"):
        return label(option)
    if answer is None or not answer.approved:
        return "denied"
    if answer.arguments is not None:
        return "allowed once, with changes"
    words = {"conversation": "allowed in this conversation", "edits": "all file edits allowed in this conversation"}
    return {**words, "always": "always allowed"}.get(answer.option, "allowed once")
