"""Agents and MCP servers of Cherry Studio's databases."""

from __future__ import annotations

from pathlib import Path

from moot.formats._source.configuring import Draft, texts
from moot.formats._source.database import Connection, object_of, opened, rows, tables
from moot.formats._source.fields import text
from moot.formats._source.pieces import value_in
from moot.formats.cherry.messages import model_of
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

__all__ = ["configuration"]

_AGENTS = {"agent": "SELECT * FROM agent", "agents_agents": "SELECT * FROM agents_agents", "agents": "SELECT * FROM agents"}
_LATER = {
    "agent_task": "SELECT * FROM agent_task",
    "scheduled_tasks": "SELECT * FROM scheduled_tasks",
    "job_schedule": "SELECT * FROM job_schedule",
    "channels": "SELECT * FROM channels",
    "agent_channel": "SELECT * FROM agent_channel",
    "skills": "SELECT * FROM skills",
}
_OUTSIDE = "claude-code"
_REST = ("allowed_tools", "disabled_tools", "mcps", "slash_commands", "accessible_paths", "plan_model", "small_model")


def configuration(database: Path) -> ForeignConfiguration:
    draft = Draft("cherry")
    with opened(database) as connection:
        there = tables(connection)
        for name, query in _AGENTS.items():
            for agent in _all(connection, query) if name in there else ():
                _agent(draft, agent)
        for server in _all(connection, "SELECT * FROM mcp_server") if "mcp_server" in there else ():
            _server(draft, server)
        for name, query in _LATER.items():
            if name in there:
                draft.keep(name, list[Json](_all(connection, query)))
    return draft.found()


def _all(connection: Connection, query: str) -> list[JsonObject]:
    found = [object_of(row) for row in rows(connection, query) if not isinstance(row, str)]
    return [one for one in found if one.get("deleted_at") is None]


def _agent(draft: Draft, agent: JsonObject) -> None:
    name = text(agent.get("name")) or str(agent.get("id"))
    model, provider = model_of(agent.get("model"))
    kind = agent.get("type") or agent.get("agent_type")
    facts: JsonObject = {"description": agent.get("description"), "instructions": agent.get("instructions")}
    if kind == _OUTSIDE:
        facts |= {"agent_type": _OUTSIDE, "model": model}
    else:
        facts |= {"model": f"{model}@{provider}" if provider else model}
    settings = value_in(agent.get("configuration"))
    turns = settings.get("max_turns") if isinstance(settings, dict) else None
    if type(turns) is int and turns > 0:
        facts["max_steps"] = turns
    draft.agent(name, facts)
    rest: JsonObject = {key: value_in(agent[key]) for key in _REST if agent.get(key) not in (None, "", "[]", "{}")}
    if settings:
        rest["configuration"] = settings
    if rest:
        draft.keep("agents", {name: rest})


def _server(draft: Draft, server: JsonObject) -> None:
    if url := text(server.get("base_url")):
        facts: JsonObject = {
            "url": url,
            "protocol": "sse" if server.get("type") == "sse" else "http",
            "headers": texts(value_in(server.get("headers"))),
        }
    else:
        arguments = value_in(server.get("args"))
        facts = {"command": server.get("command"), "env": texts(value_in(server.get("env")))}
        facts["args"] = [str(one) for one in arguments] if isinstance(arguments, list) else []
    draft.server(text(server.get("name")) or str(server.get("id")), facts)
