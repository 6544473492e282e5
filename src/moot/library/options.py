"""Options of a run, including the functions that answer its approvals and questions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict, TypeVar, cast

import anyio.to_thread
from pydantic import BaseModel

from moot.config.settings import Settings
from moot.errors import UsageError
from moot.runtime.approvals.requests import NO_ONE_AVAILABLE
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
    """A tool call that is waiting for approval, as passed to `on_approval`."""

    approval: Approval
    """The stored approval. Its `arguments` are the exact bytes that would be executed."""
    tool: str
    input: JsonObject
    """The parsed arguments; untrusted, because the model wrote them."""
    directory: str
    """Working directory of the call."""
    view: View
    """Presentation of the call: a one-line title and the full content."""


OnApproval: TypeAlias = Callable[[Asked], "Answer | bool | Awaitable[Answer | bool]"]
"""Function that approves or denies a call; `Answer(False, reason="…")` tells the model why. Plain functions run in a thread, so they may
block.
"""

Reply: TypeAlias = "str | Sequence[str] | None"
OnQuestion: TypeAlias = Callable[[Question], "Reply | Awaitable[Reply]"]
"""Function that answers one question from the agent. It returns a string, several if `multiple` is set, or None for no answer."""


async def answer_to(
    settings: Settings, approval: Approval, directory: str, on_approval: OnApproval | None, on_question: OnQuestion | None
) -> Answer:
    """Return the answer of `on_approval` or `on_question`. If they raise an exception, it is propagated and the run keeps waiting."""
    if approval.questions is not None:
        return await _replies(approval, on_question)
    if on_approval is None:
        return Answer(False, reason=NO_ONE_AVAILABLE, answered_by="moot")
    answer = await _call(on_approval, asked_of(settings, approval, directory))
    return Answer(answer) if isinstance(answer, bool) else answer


def asked_of(settings: Settings, approval: Approval, directory: str) -> Asked:
    """Return the approval in the form that `on_approval` receives."""
    value = loads(approval.arguments)
    return Asked(approval, approval.tool, value if isinstance(value, dict) else {}, directory, _view(settings, approval, value))


def _view(settings: Settings, approval: Approval, value: Json) -> View:
    plain = View(approval.tool, body=approval.arguments.decode("utf-8", "replace"), language="json")
    try:
        tool = find(approval.tool, settings)
    except UsageError:  # an outside agent's own tool, or one that is no longer installed
        return plain
    arguments = parse(tool, value)
    return plain if isinstance(arguments, str) else tool.doing(arguments)


async def _replies(approval: Approval, on_question: OnQuestion | None) -> Answer:
    questions = approval.questions if isinstance(approval.questions, list) else []
    replies: list[Json] = []
    for question in questions:
        reply = None if on_question is None else await _call(on_question, _question(question if isinstance(question, dict) else {}))
        replies.append([] if reply is None else [reply] if isinstance(reply, str) else list[Json](reply))
    answered = any(replies)
    return Answer(answered, reason="" if answered else "the person did not answer", value=replies)


def _question(question_fields: JsonObject) -> Question:
    options = question_fields.get("options")
    choices = [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
    return Question(
        str(question_fields.get("header", "")),
        str(question_fields.get("text", "")),
        tuple(Option(str(option.get("label", "")), str(option.get("description", ""))) for option in choices),
        question_fields.get("multiple") is True,
    )


async def _call(function: Callable[[T], U | Awaitable[U]], argument: T) -> U:
    """Call the program's function, plain or async, and return its result."""
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    result = function(argument) if is_async else await anyio.to_thread.run_sync(function, argument)
    return await cast("Awaitable[U]", result) if inspect.isawaitable(result) else cast("U", result)


NANO = 1_000_000_000


class RunOptions(TypedDict, total=False):
    """Options of `Moot.run` in addition to the prompt. Defaults come from the conversation, the agent and the configuration."""

    agent: str | None
    """Name of a configured agent."""
    model: str | None
    """`model@provider`, a model name, or a configured type such as `small`."""
    conversation: str | Conversation | None
    """Conversation to continue: its id, a prefix of the id, or its title. Without it and without `key`, a new conversation is created."""
    key: str | None
    """Key chosen by your program, for instance one per user. The conversation with this key is continued, or created."""
    edits: str | None
    """Id of the user message that the prompt replaces, on a new branch."""
    answers: str | None
    """Id of the message to answer, or of the answer to retry. Requires an empty prompt."""
    files: Sequence[str | Path]
    """Images, PDFs and text files to send with the prompt."""
    directory: str | Path | None
    """Working directory of a new conversation. Defaults to the current directory."""
    mode: Mode | None
    """Permission mode: ask, edits, plan or auto."""
    tools: bool | Sequence[str] | None
    """False = no tools, a list = only these, True = all tools of the agent. Takes precedence over the conversation's settings."""
    effort: Effort | None
    temperature: float | None
    max_steps: int | None
    max_cost: float | None
    """Maximum cost in dollars."""
    timeout: float | None
    """Timeout in seconds."""
    on_busy: OnBusy
    """Behavior if the conversation has a live run: reject (raise Busy; the default), queue, steer or interrupt."""
    on_approval: OnApproval | None
    """Called when a tool call needs approval. Without this function, such calls are denied and listed in `LiveRun.denied`."""
    on_question: OnQuestion | None
    """Called when the agent asks a question. Without this function, the agent is informed that no one is available."""


Schema: TypeAlias = "type[BaseModel] | JsonObject"
"""Schema of the answer: a pydantic model or a JSON Schema."""


def settings_of(options: RunOptions, schema: Schema | None) -> JsonObject:
    """Return the settings that are stored with the run. Raise UsageError for invalid options."""
    settings: JsonObject = {}
    tools = options.get("tools")
    if isinstance(tools, bool):
        settings["tools"] = tools
    elif isinstance(tools, str):
        raise UsageError(f"The option tools is {tools!r}. It must be a list of names, True or False.")
    elif tools is not None:
        settings["tools"] = list[Json](tools)
    names = ("effort", "temperature", "max_steps", "timeout")
    settings |= {name: cast("Json", value) for name in names if (value := options.get(name)) is not None}
    if (dollars := options.get("max_cost")) is not None:
        settings["max_cost"] = round(dollars * NANO)
    if schema is not None:
        settings["schema"] = schema if isinstance(schema, dict) else schema_of(schema)
    if options.get("on_approval") is None and options.get("on_question") is None:
        settings["unattended"] = "deny"
    return settings


def folder_of(directory: str | Path | None) -> str:
    """Return the absolute path of a directory, or an empty string for None."""
    return str(Path(directory).absolute()) if directory is not None else ""
