"""Settings, tools, models and system prompt of a step, taken from the current configuration."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from moot.agents.known import agent_named, available_agents, fallback_agents, fallback_models, presence_of
from moot.agents.prompt import system_prompt
from moot.config.agents.builtin import LOCAL
from moot.config.agents.project import is_current, project_agents
from moot.config.plugins.installed import has_plugins, used_plugins
from moot.config.settings import Settings
from moot.errors import MootError, UsageError
from moot.guard.roots import folders, is_below
from moot.plugins import AGENTS
from moot.plugins.registry import attribute
from moot.providers.pool import Providers
from moot.skills.roots import roots_of
from moot.tools.catalogue import provided_tool, tools_for
from moot.tools.schema import client_tools
from moot.types.agent import Agent, McpServer, Mode
from moot.types.canonical import JsonObject
from moot.types.children import DELEGATING, FINISH
from moot.types.context import StepSetup
from moot.types.conversation import Conversation, Project
from moot.types.cron import DELIVER
from moot.types.limits import Limits
from moot.types.model import Effort, Model, ModelRole, ModelSettings
from moot.types.prompt import PromptContext
from moot.types.run import Run, RunRequest
from moot.types.served import Served
from moot.types.store import Store
from moot.types.token import LOCAL_USER
from moot.types.tool import Tool
from moot.types.workflow import Workflow

if TYPE_CHECKING:  # most runs use neither MCP servers nor skills
    from moot.mcp.servers import McpServers
    from moot.types.skill import SkillSelection

UNTRIMMED = 1 << 53
"""Token limit for programs that trim the history themselves. It is so high that it has no effect."""

DEFAULT_CONTEXT = 64_000
"""Context size assumed for models with an unknown one."""

_SELECTED, _TOOLS_OF_SKILLS = "moot.skills.selection:selected", "moot.skills.selection:tools_of"
"""Loaded by path, because most conversations have no skills."""
_SKILL_TOOLS = ("activate_skill", "run_skill_script")

log = logging.getLogger("moot.runtime")

_EFFORTS: dict[str, Effort] = {"none": "none", "low": "low", "medium": "medium", "high": "high", "max": "max"}
_MODES: dict[str, Mode] = {"ask": "ask", "edits": "edits", "plan": "plan", "auto": "auto"}


async def load_project_agents(settings: Settings, directory: str) -> None:
    """Read the agents of a folder's project if their files have changed, so that `find_agent` doesn't block."""
    if directory and not is_current(settings.home, Path(directory)):
        await to_thread.run_sync(project_agents, settings.home, Path(directory))


def find_agent(settings: Settings, name: str, options: JsonObject, directory: str = "") -> Agent:
    """Return the agent as modified by the run's options. Raise UsageError for an unknown name.

    `directory` is the conversation's folder, whose project may define agents.
    """
    if (served := Served.of(options)) is not None and served.plain:
        return Agent(name, tools=(), show_reasoning=served.show_reasoning)
    agent = agent_named(settings, name, directory)
    if agent is None:
        known = ", ".join(sorted(available_agents(settings, directory)))
        raise UsageError(f"Agent {name!r} not found. Available agents: {known}.", fix="moot agents list --all")
    if (workflow := Workflow.of(options)) is not None:  # steps use the agent that they name, or the run's own agent
        agent = dataclasses.replace(agent, agents=tuple(dict.fromkeys((name, *filter(None, (step.agent for step in workflow.steps))))))
    tools = options.get("tools")
    if tools is False:
        return dataclasses.replace(agent, tools=())
    if isinstance(tools, list):
        return dataclasses.replace(agent, tools=tuple(str(tool) for tool in tools))
    return agent


async def successor_of(settings: Settings, agent: Agent, conversation: Conversation, worked: Collection[str]) -> Agent | None:
    """Return the agent that continues a run when the provider of this one refuses further calls: the first usable one of `fallback`.

    Agents that have already worked on the run (`worked`) are left out.
    """
    directory = conversation.directory
    for name in fallback_agents(settings, agent, directory):
        try:
            found = find_agent(settings, name, {}, directory)
        except MootError as error:
            log.warning("the agent %s can't continue for %s: %s", name, agent.name, error.message)
            continue
        usable = found.agent_type in AGENTS and (found.agent_type == "moot" or has_folder(conversation))
        if name not in worked and usable and (await to_thread.run_sync(presence_of, found)).ready:
            return dataclasses.replace(found, name=name)
    return None


def in_project(agent: Agent, project: Project) -> Agent:
    """Return the agent with the project's context and rules added."""
    texts = [text.strip() for text in (project.context, agent.rules, project.rules)]
    return dataclasses.replace(agent, rules="\n\n".join(filter(None, texts))) if project.context or project.rules else agent


