"""Approvals and questions as typed lines, for a terminal that cannot move its cursor."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from moot.cli.approving.calls import CallPrompt, patterns_text
from moot.cli.approving.looking import call_rows
from moot.cli.approving.offered import label, options_by_key
from moot.cli.approving.questions import parse_reply
from moot.cli.approving.quiet import QUIET
from moot.cli.approving.situations import ApprovalContext, Decision, resolved
from moot.cli.asking import ask_line
from moot.cli.output import Output
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject

__all__ = ["ask"]

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})
_SCOPES = {"s": "conversation", "a": "always"}
_POLL_SECONDS = 0.5


async def ask(approval: Approval, context: ApprovalContext, output: Output) -> Decision:
    """Ask the user, like `deciding.decide`."""
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
        return await _questions([question for question in approval.questions if isinstance(question, dict)], output)
    prompt = CallPrompt(approval, await context.look(approval.arguments), context.directory, context.requested_by)
    output.say(f"\n{prompt.title.text}", "bold", exact=True)
    for row in [*call_rows(prompt.preview), *prompt.body()[-1:]]:
        output.say(f"  {row.text}" + (f"  [{row.right}]" if row.right else ""), exact=True)
    await anyio.sleep(QUIET)
    while True:
        line = await ask_line(f"Allow? {_choices(approval)}: ", output)
        if line is None:
            return Answer(approved=False, reason="the user left without answering")
        answer = _answer(approval, line)
        if answer is None:
            continue
        if problem := await context.check(answer):
            output.say(problem, "yellow")
            continue
        return answer


def _choices(approval: Approval) -> str:
    if approval.options:
        words = [f"[{key}] {label(option)}" for key, option in options_by_key(approval.options).items()]
        return f"{', '.join(words)}, or no because …"
    lasting = f", [s] yes in this conversation: {patterns_text(approval)}" if approval.lasting else ""
    always = ", [a]lways" if approval.always else ""
    return f"[y]es, once{lasting}{always}, [n]o, or no because …"


def _answer(approval: Approval, line: str) -> Answer | None:
    verdict, _, reason = line.strip().partition(" ")
    verdict = verdict.lower().rstrip(",:.")
    option = options_by_key(approval.options).get(verdict)
    if option is not None and not reason:
        return Answer(option.allows, option.id, "" if option.allows else "denied by the user")
    if verdict in _YES and not reason:
        return Answer(approved=True)
    if verdict in _NO:
        return Answer(approved=False, reason=reason.strip().removeprefix("because").strip() or "denied by the user")
    if approval.options:
        return None
    offered = {"s": bool(approval.lasting), "a": approval.always}
    if not reason and offered.get(verdict):
        return Answer(approved=True, option=_SCOPES[verdict])
    return None


async def _questions(questions: Sequence[JsonObject], output: Output) -> Answer:
    replies: list[Json] = []
    for question in questions:
        reply = await _reply(question, output)
        if reply is None:
            return Answer(approved=False, reason="the user did not answer")
        replies.append(list[Json](reply))
    return Answer(approved=True, value=replies)


async def _reply(question: JsonObject, output: Output) -> Sequence[str] | None:
    words = ": ".join(str(word) for word in (question.get("header"), question.get("text")) if word)
    output.say(f"\n{words}", "bold")
    listed = question.get("options")
    options = [option for option in listed if isinstance(option, dict)] if isinstance(listed, list) else []
    labels = [str(option.get("label", "")) for option in options]
    for number, option in enumerate(options, 1):
        description = f" · {option['description']}" if option.get("description") else ""
        output.say(f"  {number} {option.get('label', '')}{description}")
    multiple = question.get("multiple") is True
    hint = ("numbers separated by spaces" if multiple else "a number") + " or text" if labels else "text"
    await anyio.sleep(QUIET)
    while True:
        line = await ask_line(f"Answer ({hint}): ", output)
        if line is None:
            return None
        if line.strip():
            return parse_reply(line.strip(), labels, multiple=multiple)
