"""What decides how runs are made: agents, models, providers, tools, commands, and what packages bring."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from moot.server.wire.base import In, Out
from moot.types.agent import Mode
from moot.types.model import Effort


class AgentOut(Out):
    """An agent; `agent:NAME` is its name as a model below /v1."""

    id: str
    name: str
    description: str
    agent_type: str
    model: str
    instructions: str
    rules: str
    tools: list[str] | None
    """null = all that are not hidden."""
    role: Literal["read", "write"]
    temperature: float | None
    max_steps: int | None
    effort: Effort | None
    fallback: list[str]
    ready: bool
    """Whether its program is here; moot's own agents need none."""
    program: str
    missing: str
    """What is absent, in words."""
    install: str
    """The line that brings it."""


class PriceOut(Out):
    """Nano-dollars per token; null = not known."""

    input: float | None
    output: float | None


class ModelOut(Out):
    """All that is known of a model."""

    id: str
    """`model@provider`"""
    model: str
    provider: str
    wire_name: str
    context: int | None
    max_output: int | None
    modalities: list[str]
    tools: Literal["native", "schema", "none"]
    reasoning: bool
    price: PriceOut | None
    note: str


class ModelsOut(Out):
    """A page of models, and why some providers had none to show."""

    data: list[ModelOut]
    next_cursor: str | None = None
    problems: dict[str, str]


class ProviderOut(Out):
    """A provider, and what it lacks."""

    name: str
    state: str
    missing: str | None
    dialect: str
    base_url: str
    needs_key: bool
    priority: int


class TestIn(In):
    """What to ask for one word."""

    model: Annotated[str, Field(max_length=200)] = ""
    """One of the provider's models; empty = the one that it proposes."""


class TestOut(Out):
    """A model that answered."""

    ok: Literal[True]
    model: str
    text: str
    seconds: float
    usage: dict[str, int]


class ToolOut(Out):
    """A tool, and whether it can be used here."""

    name: str
    description: str
    effects: list[str]
    available: bool
    hidden: bool = False
    concurrent: bool = False
    idempotent: bool = False
    beta: bool = False
    badge: str = ""
    package: str
    error: str = ""
    """Why a plugin's tool can't be had."""


class ToolShown(ToolOut):
    """What a model is told of it."""

    schema_: dict[str, JsonValue] = Field(serialization_alias="schema", validation_alias="schema")


class CommandOut(Out):
    """A slash command."""

    name: str
    help: str
    argument: str
    """What may stand behind it, such as `[NAME]`; empty = nothing."""


class WishesModel(In):
    """What the next prompts are to be run with; null = as the conversation, the agent or the configuration has it."""

    agent: Annotated[str, Field(max_length=200)] | None = None
    model: Annotated[str, Field(max_length=500)] | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    tools: list[str] | None = None


class CommandIn(In):
    """A command to run."""

    argument: Annotated[str, Field(max_length=10_000)] = ""
    conversation: Annotated[str, Field(max_length=128)] | None = None
    """Where it is run; null = in one that has not begun."""
    wishes: WishesModel = WishesModel()


class ReplyOut(Out):
    """What a face is to do: `say` words, let the person `choose` and run the command again with the value, `go` to another conversation,
    let them `compose` a text, `answer` the last prompt, `leave`."""

    kind: Literal["say", "choose", "go", "compose", "answer", "leave"]
    text: str = ""
    style: str = ""
    title: str = ""
    choices: list[dict[str, str]] = Field(default_factory=list[dict[str, str]])
    conversation: str | None = None
    edits: str | None = None
    resume: str | None = None


class CommandDone(Out):
    """What came of a command."""

    replies: list[ReplyOut]
    wishes: WishesModel
    """Send them with the next command and heed them in the next prompt."""


class NamedOut(Out):
    """Something that a package brings."""

    name: str
    package: str


class ChannelOut(NamedOut):
    """Where people talk to moot from other programs."""

    configured: bool
