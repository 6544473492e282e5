"""Agents, models, providers, tools, packages and slash commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, JsonValue

from moot.agents.known import agent_named, available_agents, known_agents, presence_of
from moot.commands import Choose, CommandContext, Compose, Notice, OpenConversation, Regenerate, Reply, RunOverrides, find, names
from moot.convert.serialization import agent_json, model_json
from moot.errors import NotFound, UsageError
from moot.plugins import CHANNELS, COMMANDS, FORMATS, TOOLS
from moot.plugins.registry import hint
from moot.providers.status import answer_json, check_model, providers_json
from moot.server.auth import Admin, Reader, Router, ToolUser
from moot.server.models import In, ListOut, Out
from moot.server.resources import Cursor, Limit
from moot.server.state import Here
from moot.tools.catalogue import find_tool, tool_facts, tool_json
from moot.tools.schema import definition
from moot.types.agent import Agent, Mode
from moot.types.canonical import JsonObject
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


router = Router(prefix="/api", tags=["what decides"])

Item = TypeVar("Item", bound=BaseModel)


@router.get("/agents")
async def list_agents(here: Here, _: Reader, absent: bool = False, limit: Limit = 50, cursor: Cursor = None) -> ListOut[AgentOut]:
    """Lists every agent that can be run here: those of the configuration, and outside agents whose program was found.

    With `absent` also known ones whose program was not.
    """
    found = available_agents(here.engine.runtime.settings)
    known = {name: entry.agent() for name, entry in known_agents().items()} if absent else {}
    agents = [_agent(agent) for agent in (found | {name: agent for name, agent in known.items() if name not in found}).values()]
    return _listed(AgentOut, *_cut(agents, limit, cursor, "name"))


@router.get("/agents/{name}")
async def show_agent(here: Here, _: Reader, name: str) -> AgentOut:
    """Shows all settings of an agent."""
    settings = here.engine.runtime.settings
    if (agent := agent_named(settings, name)) is None:
        agents = available_agents(settings)
        raise NotFound(f"no agent named {name!r}{hint(name, list(agents))} known: {', '.join(agents)}", fix="GET /api/agents")
    return AgentOut.model_validate(_agent(agent))


@router.get("/models")
async def list_models(here: Here, _: Reader, provider: str = "", limit: Limit = 50, cursor: Cursor = None) -> ModelsOut:
    """Lists the models of every provider that can be reached, or of one."""
    listing = await here.engine.providers.models(provider)
    items, further = _cut([model_json(model) for model in listing.models], limit, cursor, "id")
    data = [ModelOut.model_validate(item) for item in items]
    return ModelsOut(data=data, next_cursor=further, problems=dict(listing.problems))


@router.get("/providers")
async def list_providers(here: Here, _: Reader, limit: Limit = 50, cursor: Cursor = None) -> ListOut[ProviderOut]:
    """Lists every provider, in the order in which a bare model name is looked up, and what it lacks."""
    return _listed(ProviderOut, *_cut(await providers_json(here.engine.providers), limit, cursor, "name"))


@router.post("/providers/{name}/test")
async def test_provider(here: Here, _: Admin, name: str, wanted: TestIn) -> TestOut:
    """Asks one model of a provider for one word."""
    return TestOut.model_validate(answer_json(await check_model(here.engine.providers, f"{wanted.model}@{name}")))


@router.get("/tools")
async def list_tools(here: Here, _: Reader, limit: Limit = 50, cursor: Cursor = None) -> ListOut[ToolOut]:
    """Lists every tool, and whether it can be used here."""
    settings = here.engine.runtime.settings
    return _listed(ToolOut, *_cut([tool_facts(name, settings) for name in TOOLS.names()], limit, cursor, "name"))


@router.get("/tools/{name}")
async def show_tool(here: Here, _: Reader, name: str) -> ToolShown:
    """Shows what a model is told of a tool."""
    if name not in TOOLS:
        raise NotFound(TOOLS.unknown(name), fix="GET /api/tools")
    tool = find_tool(name)
    return ToolShown.model_validate({**tool_json(tool, here.engine.runtime.settings), "schema": definition(tool).schema})


@router.get("/channels")
async def list_channels(here: Here, _: Reader) -> ListOut[ChannelOut]:
    """Lists every channel, and whether it is configured."""
    channels = here.engine.runtime.settings.channels
    return ListOut(data=[ChannelOut(name=name, configured=name in channels, package=CHANNELS.package(name)) for name in CHANNELS.names()])


@router.get("/formats")
async def list_formats(_: Reader) -> ListOut[NamedOut]:
    """Lists every foreign format that conversations can be read from or written to."""
    return ListOut(data=[NamedOut(name=name, package=FORMATS.package(name)) for name in FORMATS.names()])


def _agent(agent: Agent) -> JsonObject:
    return agent_json(agent) | presence_of(agent).to_json()


def _listed(kind: type[Item], items: Sequence[JsonObject], further: str | None) -> ListOut[Item]:
    return ListOut(data=[kind.model_validate(item) for item in items], next_cursor=further)


def _cut(items: Sequence[JsonObject], limit: int, cursor: str | None, key: str) -> tuple[Sequence[JsonObject], str | None]:
    """The page behind the item whose key is the cursor, and the next cursor. Raises UsageError when there is none such."""
    start = 0
    if cursor is not None:
        names = [str(item[key]) for item in items]
        if cursor not in names:
            raise UsageError(f"{cursor!r} is no cursor of this list", fix="take it from the page before, unchanged")
        start = names.index(cursor) + 1
    page = items[start : start + limit]
    return page, str(page[-1][key]) if page and start + limit < len(items) else None


commands_router = Router(prefix="/api/commands", tags=["commands"])


@commands_router.get("")
async def list_commands(_: Reader) -> ListOut[CommandOut]:
    """Lists every command."""
    found = [(name, find(name)) for name in names()]
    return ListOut(data=[CommandOut(name=name, help=command.help, argument=command.argument) for name, command in found])


@commands_router.post("/{name}")
async def run_command(here: Here, caller: ToolUser, name: str, wanted: CommandIn) -> CommandDone:
    """Runs a command, and says what the face is to do then."""
    if name not in COMMANDS:
        raise NotFound(COMMANDS.unknown(name), fix="GET /api/commands")
    conversation = None if wanted.conversation is None else await caller.store.conversations.get(wanted.conversation)
    if conversation is not None and conversation.deleted_at is not None:
        raise UsageError("the conversation is deleted", fix="restore it first")
    overrides = RunOverrides(**wanted.wishes.model_dump())
    context = CommandContext(
        here.engine,
        "" if conversation is None else conversation.directory,
        None if conversation is None else conversation.id,
        overrides,
    )
    replies = await find(name).run(context, wanted.argument)
    said = WishesModel(
        agent=overrides.agent,
        model=overrides.model,
        mode=overrides.mode,
        effort=overrides.effort,
        tools=None if overrides.tools is None else list(overrides.tools),
    )
    return CommandDone(replies=[_reply(reply) for reply in replies], wishes=said)


def _reply(reply: Reply) -> ReplyOut:
    match reply:
        case Notice(text, style):
            return ReplyOut(kind="say", text=text, style=style)
        case Choose(title, choices):
            told = [{"value": choice.value, "label": choice.label or choice.value, "about": choice.about} for choice in choices]
            return ReplyOut(kind="choose", title=title, choices=told)
        case OpenConversation(conversation):
            return ReplyOut(kind="go", conversation=conversation)
        case Compose(text, edits):
            return ReplyOut(kind="compose", text=text, edits=edits)
        case Regenerate(resume):
            return ReplyOut(kind="answer", resume=resume)
        case _:
            return ReplyOut(kind="leave")
