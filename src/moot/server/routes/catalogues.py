"""Routes that list models, providers, tools, channels and formats, and that run slash commands."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from moot.commands import (
    Choose,
    CommandContext,
    Compose,
    Copy,
    Notice,
    OpenConversation,
    Quit,
    Regenerate,
    Reply,
    RunOverrides,
    find,
    names,
)
from moot.convert.serialization import model_json
from moot.errors import NotFound, UsageError
from moot.plugins import CHANNELS, COMMANDS, FORMATS
from moot.providers.status import answer_json, check_model, providers_json
from moot.server.auth import Admin, Reader, Router, ToolUser
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out
from moot.server.resources import Cursor, Limit, cut, page_out
from moot.server.state import CurrentServer
from moot.tools.catalogue import find_tool, is_tool, tool_facts, tool_json, tool_names, unknown_tool
from moot.tools.schema import definition
from moot.types.agent import Mode
from moot.types.canonical import JsonObject
from moot.types.model import Effort, Model, Price


class PriceOut(Out, of=Price, fields="input output"):
    """Price in nano-dollars per token; null = unknown."""


class ModelOut(Out, of=Model, fields="id model provider wire_name context max_output modalities tools reasoning price note"):
    """Known properties of a model."""

    id: str
    """`model@provider`"""
    model: str
    provider: str
    price: PriceOut | None


class ModelsOut(Out):
    """A page of models, and the problems of providers that could not be listed."""

    data: list[ModelOut]
    next_cursor: str | None = None
    problems: dict[str, str]


class ProviderOut(Out):
    """A provider of models and its status."""

    name: str
    state: str
    missing: str | None
    dialect: str
    base_url: str
    needs_key: bool
    priority: int


class TestIn(In):
    """Model to test."""

    model: Annotated[str, Field(max_length=200)] = ""
    """One of the provider's models; empty = its default."""


class TestOut(Out):
    """Reply of the tested model."""

    ok: Literal[True]
    model: str
    text: str
    seconds: float
    usage: dict[str, int]


class ToolOut(Out):
    """A tool and its availability."""

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
    origin: str
    """`built-in`, `package`, or `configuration` for a custom tool."""
    error: str = ""
    """Why a plugin's tool is unavailable."""
    command: list[str] | str | None = None
    """Command of a custom tool: a list of arguments, or a shell line."""
    cwd: str = ""
    timeout: float | None = None
    network: bool = False
    read_only: bool = False


class ToolShown(ToolOut):
    """A tool's definition as sent to models."""

    schema_: dict[str, JsonValue] = Field(serialization_alias="schema", validation_alias="schema")


class CommandOut(Out):
    """A slash command."""

    name: str
    help: str
    argument: str
    """Argument syntax, such as `[NAME]`; empty = none."""


class WishesModel(In):
    """Settings for the next prompts; null = use the setting of the conversation, the agent or the configuration."""

    agent: Annotated[str, Field(max_length=200)] | None = None
    model: Annotated[str, Field(max_length=500)] | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    tools: list[str] | None = None


class CommandIn(In):
    """A command to run."""

    argument: Annotated[str, Field(max_length=10_000)] = ""
    conversation: Annotated[str, Field(max_length=128)] | None = None
    """Id of the conversation to run the command in; null = a conversation without messages that is not stored yet."""
    wishes: WishesModel = WishesModel()


class ReplyOut(Out):
    """An instruction to the client. By `kind`: `say` = show a text. `choose` = let the user choose a value and run the command again with
    it. `go` = open another conversation. `compose` = let the user write a text. `copy` = copy a text to the clipboard. `answer` = answer
    the last prompt. `leave` = exit.
    """

    kind: Literal["say", "choose", "go", "compose", "copy", "answer", "leave"]
    text: str = ""
    style: str = ""
    title: str = ""
    choices: list[dict[str, str]] = Field(default_factory=list[dict[str, str]])
    conversation: str | None = None
    edits: str | None = None
    resume: str | None = None


class CommandDone(Out):
    """Result of a command."""

    replies: list[ReplyOut]
    wishes: WishesModel
    """Settings that the client sends with the next command and applies to the next prompt."""


class NamedOut(Out):
    """A format or channel and the package that provides it."""

    name: str
    package: str


class ChannelOut(NamedOut):
    """A channel through which people use moot from other programs."""

    configured: bool


router = Router(prefix="/api", tags=["agents and tools"])


