"""What a run may be told, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, TypedDict

from pydantic import BaseModel

from moot.errors import UsageError
from moot.library.asking import OnApproval, OnQuestion
from moot.tools.arguments import schema_of
from moot.types.agent import Mode
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.model import Effort
from moot.types.run import OnBusy

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