def confined(conversation: Conversation, project: Project) -> Conversation:
    """Return the conversation, limited to the folders that its owner may use.

    The local user may use any folder. Other users may use only the root of their project, which the local user sets, and folders below it;
    without a root, their conversation has no directory. Links are resolved, because a user may create some in the root.
    """
    if conversation.owner == LOCAL_USER:
        return conversation
    if not project.root_path:
        return dataclasses.replace(conversation, directory="", allowed_uris=())
    root = project.root_path
    directory = conversation.directory if is_below(conversation.directory, root) else root
    allowed = tuple(str(folder) for folder in folders(conversation.allowed_uris) if is_below(str(folder), root))
    return dataclasses.replace(conversation, directory=directory, allowed_uris=allowed)


async def confined_conversation(store: Store, id: str) -> Conversation:
    """Return a conversation of any owner with the folders that its owner may use. Raise NotFound if it does not exist."""
    found = await store.conversations.get(id)
    return found if found.owner == LOCAL_USER else confined(found, await store.of(found.owner).projects.get(found.project))


def has_folder(conversation: Conversation) -> bool:
    """Return False for another user's conversation without a folder, in which nothing may access files or run programs."""
    return conversation.owner == LOCAL_USER or bool(conversation.directory)


def servers_of(settings: Settings, agent: Agent) -> tuple[McpServer, ...]:
    """Return the agent's enabled MCP servers."""
    wanted = settings.mcp if agent.mcp is None else agent.mcp
    return tuple(server for name, server in settings.mcp.items() if name in wanted and server.enabled)


async def servers_to_hand_out(settings: Settings, agent: Agent) -> tuple[McpServer, ...]:
    """Return the servers that an outside agent starts itself: those of `servers_of`, except servers of changed plugins."""
    found = servers_of(settings, agent)
    if not any(server.plugin for server in found):
        return found
    plugins = {plugin.name for plugin in await to_thread.run_sync(used_plugins, settings.home)}
    return tuple(server for server in found if not server.plugin or server.plugin in plugins)


def mode_of(settings: Settings, options: JsonObject, conversation: Conversation | None = None) -> Mode:
    """Return the mode of a run: its prompt's mode, else its conversation's mode, else the configured one."""
    own = conversation.own_settings.mode if conversation is not None and not _is_plain(options) else None
    return _MODES.get(str(options.get("mode")), own or settings.permissions.mode)


def options_of(options: JsonObject, conversation: Conversation) -> JsonObject:
    """Return the options of a run, with the conversation's current settings as defaults."""
    if _is_plain(options):
        return options
    defaults = conversation.own_settings.for_run()
    if "tools" in options:  # a prompt's own list of tools is complete
        defaults.pop("web_search", None)
    return {**defaults, **options}


def _is_plain(options: JsonObject) -> bool:
    served = Served.of(options)
    return served is not None and served.plain


def limits_of(settings: Settings, options: JsonObject) -> Limits:
    """Return the current limits of a run. Its own options override the configured ones."""
    limits = settings.limits
    cost, seconds = options.get("max_cost"), options.get("timeout")
    if isinstance(cost, int):
        limits = dataclasses.replace(limits, cost=cost)
    if isinstance(seconds, int | float):
        limits = dataclasses.replace(limits, seconds=float(seconds))
    return limits


