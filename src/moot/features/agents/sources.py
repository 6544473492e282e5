"""The source of an agent's definition, and the parts of its system prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from moot.agents.prompt.parts import prompt_parts
from moot.config.agents.files import FOLDER, SUFFIX
from moot.config.settings import Settings
from moot.convert.history import estimate
from moot.engine import Engine
from moot.errors import ProviderError, UsageError
from moot.runtime.setup import confined, find_agent, load_project_agents, offer_of, skills_for
from moot.tools.schema import definition
from moot.types.agent import Agent
from moot.types.canonical import JsonObject, dumps
from moot.types.conversation import Conversation
from moot.types.message import text_part
from moot.types.model import Model
from moot.types.run import Run
from moot.types.tool import Tool

Source: TypeAlias = Literal["project", "home", "configuration", "package", "built-in", "known"]


def source_of(settings: Settings, agent: Agent) -> Source:
    """Return the kind of place in which an agent is defined."""
    if agent.origin == "built-in":
        return "built-in"
    if agent.origin == "known":
        return "known"
    if agent.name in settings.agents and settings.agents[agent.name].origin == agent.origin:
        return "home" if is_in_home(settings, agent.origin) else "configuration"
    return "project" if agent.origin.endswith(SUFFIX) and Path(agent.origin).is_absolute() else "package"


def is_in_home(settings: Settings, origin: str) -> bool:
    """Return whether the origin is a file in the agents folder of moot's home."""
    return Path(origin).parent == settings.home / FOLDER


@dataclass(frozen=True, slots=True)
class PartSize:
    """A part of an agent's system prompt, or its tool definitions, with the estimated number of tokens."""

    name: str
    tokens: int
    text: str

    def to_json(self) -> JsonObject:
        return {"name": self.name, "tokens": self.tokens, "text": self.text}


async def prompt_preview(engine: Engine, name: str, conversation: Conversation) -> list[PartSize]:
    """Return the parts of an agent's system prompt as sent in a conversation, followed by its tool definitions.

    To preview a new conversation, pass a conversation that has a folder but no id.
    Raise UsageError for an outside agent, which has its own prompt.
    """
    settings, projects = engine.runtime.settings, engine.store.of(conversation.owner).projects
    project = await (projects.get(conversation.project) if conversation.id else projects.around(conversation.directory))
    place = confined(replace(conversation, project=project.id), project)
    await load_project_agents(settings, place.directory)
    agent = find_agent(settings, name, place.own_settings.for_run(), place.directory)
    if agent.agent_type != "moot":
        raise UsageError(f"Agent {agent.name!r} is an outside program with its own prompt, which moot does not know.")
    run = Run("", place.id, "", agent=agent.name, model=place.next_model)
    model = await _model(engine, run.model or agent.model)
    skills = await skills_for(settings, agent, place, project, model)
    offer = offer_of(settings, agent, run, place, project, model, now=engine.runtime.now(), skills=skills)
    parts = await prompt_parts(offer.prompt)
    sizes = [PartSize(part.name, estimate((text_part(part.text),)), part.text) for part in parts]
    tools = PartSize("tools", definition_tokens(offer.tools), ", ".join(tool.name for tool in offer.tools))
    return [*sizes, tools] if offer.tools else sizes


async def _model(engine: Engine, name: str) -> Model | None:
    """Return the model, which determines whether the rules for small models apply, or None if no model is available yet."""
    try:
        return (await engine.providers.choice(name)).model
    except (UsageError, ProviderError):
        return None


def definition_tokens(tools: Sequence[Tool]) -> int:
    """Return the estimated number of tokens of tool definitions in a request."""
    definitions = [definition(tool) for tool in tools]
    texts = [dumps({"name": each.name, "description": each.description, "parameters": each.schema}).decode() for each in definitions]
    return estimate([text_part(text) for text in texts])
