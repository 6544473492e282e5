"""Approvals and questions as typed lines, for a terminal that can only print."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from moot.cli.approving.calls import CallPrompt
from moot.cli.approving.looking import rows_of
from moot.cli.approving.offered import by_key, label
from moot.cli.approving.questions import chosen
from moot.cli.approving.quiet import QUIET
from moot.cli.approving.rows import spelled
from moot.cli.approving.situations import Decided, Situation, settled
from moot.cli.asking import ask_line
from moot.cli.output import Output
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject

__all__ = ["decide"]

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})
_WORDS = {"s": "conversation", "a": "always"}
_LOOK = 0.5


async def decide(approval: Approval, situation: Situation, output: Output) -> Decided:
    """As `deciding.decide`."""
    decided: Decided | None = None

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal decided
        while decided is None:
            await anyio.sleep(_LOOK)
            decided = await settled(approval, situation)
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        decided = Decided(await _asked(approval, situation, output))
        group.cancel_scope.cancel()
    if decided is not None and decided.answer is None and decided.how == "elsewhere":
        output.say("")
    return decided or Decided(None, how="later")


async def _asked(approval: Approval, situation: Situation, output: Output) -> Answer:
    if isinstance(approval.questions, list):
        return await _questions([question for question in approval.questions if isinstance(question, dict)], output)
    prompt = CallPrompt(approval, await situation.look(approval.arguments), situation.directory, situation.asked_by)
    output.say(f"\n{prompt.title.text}", "bold", exact=True)
    for row in [*rows_of(prompt.looked), *prompt.body()[-1:]]:
        output.say(f"  {row.text}" + (f"  [{row.right}]" if row.right else ""), exact=True)
    await anyio.sleep(QUIET)
    while True:
        line = await ask_line(f"Allow it? {_choices(approval)}: ", output)
        if line is None:
            return Answer(approved=False, reason="the person went away")
        answer = _answer(approval, line)
        if answer is None:
            continue
        if problem := await situation.check(answer):
            output.say(problem, "yellow")
            continue
        return answer


def _choices(approval: Approval) -> str:
    if approval.options:
        words = [f"[{key}] {label(option)}" for key, option in by_key(approval.options).items()]
        return f"{', '.join(words)}, or no because …"
    lasting = f", [s] yes in this conversation: {_shown(approval)}" if approval.lasting else ""
    always = ", [a]lways" if approval.always else ""
    return f"[y]es, once{lasting}{always}, [n]o, or no because …"


def _shown(approval: Approval) -> str:
    return ", ".join(f'"{" ".join(spelled(pattern))}"' for pattern in approval.lasting)


def _answer(approval: Approval, line: str) -> Answer | None:
    verdict, _, reason = line.strip().partition(" ")
    verdict = verdict.lower().rstrip(",:.")
    option = by_key(approval.options).get(verdict)
    if option is not None and not reason:
        return Answer(option.allows, option.id, "" if option.allows else "the person said no")
    if verdict in _YES and not reason:
        return Answer(approved=True)
    if verdict in _NO:
        return Answer(approved=False, reason=reason.strip().removeprefix("because").strip() or "the person said no")
    if approval.options:
        return None
    offered = {"s": bool(approval.lasting), "a": approval.always}
    if not reason and offered.get(verdict):
        return Answer(approved=True, option=_WORDS[verdict])
    return None


async def _questions(questions: Sequence[JsonObject], output: Output) -> Answer:
    replies: list[Json] = []
    for question in questions:
        reply = await _reply(question, output)
        if reply is None:
            return Answer(approved=False, reason="the person did not answer")
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
    hint = ("numbers with spaces between" if multiple else "a number") + ", or your own words" if labels else "your words"
    await anyio.sleep(QUIET)
    while True:
        line = await ask_line(f"Answer ({hint}): ", output)
        if line is None:
            return None
        if line.strip():
            return chosen(line.strip(), labels, multiple=multiple)