def for_small_model(agent: Agent, model: Model, *, has_skills: bool = False) -> Agent:
    """Return the agent, with settings that it doesn't set taken from `local`. For schema models, the prompt selects the tools."""
    own = agent.tools if agent.tools != LOCAL.tools else None
    history, prompt = agent.history, agent.prompt
    return dataclasses.replace(
        agent,
        tools=own if own is not None or model.tools == "schema" else LOCAL.tools,
        temperature=LOCAL.temperature if agent.temperature is None else agent.temperature,
        history=dataclasses.replace(
            history, max_tokens=history.max_tokens or max(LOCAL.history.max_tokens or 0, (model.context or 0) // 4)
        ),
        prompt=dataclasses.replace(
            prompt,
            parts=(*(LOCAL.prompt.parts or ()), *(["skills"] if has_skills else [])) if prompt.parts is None else prompt.parts,
            max_tokens=prompt.max_tokens or LOCAL.prompt.max_tokens,
        ),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a step, and the facts for its system prompt."""

    agent: Agent
    """The agent, with the rules for small models if its model is one."""
    tools: tuple[Tool, ...]
    prompt: PromptContext


def mcp_servers_for(settings: Settings, agent: Agent, conversation: Conversation) -> tuple[McpServer, ...]:
    """Return the MCP servers whose tools are offered to one of moot's own agents.

    The servers run with the rights of the local user, so only that user gets them.
    """
    if conversation.owner != LOCAL_USER or not settings.mcp or (agent.tools is not None and agent.mcp is None):
        return ()  # a list of tools is complete, unless the agent names its servers too
    return servers_of(settings, agent)


def offer_of(
    settings: Settings,
    agent: Agent,
    run: Run,
    conversation: Conversation,
    project: Project | None,
    model: Model | None,
    *,
    now: int,
    mcp: Sequence[Tool] = (),
    skills: SkillSelection | None = None,
) -> Offer:
    """Return the tools and prompt facts of a step with this model. The tools are the agent's, those in `mcp`, and those that skills need.

    If the model is None, no rules for small models or for models without tools apply. Raise UsageError for an unknown tool.
    """
    options = options_of(run.settings, conversation)
    if model is not None and model.small:
        agent = for_small_model(agent, model, has_skills=bool(skills and skills.all))
    folder, mode = has_folder(conversation), mode_of(settings, options, conversation)
    needed = attribute(_TOOLS_OF_SKILLS)(skills, agent) if skills is not None else ()
    searches = options.get("web_search")
    offered = tools_for(settings, agent, folder=folder, web_search=searches)
    standard = (tool for tool in offered if tool.name not in _SKILL_TOOLS)  # these are added if there are skills
    further = [tool for tool in map(provided_tool, needed) if folder or not getattr(tool, "needs_folder", True)]
    own = (*standard, *_own_tools(agent, run, options, mode), *further)
    tools = () if model is not None and model.tools == "none" else (*dict.fromkeys(own), *mcp, *client_tools(options))
    directory, is_local = conversation.directory, conversation.owner == LOCAL_USER
    callable_ = agent.agents if any(tool.name == DELEGATING[0] for tool in tools) else ()
    found = {name: agent_named(settings, name, directory) for name in callable_}
    prompt = PromptContext(
        agent,
        directory,
        boundary=boundary_of(conversation, project),
        is_local=is_local,
        mode=mode,
        now=now,
        home=settings.home,
        project=project,
        tools=tuple(tool.name for tool in tools),
        agents={name: one for name, one in found.items() if one is not None},
        skills=skills,
        web_search=searches is True,
    )
    return Offer(agent, tools, prompt)


async def step_setup(
    settings: Settings,
    providers: Providers,
    agent: Agent,
    run: Run,
    conversation: Conversation,
    project: Project | None = None,
    *,
    role: ModelRole,
    now: int,
    mcp: McpServers | None = None,
) -> StepSetup:
    """Return the setup of a step. Raise UsageError if no model is available or a tool is unknown."""
    options = options_of(run.settings, conversation)
    limits = limits_of(settings, options)
    served = Served.of(options)
    if served is not None and served.plain:
        # exactly what the caller sent, without fallback
        choice = await providers.choice(run.model)
        return StepSetup((choice,), (), served.system, model_settings(agent, options), UNTRIMMED, settings.limits.steps, limits, served)
    wanted = run.model if role == "main" and run.model else (agent.model if role == "main" else role)
    choices = await providers.choices(wanted, fallback_models(settings, agent, conversation.directory))
    if not choices:
        raise UsageError("No model is available.", fix="moot providers list")
    model = choices[0].model
    served_tools = await _mcp_tools(mcp, settings, agent, conversation, model)
    skills = await skills_for(settings, agent, conversation, project, model)
    offer = offer_of(settings, agent, run, conversation, project, model, now=now, mcp=served_tools, skills=skills)
    agent = offer.agent
    context = model.context or DEFAULT_CONTEXT
    answer = min(model.max_output or context // 4, context // 4)
    requested = options.get("max_steps")
    bounds = (requested if isinstance(requested, int) else 0, agent.max_steps or 0, settings.limits.steps, model.max_steps or 0)
    system = await system_prompt(offer.prompt)
    return StepSetup(
        choices=choices,
        tools=offer.tools,
        system=f"{system}\n\n{served.system}" if served is not None and served.system else system,
        settings=model_settings(agent, options),
        history_tokens=agent.history.max_tokens or max(context - answer - 2_000, context // 2),
        max_steps=min((bound for bound in bounds if bound > 0), default=0),
        limits=limits,
        served=served,
        compact_at=int(agent.history.compact_at * context),
    )


async def skills_for(
    settings: Settings,
    agent: Agent,
    conversation: Conversation,
    project: Project | None,
    model: Model | None = None,
    *,
    hashed: bool = False,
) -> SkillSelection | None:
    """Return the skills of a step, or None if there is no skills folder. If `hashed` is set, they have digests."""
    boundary = boundary_of(conversation, project)
    is_local = conversation.owner == LOCAL_USER
    find = partial(roots_of, settings.home, conversation.directory, is_local=is_local, boundary=boundary)
    if not (await to_thread.run_sync(find) if has_plugins(settings.home) else find()):
        return None
    small = model is not None and model.small
    found: SkillSelection = await attribute(_SELECTED)(settings, agent, conversation, boundary, small=small, hashed=hashed)
    return found


def boundary_of(conversation: Conversation, project: Project | None) -> str:
    """Return the only folder from which files may be read for the conversation's owner, or an empty string if there is no limit."""
    if conversation.owner == LOCAL_USER:
        return ""
    return (project.root_path if project is not None else "") or conversation.directory


async def _mcp_tools(mcp: McpServers | None, settings: Settings, agent: Agent, conversation: Conversation, model: Model) -> Sequence[Tool]:
    """Return the tools of MCP servers for a step. Small models get only tools of servers that the agent lists."""
    if mcp is None or (model.small and agent.mcp is None):
        return ()
    servers = mcp_servers_for(settings, agent, conversation)
    if not servers:
        return ()
    found = await mcp.offered(servers, conversation.directory)
    tools: Sequence[Tool] = attribute("moot.mcp.tools:server_tools")(mcp, found, agent)
    return tools


def _own_tools(agent: Agent, run: Run, options: JsonObject, mode: Mode) -> tuple[Tool, ...]:
    """Return the tools that depend on the run: to start and watch sub-agents, to end a sub-agent's task, to deliver a job's answer,
    and to leave the mode `plan`.
    """
    chosen = options.get("tools")
    may_delegate = agent.agents and agent.role != "read" and agent.tools != () and (not isinstance(chosen, list) or DELEGATING[0] in chosen)
    is_attended = run.parent_run is None and options.get("unattended") != "deny"
    plans = mode == "plan" and is_attended and agent.role != "read" and agent.tools != () and chosen not in (False, [])
    names = (
        *(DELEGATING if may_delegate else ()),
        *((FINISH,) if run.parent_run else ()),
        *((DELIVER,) if run.settings.get(DELIVER) is True else ()),
        *(("exit_plan",) if plans else ()),
    )
    return tuple(provided_tool(name) for name in names)


def model_settings(agent: Agent, options: JsonObject) -> ModelSettings:
    """Return the settings for requests. The run's options override the agent's."""
    wanted, schema, temperature = options.get("effort"), options.get("schema"), options.get("temperature")
    served = Served.of(options) or Served()
    return ModelSettings(
        max_tokens=served.max_tokens,
        top_p=served.top_p,
        stop=served.stop,
        tool_choice=served.tool_choice,
        parallel_calls=served.parallel_calls,
        temperature=float(temperature) if isinstance(temperature, int | float) else agent.temperature,
        effort=_EFFORTS.get(str(wanted)) or agent.effort,
        show_reasoning=agent.show_reasoning,
        schema=dict(schema) if isinstance(schema, dict) else None,
    )


def with_mode(request: RunRequest, mode: Mode) -> RunRequest:
    """Return the request with another mode for the conversation, and for the run if its prompt set a mode."""
    run, settings = request.run, {**request.settings, "mode": mode}
    if "mode" not in run.settings:  # later changes of the conversation's mode apply
        return replace(request, settings=settings)
    return replace(request, run=replace(run, settings={**run.settings, "mode": mode}), settings=settings)
