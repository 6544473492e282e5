"""Approvals and questions as typed lines, for a terminal that can only print."""

from __future__ import annotations

import json
from collections.abc import Sequence

from moot.cli.approving.situations import Decided, Situation
from moot.cli.asking import ask_line
from moot.cli.output import Output
from moot.guard.terminal import visible
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject, loads_exact

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})


async def decide(approval: Approval, situation: Situation, output: Output, *, draft: str = "") -> Decided:
    """As `deciding.decide`."""
    return Decided(await _answer(approval, situation.directory, output), draft)


async def _answer(approval: Approval, directory: str, output: Output) -> Answer:
    """What the person says. The end of input is a no."""
    if isinstance(approval.questions, list):
        questions = [question for question in approval.questions if isinstance(question, dict)]
        replies = [await _reply(question, output) for question in questions]
        if any(reply is None for reply in replies):
            return Answer(approved=False, reason="the person did not answer")
        return Answer(approved=True, value=[list[Json](reply or ()) for reply in replies])
    output.say(f"\n{visible(approval.tool)} wants to run", "bold", exact=True)
    for line in visible(_pretty(approval.arguments)).split("\n"):
        output.say(f"  {line}", exact=True)
    output.say(f"  in {visible(directory)}", exact=True)
    while True:
        line = await ask_line("Allow it? [y]es, [n]o, or no because …: ", output)
        if line is None:
            return Answer(approved=False, reason="the person went away")
        verdict, _, reason = line.strip().partition(" ")
        verdict = verdict.lower().rstrip(",:.")
        if verdict in _YES and not reason:
            return Answer(approved=True)
        if verdict in _NO:
            return Answer(approved=False, reason=reason.strip().removeprefix("because").strip() or "the person said no")


async def _reply(question: JsonObject, output: Output) -> Sequence[str] | None:
    words = ": ".join(str(word) for word in (question.get("header"), question.get("text")) if word)
    output.say(f"\n{words}", "bold")
    options = [option for option in _list(question.get("options")) if isinstance(option, dict)]
    labels = [str(option.get("label", "")) for option in options]
    for number, option in enumerate(options, 1):
        description = f" · {option['description']}" if option.get("description") else ""
        output.say(f"  {number} {option.get('label', '')}{description}")
    multiple = question.get("multiple") is True
    hint = ("numbers with spaces between" if multiple else "a number") + ", or your own words" if labels else "your words"
    while True:
        line = await ask_line(f"Answer ({hint}): ", output)
        if line is None:
            return None
        if line.strip():
            return _chosen(line.strip(), labels, multiple=multiple)


def _chosen(line: str, labels: Sequence[str], *, multiple: bool) -> list[str]:
    words = line.replace(",", " ").split()
    numbers = [int(word) for word in words if word.isdecimal() and 1 <= int(word) <= len(labels)]
    if numbers and len(numbers) == len(words) and (multiple or len(numbers) == 1):
        return [labels[number - 1] for number in dict.fromkeys(numbers)]
    return [line]


def _pretty(arguments: bytes) -> str:
    try:
        value = loads_exact(arguments)
    except ValueError:
        return arguments.decode("utf-8", "replace")
    if isinstance(value, dict) and all(isinstance(item, str | int | float | bool | None) for item in value.values()):
        return "\n".join(f"{key}: {item}" for key, item in value.items())
    return json.dumps(value, indent=2, ensure_ascii=False)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
