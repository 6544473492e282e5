"""Agents' definitions: their sources, the parts of their system prompts, and changing, copying and deleting agent files in moot's home."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from moot.agents.known import available_agents
from moot.agents.prompt import prompt_parts
from moot.config.agents.files import FIELDS, FOLDER, SUFFIX
from moot.config.changes import create_agent, new_path, set_value, with_front_matter, write_agent
from moot.config.home import lock_file, read_text
from moot.config.loader import FILE
from moot.config.settings import Settings
from moot.config.tree import Node, find, plain
from moot.convert.history import estimate
from moot.engine import Engine
from moot.errors import NotFound, ProviderError, UsageError
from moot.plugins.registry import attribute, hint
from moot.runtime.setup import confined, find_agent, load_project_agents, offer_of, skills_for
from moot.tools.schema import definition
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.conversation import Conversation
from moot.types.hooks import SkipIf
from moot.types.message import text_part
from moot.types.model import Model
from moot.types.run import Run
from moot.types.tool import Tool

Check: TypeAlias = Callable[[str], None]
"""A function that is called with the text of a file before the file is changed. It raises an error to prevent the change."""


def stored_path(settings: Settings, name: str) -> Path:
    """Return the path of an agent's file in moot's home.
    Raise NotFound if the agent does not exist, UsageError if it is defined elsewhere.
    """
    agent = settings.agents.get(name)
    if agent is not None and is_in_home(settings, agent.origin):
        return Path(agent.origin)
    known = available_agents(settings)
    if agent is None and name not in known:
        raise NotFound(f"Agent {name!r} not found.{hint(name, list(known))}", fix="moot agents list --all")
    where = known[name].origin if agent is None else agent.origin
    raise UsageError(
        f"Agent {name!r} is not defined by a file in {settings.home / FOLDER} ({where}).", fix=f"moot agents copy {name} NEW-NAME"
    )


def change_agent(settings: Settings, name: str, values: JsonObject, *, check: Check | None = None) -> Path:
    """Set fields in an agent's file in moot's home. Null removes a field. Comments and other fields are kept. This function blocks.

    Raise NotFound if there is no such agent, UsageError if it is defined elsewhere, ConfigError if a value is invalid.
    """
    path = stored_path(settings, name)
    with lock_file(path.parent):
        text = read_text(path, mark=True)
        if check is not None:
            check(text)
        if not text:
            raise NotFound(f"The file {path} of agent {name!r} was deleted.", fix="moot agents list")
        write_agent(settings, path, with_front_matter(text, values, path), name)
    return path


def delete_agent(settings: Settings, name: str, *, check: Check | None = None) -> Path:
    """Delete an agent's file in moot's home and return its path. This function blocks. Raise the same errors as `stored_path`."""
    path = stored_path(settings, name)
    with lock_file(path.parent), suppress(FileNotFoundError):
        if check is not None:
            check(read_text(path, mark=True))
        path.unlink()
    return path


def copy_agent(settings: Settings, root: Node, source: Agent, name: str, values: JsonObject) -> Path:
    """Write a copy of an agent to moot's home, with these values changed, and return the path of the written file. This function blocks.

    `root` is the loaded configuration. The value of a `${VAR}` is never written to a file. Agent files don't support such references, so an
    agent that contains one is copied to config.yaml. Raise UsageError if the name can't be used, ConfigError if a value is invalid.
    """
    merged: JsonObject = {**copied_fields(source), **values}
    fields: JsonObject = {field: value for field, value in merged.items() if value is not None}
    node = Node(find(root, "agents", source.name), root.place)
    is_configured = source.name in settings.agents and settings.agents[source.name].origin == source.origin
    resolved = [found for found in _resolved(node, ()) if found[0][0] in fields and found[0][0] not in values] if is_configured else []
    if not resolved:
        return create_agent(settings, name, fields)
    new_path(settings, name)
    entry = cast("JsonObject", _escaped(fields))
    for path, leaf in resolved:
        level: Any = entry
        for step in path[:-1]:
            level = level[step]
        level[path[-1]] = _reference(leaf, ("agents", source.name, *path))
    set_value(settings.home / FILE, f"agents.{name}", entry, os.environ)
    return settings.home / FILE


_Path: TypeAlias = tuple[str | int, ...]


def _resolved(node: Node, path: _Path) -> Iterator[tuple[_Path, Node]]:
    """Yield the values that come from a `${VAR}`, the environment or command-line options, with their paths."""
    if isinstance(node.value, dict | list):
        for step, child in node.value.items() if isinstance(node.value, dict) else enumerate(node.value):
            yield from _resolved(child, (*path, step))
    elif node.from_variable or node.place.layer in ("environment", "flags"):
        yield path, node


def _reference(leaf: Node, path: _Path) -> str:
    """Return a value as written in its file, with `${VAR}` unresolved. Raise UsageError if the value does not come from a file."""
    written: Any = None
    if leaf.from_variable:
        value: Any = plain(attribute("moot.config.document:parse")(read_text(Path(leaf.place.source)), leaf.place))
        for step in path:
            value = value[step]
        written = value
    if not isinstance(written, str):
        dotted = ".".join(map(str, path))
        raise UsageError(
            f"{dotted} is set by {leaf.place.source} and not in a file, so it can't be copied.", fix="Set the value in config.yaml instead."
        )
    return written


def _escaped(value: Json) -> Json:
    """Return the value with every `${` escaped, so that the configuration does not treat it as a reference."""
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return value.replace("${", "$${") if isinstance(value, str) else value


def copied_fields(agent: Agent) -> JsonObject:
    """Return the fields to write to a copy of an agent: those that differ from the defaults."""
    found: JsonObject = {}
    plain = Agent()
    for field in fields(Agent):
        value = getattr(agent, field.name)
        if value != getattr(plain, field.name) and field.name in FIELDS:
            found[field.name] = _json(value)
    if agent.effort is not None or not agent.show_reasoning:
        found["reasoning"] = {"effort": agent.effort, "show": agent.show_reasoning} if agent.effort else {"show": agent.show_reasoning}
    found.pop("default", None)
    return {**found, "forked_from": agent.name}


def _json(value: Any) -> Json:
    if isinstance(value, SkipIf):
        return {value.kind: True if value.kind == "empty" else value.text}
    if hasattr(value, "__dataclass_fields__"):
        values = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _json(item) for field, item in values if item not in (None, field.default)}
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in cast("Mapping[str, Any]", value).items()}
    return [_json(item) for item in cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else value


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
        raise UsageError(f"Agent {agent.name!r} is an outside program. moot has no access to its prompt.")
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
