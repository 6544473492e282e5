"""Agents, models, providers, tools, and what packages bring: what decides how a run is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from moot.agents.known.finding import agent_called, agents_here, known_agents, presence_of
from moot.convert.described import agent_json, model_json
from moot.errors import NotFound, UsageError
from moot.plugins import CHANNELS, FORMATS, TOOLS
from moot.plugins.nearest import hint
from moot.providers.described import providers_json
from moot.providers.trying import answered_json, ask_model
from moot.server.auth import Admin, Reader
from moot.server.paging import Cursor, Limit
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.base import ListOut
from moot.server.wire.deciding import AgentOut, ChannelOut, ModelOut, ModelsOut, NamedOut, ProviderOut, TestIn, TestOut, ToolOut, ToolShown
from moot.tools.described import tool_facts, tool_json
from moot.tools.offers import tool as find_tool
from moot.tools.schema import definition
from moot.types.agent import Agent
from moot.types.canonical import JsonObject

router = Router(prefix="/api", tags=["what decides"])

Item = TypeVar("Item", bound=BaseModel)


@router.get("/agents")
async def list_agents(here: Here, _: Reader, absent: bool = False, limit: Limit = 50, cursor: Cursor = None) -> ListOut[AgentOut]:
    """Lists every agent that can be run here: those of the configuration, and outside agents whose program was found.

    With `absent` also known ones whose program was not.
    """
    found = agents_here(here.engine.runtime.settings)
    known = {name: entry.agent() for name, entry in known_agents().items()} if absent else {}
    agents = [_agent(agent) for agent in (found | {name: agent for name, agent in known.items() if name not in found}).values()]
    return _listed(AgentOut, *_cut(agents, limit, cursor, "name"))


@router.get("/agents/{name}")
async def show_agent(here: Here, _: Reader, name: str) -> AgentOut:
    """Shows all settings of an agent."""
    settings = here.engine.runtime.settings
    if (agent := agent_called(settings, name)) is None:
        agents = agents_here(settings)
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
    return TestOut.model_validate(answered_json(await ask_model(here.engine.providers, f"{wanted.model}@{name}")))


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
