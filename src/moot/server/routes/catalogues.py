"""Routes that list models, tools, channels and formats."""

from __future__ import annotations

from pydantic import Field, JsonValue

from moot.convert.serialization import model_json
from moot.errors import NotFound
from moot.plugins import CHANNELS, FORMATS
from moot.server.auth import Reader, Router
from moot.server.models import ListOut, Out
from moot.server.resources import Cursor, Limit, cut, page_out
from moot.server.state import CurrentServer
from moot.tools.catalogue import find_tool, is_tool, tool_facts, tool_json, tool_names, unknown_tool
from moot.tools.schema import definition
from moot.types.canonical import JsonObject
from moot.types.model import Model, Price


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
    """A page of models, and the problems of providers whose models could not be listed."""

    data: list[ModelOut]
    next_cursor: str | None = None
    problems: dict[str, str]


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