@router.get("/models")
async def list_models(server: CurrentServer, _: Reader, provider: str = "", limit: Limit = 50, cursor: Cursor = None) -> ModelsOut:
    """List the models of all reachable providers, or of one provider."""
    listing = await server.engine.providers.models(provider)
    page = cut(listing.models, limit, cursor, lambda model: str(model.id))
    data = [ModelOut.model_validate(model_json(model)) for model in page.items]
    return ModelsOut(data=data, next_cursor=page.next_cursor, problems=dict(listing.problems))


@router.get("/providers")
async def list_providers(server: CurrentServer, _: Reader, limit: Limit = 50, cursor: Cursor = None) -> ListOut[ProviderOut]:
    """List providers in the order in which model names are resolved. `missing` says what a provider lacks, such as an API key."""
    return page_out(cut(await providers_json(server.engine.providers), limit, cursor, _name), ProviderOut.model_validate)


@router.post("/providers/{name}/test")
async def test_provider(server: CurrentServer, _: Admin, name: str, body: TestIn) -> TestOut:
    """Send a one-word prompt to a provider to test it."""
    return TestOut.model_validate(answer_json(await check_model(server.engine.providers, f"{body.model}@{name}")))


@router.get("/tools")
async def list_tools(server: CurrentServer, _: Reader, limit: Limit = 50, cursor: Cursor = None) -> ListOut[ToolOut]:
    """List tools and whether they are available."""
    settings = server.engine.runtime.settings
    return page_out(cut([tool_facts(name, settings) for name in tool_names(settings)], limit, cursor, _name), ToolOut.model_validate)


@router.get("/tools/{name}")
async def show_tool(server: CurrentServer, _: Reader, name: str) -> ToolShown:
    """Get a tool's definition as sent to models."""
    settings = server.engine.runtime.settings
    if not is_tool(name, settings):
        raise NotFound(unknown_tool(name, settings), fix="GET /api/tools")
    tool = find_tool(name, settings)
    return ToolShown.model_validate({**tool_json(tool, settings), "schema": definition(tool).schema})


@router.get("/channels")
async def list_channels(server: CurrentServer, _: Reader) -> ListOut[ChannelOut]:
    """List channels and whether they are configured."""
    channels = server.engine.runtime.settings.channels
    return ListOut(data=[ChannelOut(name=name, configured=name in channels, package=CHANNELS.package(name)) for name in CHANNELS.names()])


@router.get("/formats")
async def list_formats(_: Reader) -> ListOut[NamedOut]:
    """List the formats that can be imported or exported."""
    return ListOut(data=[NamedOut(name=name, package=FORMATS.package(name)) for name in FORMATS.names()])


def _name(item: JsonObject) -> str:
    return str(item["name"])


commands_router = Router(prefix="/api/commands", tags=["commands"])


@commands_router.get("")
async def list_commands(_: Reader) -> ListOut[CommandOut]:
    """List all slash commands."""
    found = [(name, find(name)) for name in names()]
    return ListOut(data=[CommandOut(name=name, help=command.help, argument=command.argument) for name, command in found])


@commands_router.post("/{name}")
async def run_command(server: CurrentServer, caller: ToolUser, attempt: CurrentAttempt, name: str, body: CommandIn) -> CommandDone:
    """Run a slash command and return what the client should do next."""
    attempt.check_repeatable()
    if name not in COMMANDS:
        raise NotFound(COMMANDS.unknown(name), fix="GET /api/commands")
    conversation = None if body.conversation is None else await caller.store.conversations.get(body.conversation)
    if conversation is not None and conversation.deleted_at is not None:
        raise UsageError("The conversation has been deleted.", fix="Restore it first.")
    overrides = RunOverrides(**body.wishes.model_dump())
    context = CommandContext(
        server.engine,
        "" if conversation is None else conversation.directory,
        None if conversation is None else conversation.id,
        overrides,
    )
    replies = await find(name).run(context, body.argument)
    return CommandDone(replies=[_reply(reply) for reply in replies], wishes=WishesModel.model_validate(overrides, from_attributes=True))


_KINDS: dict[type[Reply], str] = {
    Notice: "say",
    Choose: "choose",
    OpenConversation: "go",
    Compose: "compose",
    Copy: "copy",
    Regenerate: "answer",
    Quit: "leave",
}


def _reply(reply: Reply) -> ReplyOut:
    choices = reply.choices if isinstance(reply, Choose) else ()
    choices_json = [{"value": choice.value, "label": choice.label or choice.value, "about": choice.about} for choice in choices]
    return ReplyOut.of(reply, kind=_KINDS[type(reply)], choices=choices_json)
