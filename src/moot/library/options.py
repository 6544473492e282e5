"""Options of a run, and the functions that answer its approvals and questions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict, TypeVar, cast

import anyio.to_thread
from pydantic import BaseModel

from moot.errors import UsageError
from moot.runtime.requests import NO_ONE_AVAILABLE
from moot.tools.arguments import schema_of
from moot.tools.catalogue import find_tool as find
from moot.tools.schema import parse
from moot.types.agent import Mode
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject, loads
from moot.types.conversation import Conversation
from moot.types.model import Effort
from moot.types.run import OnBusy
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
        return Answer(False, reason=NO_ONE_AVAILABLE, answered_by="moot")
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


NANO = 1_000_000_000


class RunOptions(TypedDict, total=False):
    """What a run may be told besides the prompt; what is left out is as the conversation, the agent and the configuration have it."""

    agent: str | None
    """An agent of the configuration."""
    model: str | None
    """`model@provider`, a model's name, or a type such as `small`."""
    conversation: str | Conversation | None
    """Goes on with this one: its id, the beginning of it, or its title. Without it, and without `key`, a new one is begun."""
    key: str | None
    """Goes on with the conversation of this name, or begins it: one name for each of your users, say."""
    edits: str | None
    """The id of a message of the user that the prompt takes the place of, as a new branch."""
    answers: str | None
    """With an empty prompt: the id of a message to answer, or of an answer to make once more."""
    files: Sequence[str | Path]
    """Pictures, PDFs and texts that go with the prompt."""
    directory: str | Path | None
    """Where a new conversation's tools work; without it the current folder."""
    mode: Mode | None
    """What may happen without asking: ask, edits, plan, auto."""
    tools: bool | Sequence[str] | None
    """False = none, a list = only these."""
    effort: Effort | None
    temperature: float | None
    max_steps: int | None
    max_cost: float | None
    """Dollars."""
    timeout: float | None
    """Seconds."""
    on_busy: OnBusy
    """When the conversation has a live run: reject (raises Busy; the default), queue, steer, interrupt."""
    on_approval: OnApproval | None
    """Answers when a call needs a person's yes; without it such calls are denied, and `LiveRun.denied` names them."""
    on_question: OnQuestion | None
    """Answers when the agent asks something; without it the agent is told that nobody is there."""


Schema: TypeAlias = "type[BaseModel] | JsonObject"
"""What an answer must fit: a pydantic model, or a JSON Schema."""


def settings_of(options: RunOptions, schema: Schema | None) -> JsonObject:
    """The settings that are stored with the run. Raises UsageError."""
    settings: JsonObject = {}
    tools = options.get("tools")
    if tools is False:
        settings["tools"] = False
    elif isinstance(tools, str):
        raise UsageError(f"tools is {tools!r}; expected a list of names, True or False")
    elif tools is not None and tools is not True:
        settings["tools"] = list[Json](tools)
    given: JsonObject = {
        "effort": options.get("effort"),
        "temperature": options.get("temperature"),
        "max_steps": options.get("max_steps"),
        "timeout": options.get("timeout"),
    }
    settings |= {name: value for name, value in given.items() if value is not None}
    if (dollars := options.get("max_cost")) is not None:
        settings["max_cost"] = round(dollars * NANO)
    if schema is not None:
        settings["schema"] = schema if isinstance(schema, dict) else schema_of(schema)
    if options.get("on_approval") is None and options.get("on_question") is None:
        settings["unattended"] = "deny"
    return settings


def folder_of(directory: str | Path | None) -> str:
    """The absolute path; empty for none."""
    return str(Path(directory).absolute()) if directory is not None else ""
