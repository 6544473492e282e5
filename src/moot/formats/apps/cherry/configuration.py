"""Conversion of the agents, MCP servers, scheduled tasks and channels in Cherry Studio's database to moot's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from moot.formats.kit.configuration import ConfigurationBuilder, add_job, entry_name
from moot.formats.kit.database import Connection, open_copy, row_objects, tables
from moot.formats.kit.fields import at, items, milliseconds, text
from moot.formats.kit.json import json_object, json_value
from moot.plugins import CHANNELS
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

_AGENTS = {"agent": "SELECT * FROM agent", "agents_agents": "SELECT * FROM agents_agents", "agents": "SELECT * FROM agents"}
_TASKS = {"agent_task": "SELECT * FROM agent_task ORDER BY id", "scheduled_tasks": "SELECT * FROM scheduled_tasks ORDER BY id"}
_CHANNELS = {"agent_channel": "SELECT * FROM agent_channel ORDER BY id", "channels": "SELECT * FROM channels ORDER BY id"}
_OUTSIDE = "claude-code"
_MODES = {"acceptEdits": "edits", "plan": "plan", "bypassPermissions": "auto"}
_REST: Mapping[str, str] = {
    "allowed_tools": "Claude Code asks moot before it uses a tool; add rules to `permissions`",
    "disabled_tools": "moot can't disable tools of Claude Code; add deny rules to `permissions`",
    "mcps": "the names of the agent's MCP servers are not stored with it; list them in the agent's `mcp`",
    "slash_commands": "moot can't define commands yet",
    "plan_model": "moot has one model for each agent",
    "small_model": "moot has one model for each agent",
}
"""Field of an agent without an equivalent in moot → the reason."""
_CLAUDE_TOOLS = {
    "Bash": "shell",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "MultiEdit": "edit_file",
    "Glob": "find_files",
    "Grep": "search_files",
    "WebFetch": "fetch_url",
    "WebSearch": "web_search",
    "TodoWrite": "todo",
}


def configuration(database: Path) -> ForeignConfiguration:
    draft = ConfigurationBuilder("cherry")
    with open_copy(database) as connection:
        there = set(tables(connection))
        agents: dict[str, str] = {}
        for agent in _rows(connection, there, _AGENTS):
            agents[str(agent.get("id"))] = _agent(draft, agent)
        for server in _rows(connection, there, {"mcp_server": "SELECT * FROM mcp_server"}):
            _server(draft, server)
        for task in _rows(connection, there, _TASKS):
            _task(draft, task, agents)
        for schedule in _rows(connection, there, {"job_schedule": "SELECT * FROM job_schedule ORDER BY id"}):
            _schedule(draft, schedule, agents)
        for channel in _rows(connection, there, _CHANNELS):
            _channel(draft, channel, agents)
        for skill in _rows(connection, there, {"skills": "SELECT * FROM skills"}):
            draft.lose(f"skills {text(skill, 'name') or skill.get('id')!r}", "add its folder with 'moot skills add FOLDER'", skill)
    return draft.found()


def _rows(connection: Connection, there: set[str], queries: Mapping[str, str]) -> Iterator[JsonObject]:
    """Yield the rows of those tables that exist, without deleted rows."""
    for table, query in queries.items():
        if table in there:
            yield from [row for row in row_objects(connection, query) if row.get("deleted_at") is None]


def model_of(value: Json) -> tuple[str, str]:
    """Split `provider::model`, or `provider:model` of version 1, into (model, provider)."""
    provider, found, model = text(value).partition("::" if "::" in text(value) else ":")
    return (model, provider) if found else (provider, "")


def _agent(draft: ConfigurationBuilder, agent: JsonObject) -> str:
    name = text(agent.get("name")) or str(agent.get("id"))
    model, provider = model_of(agent.get("model"))
    is_outside = (agent.get("type") or agent.get("agent_type")) == _OUTSIDE
    facts: JsonObject = {"description": agent.get("description"), "instructions": agent.get("instructions")}
    facts |= {"agent_type": _OUTSIDE, "model": model} if is_outside else {"model": f"{model}@{provider}" if provider else model}
    settings = json_object(agent.get("configuration"))
    turns = settings.pop("max_turns", None)
    if type(turns) is int and turns > 0:
        facts["max_steps"] = turns
    folders = [folder for folder in items(json_value(agent.get("accessible_paths"))) if str(folder).startswith("/")]
    if folders:
        facts["allowed_uris"] = folders
    rest = {key: json_value(agent[key]) for key in _REST if agent.get(key) not in (None, "", "[]", "{}")}
    tools: Json = None
    if not is_outside and isinstance(allowed := rest.pop("allowed_tools", None), list):
        tools = allowed
    ours = draft.agent(name, facts, tools=tools, known=_CLAUDE_TOOLS)
    for key, value in rest.items():
        draft.lose(f"agents.{name}.{key}", _REST[key], value)
    for key, value in settings.items():
        if key == "permission_mode" and value in (None, "default"):
            continue
        reason = (
            "moot's agents have no permission mode; set the mode of the conversation"
            if key == "permission_mode"
            else "moot has no such setting"
        )
        draft.lose(f"agents.{name}.configuration.{key}", reason, value if value is not None else "")
    return ours


def _server(draft: ConfigurationBuilder, server: JsonObject) -> None:
    if url := text(server.get("base_url")):
        facts: JsonObject = {
            "url": url,
            "protocol": "sse" if server.get("type") == "sse" else "http",
            "headers": json_value(server.get("headers")),
        }
    else:
        facts = {"command": server.get("command"), "env": json_value(server.get("env")), "args": json_value(server.get("args"))}
    draft.server(text(server.get("name")) or str(server.get("id")), facts)


def _task(draft: ConfigurationBuilder, task: JsonObject, agents: Mapping[str, str]) -> None:
    """Add a scheduled task. Its `schedule_type` is `cron`, `interval` (in minutes) or `once`."""
    name, value = text(task, "name") or str(task.get("id")), str(task.get("schedule_value") or "")
    if task.get("status") not in (None, "active"):
        draft.lose(f"cron job {name!r}", f"its status is {task.get('status')}, but moot's jobs are always enabled", task)
        return
    facts: JsonObject = {"prompt": text(task, "prompt"), "agent": agents.get(str(task.get("agent_id")))}
    match task.get("schedule_type"):
        case "interval":
            facts["every"] = float(value) * 60 if value.replace(".", "", 1).isdigit() else None
        case "once":
            facts["at"] = _moment(int(value) if value.isdigit() else value)
        case _:
            facts["cron"] = value
    add_job(draft, name, facts)


def _schedule(draft: ConfigurationBuilder, schedule: JsonObject, agents: Mapping[str, str]) -> None:
    """Add an entry of the newer scheduler as a cron job if the entry sends a prompt to an agent."""
    name, input = text(schedule, "name") or str(schedule.get("id")), json_object(schedule.get("job_input_template"))
    trigger = json_object(schedule.get("trigger"))
    prompt = text(input, "prompt") or text(input, "message")
    if not prompt or not schedule.get("enabled", 1):
        reason = (
            "it is disabled, but moot's jobs are always enabled" if prompt else "it is an internal job of Cherry Studio without a prompt"
        )
        draft.lose(f"cron job {name!r}", reason, schedule)
        return
    every = trigger.get("ms") or trigger.get("intervalMs") or trigger.get("everyMs")
    facts: JsonObject = {
        "prompt": prompt,
        "agent": agents.get(text(input, "agentId")),
        "tz": text(trigger, "timezone") or text(trigger, "tz"),
    }
    facts |= {
        "cron": text(trigger, "expr") or text(trigger, "cron") or text(trigger, "expression"),
        "every": every / 1000 if isinstance(every, int | float) else None,
        "at": _moment(trigger["at"]) if trigger.get("at") else None,
    }
    add_job(draft, name, facts)


def _moment(value: Json) -> str:
    ms = milliseconds(value)
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat() if ms else str(value or "")


def _channel(draft: ConfigurationBuilder, channel: JsonObject, agents: Mapping[str, str]) -> None:
    kind, name, config = text(channel, "type"), text(channel, "name"), json_object(channel.get("config"))
    if kind != "discord" or kind not in CHANNELS:
        draft.lose(f"channels {name or kind!r}", f"moot has no channel of the type {kind!r}", channel)
        return
    if not channel.get("is_active", 1):
        draft.lose(f"channels {name or kind!r}", "it is disabled, but moot's channels are always enabled", channel)
        return
    users = [str(one) for one in items(at(config, "allowed_user_ids") or at(config, "allow_ids") or at(config, "allowedUserIds"))]
    facts: JsonObject = {
        "token": draft.secret(f"discord_{entry_name(name)}_token", text(config, "bot_token") or text(config, "token") or "unset", "token"),
        "users": list[Json](user for user in users if user.isdecimal()),
        "agent": agents.get(str(channel.get("agent_id"))),
        "mode": _MODES.get(text(channel, "permission_mode")),
    }
    draft.entry("channels", kind, facts)
