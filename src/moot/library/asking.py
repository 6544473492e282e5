"""What a run asks a person, and the functions of a program that answer for one."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

import anyio.to_thread

from moot.errors import UsageError
from moot.runtime.asking import NOBODY
from moot.tools.offers import tool as find
from moot.tools.schema import parse
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject, loads
from moot.types.tool import Option, Question, View

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that waits for a person's yes or no."""

    approval: Approval
    """As it is stored; its `arguments` are the exact bytes that the answer is about."""
    tool: str
    input: JsonObject
    """The arguments; what the model wrote, so not to be trusted."""
    directory: str
    """Where the call would work."""
    view: View
    """What to show: a title on one line, and the whole below it."""


OnApproval: TypeAlias = Callable[[Asked], "Answer | bool | Awaitable[Answer | bool]"]
"""Says yes or no; `Answer(False, reason="…")` tells the model why. A plain function runs in a thread, so that it may block."""

Reply: TypeAlias = "str | Sequence[str] | None"
OnQuestion: TypeAlias = Callable[[Question], "Reply | Awaitable[Reply]"]
"""The reply to one question of the agent: a text, several where `multiple` is set, None for no answer."""


async def answer_to(approval: Approval, directory: str, on_approval: OnApproval | None, on_question: OnQuestion | None) -> Answer:
    """What the program says. Whatever its functions raise passes through, and the run goes on waiting."""
    if approval.questions is not None:
        return await _replies(approval, on_question)
    if on_approval is None:
        return Answer(False, reason=NOBODY, answered_by="moot")
    answer = await _called(on_approval, asked_of(approval, directory))
    return Answer(answer) if isinstance(answer, bool) else answer


def asked_of(approval: Approval, directory: str) -> Asked:
    """The approval as a program is shown it."""
    value = loads(approval.arguments)
    return Asked(approval, approval.tool, value if isinstance(value, dict) else {}, directory, _view(approval, value))


def _view(approval: Approval, value: Json) -> View:
    plain = View(approval.tool, body=approval.arguments.decode("utf-8", "replace"), language="json")
    try:
        tool = find(approval.tool)
    except UsageError:  # an outside agent's own tool, or one that is no longer installed
        return plain
    arguments = parse(tool, value)
    return plain if isinstance(arguments, str) else tool.doing(arguments)


async def _replies(approval: Approval, on_question: OnQuestion | None) -> Answer:
    asked = approval.questions if isinstance(approval.questions, list) else []
    replies: list[Json] = []
    for question in asked:
        reply = None if on_question is None else await _called(on_question, _question(question if isinstance(question, dict) else {}))
        replies.append([] if reply is None else [reply] if isinstance(reply, str) else list[Json](reply))
    answered = any(replies)
    return Answer(answered, reason="" if answered else "the person did not answer", value=replies)


def _question(asked: JsonObject) -> Question:
    options = asked.get("options")
    choices = [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
    return Question(
        str(asked.get("header", "")),
        str(asked.get("text", "")),
        tuple(Option(str(option.get("label", "")), str(option.get("description", ""))) for option in choices),
        asked.get("multiple") is True,
    )


async def _called(function: Callable[[T], U | Awaitable[U]], argument: T) -> U:
    """What a program's function says, be it a plain one or a coroutine's."""
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    said = function(argument) if is_async else await anyio.to_thread.run_sync(function, argument)
    return await cast("Awaitable[U]", said) if inspect.isawaitable(said) else cast("U", said)
