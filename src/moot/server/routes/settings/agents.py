"""Routes for agents: list those available in a folder, and create, change and delete the ones in moot's home."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, cast, get_args

from anyio import to_thread
from fastapi import Query, Response
from pydantic import Field

from moot.agents.known import agent_named, available_agents, known_agents, presence_of
from moot.config.changes import create_agent
from moot.config.home import read_text
from moot.convert.serialization import agent_json
from moot.engine.submissions import default_directory
from moot.errors import NotFound
from moot.features.agents import Check, Source, change_agent, copy_agent, delete_agent, prompt_preview, source_of
from moot.plugins.registry import hint
from moot.runtime.setup import confined_conversation, load_project_agents
from moot.server.auth import Operator, Reader, Router
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out
from moot.server.resources import Cursor, IfMatch, Limit, check_directory, check_match, cut, etag_of, page_out
from moot.server.routes.settings.config import changed
from moot.server.state import CurrentServer, Server
from moot.types.agent import Agent
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.model import ModelRole


class PromptSettingsOut(Out):
    """Settings of an agent's system prompt."""

    parts: list[str] | None
    """Names of the included parts; null = all."""
    variables: dict[str, str]
    max_tokens: int | None


class AgentOut(
    Out,
    of=Agent,
    fields="id name description agent_type model instructions rules tools role temperature max_steps effort fallback agents output_format"
    " hidden beta default version origin forked_from",
):
    """An agent. Clients of `/v1` use it as the model `agent:NAME`."""

    id: str
    effective_model: str
    """Model that answers if a prompt chooses none; empty if moot or an outside agent chooses one by itself."""
    prompt: PromptSettingsOut
    source: Source
    """Origin of the agent's definition. Only agents with the source `home` can be changed."""
    ready: bool
    """True if the agent's program is installed. Always true for moot's own agents, which need no program."""
    program: str
    missing: str
    """Error if the program is not installed; otherwise empty."""
    install: str
    """Command that installs the missing program."""


Text = Annotated[str, Field(max_length=200_000)]
Names = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=200)]


class AgentFieldsIn(In):
    """Fields of an agent. null = the default."""

    description: Text | None = None
    model: Text | None = None
    instructions: Text | None = None
    rules: Text | None = None
    tools: Names | None = None
    role: Text | None = None
    temperature: float | None = None
    max_steps: int | None = None
    fallback: Names | None = None
    agents: Names | None = None
    output_format: Text | None = None
    hidden: bool | None = None
    default: bool | None = None

    def values_set(self) -> JsonObject:
        """Return the fields that the request contains."""
        return cast("JsonObject", self.model_dump(exclude_unset=True, include=set(AgentFieldsIn.model_fields)))


class AgentIn(AgentFieldsIn):
    """An agent to create."""

    name: Annotated[str, Field(max_length=64)]
    copy_of: Annotated[str, Field(max_length=200)] | None = None
    """Name of an agent to copy. Its fields are used unless the request contains them."""


class PartOut(Out):
    """A part of a system prompt and its estimated number of tokens. The last part, `tools`, contains the tool definitions."""

    name: str
    tokens: int
    text: str


router = Router(prefix="/api/agents", tags=["agents and tools"])

InConversation = Annotated[str | None, Query(max_length=128, description="Include agents defined in this conversation's folder.")]
InDirectory = Annotated[str | None, Query(max_length=4096, description="Include agents in this folder. Requires the scope `tools`.")]


@router.get("")
async def list_agents(
    server: CurrentServer,
    caller: Reader,
    absent: bool = False,
    conversation: InConversation = None,
    directory: InDirectory = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListOut[AgentOut]:
    """List the available agents: built-in ones, those defined in files or the configuration, and outside agents that are installed.

    With `absent`, also list known agents whose program is not installed.
    """
    settings = server.engine.runtime.settings
    found = available_agents(settings, (await _place(server, caller, conversation, directory)).directory)
    known = {name: entry.agent() for name, entry in known_agents().items()} if absent else {}
    agents = [
        _facts(server, caller, agent) for agent in (found | {name: agent for name, agent in known.items() if name not in found}).values()
    ]
    return page_out(cut(agents, limit, cursor, lambda item: str(item["name"])), AgentOut.model_validate)


@router.get("/{name}")
async def show_agent(
    server: CurrentServer,
    caller: Reader,
    response: Response,
    name: str,
    conversation: InConversation = None,
    directory: InDirectory = None,
) -> AgentOut:
    """Get all settings of an agent. The ETag also changes if another program edits the agent's file in moot's home folder."""
    await server.configuration.refresh()  # the ETag and the settings must come from the same version of the file
    agent = _named(server, name, (await _place(server, caller, conversation, directory)).directory)
    return await _tagged(response, agent, _out(server, caller, agent))


@router.get("/{name}/prompt")
async def show_prompt(
    server: CurrentServer, caller: Reader, name: str, conversation: InConversation = None, directory: InDirectory = None
) -> ListOut[PartOut]:
    """Get the parts of the system prompt that the agent would get in a conversation or folder."""
    place = await _place(server, caller, conversation, directory)
    parts = await prompt_preview(server.engine, _named(server, name, place.directory).name, place)
    return ListOut(data=[PartOut(name=part.name, tokens=part.tokens, text=part.text) for part in parts])


@router.post("", status_code=201)
async def create(server: CurrentServer, caller: Operator, attempt: CurrentAttempt, response: Response, body: AgentIn) -> AgentOut:
    """Create an agent as a file in moot's home folder. Errors name the invalid fields.

    A copy of an agent with references such as `${VAR}` is added to the configuration file instead, which keeps the references.
    """
    if attempt.repeated and body.name in server.engine.runtime.settings.agents:
        return _out(server, caller, server.engine.runtime.settings.agents[body.name])
    settings, values = server.engine.runtime.settings, body.values_set()
    if body.copy_of is None:
        given: JsonObject = {name: value for name, value in values.items() if value is not None}
        write = partial(create_agent, settings, body.name, given)
    else:
        write = partial(copy_agent, settings, server.configuration.loaded.root, _named(server, body.copy_of, ""), body.name, values)
    await to_thread.run_sync(write)
    return await _changed(server, caller, response, body.name)


@router.patch("/{name}")
async def change(
    server: CurrentServer, caller: Operator, response: Response, name: str, body: AgentFieldsIn, if_match: IfMatch = None
) -> AgentOut:
    """Change an agent that is a file in moot's home folder. Comments and fields that the request doesn't contain are kept.

    Send the agent's ETag as `If-Match` to detect concurrent changes.
    """
    settings = server.engine.runtime.settings
    check = _check(server, caller, name, if_match)
    await to_thread.run_sync(partial(change_agent, settings, name, body.values_set(), check=check))
    return await _changed(server, caller, response, name)


@router.delete("/{name}", status_code=204, response_class=Response)
async def delete(server: CurrentServer, caller: Operator, name: str, if_match: IfMatch = None) -> None:
    """Delete an agent's file in moot's home folder. Send the agent's ETag as `If-Match` to detect concurrent changes."""
    check = _check(server, caller, name, if_match)
    await to_thread.run_sync(partial(delete_agent, server.engine.runtime.settings, name, check=check))
    await changed(server)


def _check(server: Server, caller: Caller, name: str, if_match: str | None) -> Check:
    """Return a check that raises Problem (412) if the agent or its file has changed since the caller read it."""
    agent = server.engine.runtime.settings.agents.get(name)
    if if_match is None or agent is None:
        return lambda text: None
    out = _out(server, caller, agent)
    return lambda text: check_match(if_match, _tag(out, text))


def _tag(out: AgentOut, text: str) -> str:
    return etag_of([out.model_dump(mode="json", exclude={"effective_model"}), text])


async def _tagged(response: Response, agent: Agent, out: AgentOut) -> AgentOut:
    text = await to_thread.run_sync(partial(read_text, Path(agent.origin), mark=True)) if out.source == "home" else ""
    response.headers["etag"] = _tag(out, text)
    return out


async def _changed(server: Server, caller: Caller, response: Response, name: str) -> AgentOut:
    await changed(server)
    agent = _named(server, name, "")
    return await _tagged(response, agent, _out(server, caller, agent))


async def _place(server: Server, caller: Caller, conversation: str | None, directory: str | None) -> Conversation:
    """Return the conversation, or an unsaved one in the directory, by default the directory for new conversations."""
    if conversation is not None:
        place = await confined_conversation(server.engine.store, (await caller.store.conversations.get(conversation)).id)
    else:
        if directory is not None:
            await check_directory(caller, directory)
        folder = default_directory(caller.owner_id) if directory is None else directory
        place = Conversation("", directory=folder, owner=caller.owner_id)
    await load_project_agents(server.engine.runtime.settings, place.directory)
    return place


def _named(server: Server, name: str, directory: str) -> Agent:
    settings = server.engine.runtime.settings
    if (agent := agent_named(settings, name, directory)) is None:
        known = list(available_agents(settings, directory))
        raise NotFound(f"Agent {name!r} not found.{hint(name, known)} Available: {', '.join(known)}.", fix="See GET /api/agents.")
    return agent


def _facts(server: Server, caller: Caller, agent: Agent) -> JsonObject:
    settings = server.engine.runtime.settings
    facts: JsonObject = {**agent_json(agent), "source": source_of(settings, agent), **presence_of(agent).to_json()}
    wanted = agent.model or ("main" if agent.agent_type == "moot" else "")
    facts["effective_model"] = str(getattr(settings.models, wanted)) if wanted in get_args(ModelRole) else wanted
    return facts if caller.is_home_owner else {**facts, "origin": ""}  # a path of this machine


def _out(server: Server, caller: Caller, agent: Agent) -> AgentOut:
    return AgentOut.model_validate(_facts(server, caller, agent))
